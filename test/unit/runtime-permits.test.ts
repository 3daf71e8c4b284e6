/** Permits in the runtime: what goes out when, and what is undone. */
import { describe, expect, it } from 'vitest'
import type { Operation } from '../../src/engine/operations.js'
import { UnavailableError } from '../../src/errors.js'
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { Runtime } from '../../src/lease/runtime.js'
import { resolveHoldfastOptions } from '../../src/options.js'
import { LeasedSemaphore } from '../../src/synchronizers/permit-semaphore.js'
import { silence, stage, unavailable, watched, type Stage } from '../support/staged-engine.js'

const NAME = 'downloads'

function semaphore({ runtime }: Stage, total = 3): LeasedSemaphore {
  return new LeasedSemaphore(runtime, { family: 'permits', name: NAME, title: NAME, total })
}

const asked = ({ engine }: Stage, op: Operation['op']) =>
  engine.asked.filter((operation) => operation.op === op)
const owners = (operations: readonly Operation[]) =>
  operations.map((operation) => ('owner' in operation ? operation.owner : undefined))

describe('free permits', () => {
  it('are asked for side by side', async () => {
    const scene = stage()
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    scene.engine.direction = async (_operation, run) => {
      await gate
      return run()
    }
    const mine = semaphore(scene)
    const calls = [1, 2, 3].map(() => watched(mine.acquire()))
    await scene.clock.advance(10)
    expect(asked(scene, 'permits.acquire')).toHaveLength(3)
    open()
    await scene.clock.advance(10)
    expect(calls.map(({ value }) => value?.held)).toEqual([true, true, true])
  })

  it('cost one command each, and nothing is left waiting', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    for (const lease of await Promise.all([mine.acquire(), mine.acquire(2)])) await lease.release()
    expect(scene.engine.asked.map(({ op }) => op)).toEqual([
      'permits.acquire',
      'permits.acquire',
      'permits.release',
      'permits.release',
    ])
    expect(scene.runtime.stats()).toMatchObject({ held: 0, waiting: 0, contests: 0 })
  })
})

describe('waiters', () => {
  it('send nothing while nothing can have changed', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    await mine.acquire(3, { leaseTime: 600_000 })
    const calls = Array.from({ length: 20 }, () => watched(mine.acquire({ pollInterval: 60_000 })))
    await scene.clock.advance(100)
    const before = asked(scene, 'permits.acquire').length
    await scene.clock.advance(30_000)
    expect(asked(scene, 'permits.acquire')).toHaveLength(before)
    expect(calls.filter(({ settled }) => settled)).toEqual([])
  })

  it('go on one after the other as long as something is left, and not after the last', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    const held = await mine.acquire(3, { leaseTime: 600_000 })
    const calls = Array.from({ length: 5 }, () => watched(mine.acquire({ pollInterval: 60_000 })))
    await scene.clock.advance(100)
    const before = asked(scene, 'permits.acquire').length
    await held.release()
    // Sooner than anybody looks by himself.
    for (let i = 0; i < 10; i++) await scene.clock.advance(0)
    expect(calls.map(({ settled }) => settled)).toEqual([true, true, true, false, false])
    // The release of three is one message.
    expect(asked(scene, 'permits.acquire')).toHaveLength(before + 3)
  })

  it('try again with the ids of the attempt whose outcome is not known', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    scene.engine.direction = async (_operation, run) => {
      scene.engine.direction = (_again, repeat) => repeat()
      await run()
      return unavailable('unknown')
    }
    const call = watched(mine.acquire(2))
    await scene.clock.advance(200)
    expect(call.value?.held).toBe(true)
    const sent = owners(asked(scene, 'permits.acquire'))
    expect(sent).toHaveLength(2)
    expect(new Set(sent)).toEqual(new Set([call.value?.ids.join(',')]))
    expect(await mine.available()).toBe(1)
  })
})

/** What callers of one process hold and wait for. */
describe('large and small requests', () => {
  it('a smaller one passes a larger one that does not fit: no cross-deadlock', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    const held = await mine.acquire()
    const large = watched(mine.acquire(3))
    await scene.clock.advance(0)
    // Its caller holds what the large one waits for.
    const small = watched(mine.acquire())
    await scene.clock.advance(0)
    expect([large.settled, small.settled]).toEqual([false, true])
    await held.release()
    await small.value?.release()
    await scene.clock.advance(0)
    expect(large.value?.ids).toHaveLength(3)
  })

  it('a stream of small ones does not starve the large one', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    const pause = (ms: number) => new Promise<void>((resolve) => scene.clock.setTimer(resolve, ms))
    let going = true
    // One after the other, so that never more than one permit comes free at once.
    const stream = async (i: number): Promise<void> => {
      await pause(i * 75)
      while (going) await mine.using(() => pause(300))
    }
    const streams = [0, 1, 2, 3].map(stream)
    await scene.clock.advance(350)
    const large = watched(mine.using(3, () => undefined))
    await scene.clock.advance(30_000)
    // While the stream goes on, not after it.
    expect(large.settled).toBe(true)
    going = false
    await scene.clock.advance(1_000)
    await Promise.all(streams)
    expect(scene.runtime.stats()).toMatchObject({ held: 0, waiting: 0, contests: 0 })
  })

  it('who does not fit into what others left looks when the next permit expires', async () => {
    const scene = stage()
    const mine = semaphore(scene, 4)
    const endless = { leaseTime: Number.MAX_SAFE_INTEGER }
    await mine.acquire(endless)
    const most = await mine.acquire(3, endless)
    const patient = { pollInterval: 600_000 }
    const small = watched(mine.acquire({ ...patient, leaseTime: 20_000 }))
    const large = watched(mine.acquire(3, patient))
    await scene.clock.advance(10)
    await most.release()
    await scene.clock.advance(0)
    expect([small.settled, large.settled]).toEqual([true, false])
    await scene.clock.advance(19_000)
    expect(large.settled).toBe(false)
    await scene.clock.advance(1_100)
    expect(large.value?.ids).toHaveLength(3)
  })

  it('a message during the look of the first one lets nobody overtake it', async () => {
    const scene = stage()
    const mine = semaphore(scene, 1)
    const held = await mine.acquire({ leaseTime: 600_000 })
    const calls = [1, 2].map(() => watched(mine.acquire({ pollInterval: 10_000 })))
    await scene.clock.advance(10)
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    scene.engine.direction = async (operation, run) => {
      const reply = await run()
      if (operation.op === 'permits.acquire') await gate
      return reply
    }
    await scene.clock.advance(10_000)
    // The look has found nothing, and does not know it yet.
    await held.release()
    await scene.clock.advance(0)
    open()
    await scene.clock.advance(0)
    expect(calls.map(({ settled }) => settled)).toEqual([true, false])
  })

  it('an expiry that does not come is not asked for again and again', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    await mine.acquire(3, { leaseTime: 600_000 })
    const [busy] = [{ outcome: 'busy', available: 0, total: 3, ttlMs: 0 } as const]
    scene.engine.direction = (operation, run) =>
      operation.op === 'permits.acquire' ? Promise.resolve(busy) : run()
    const call = watched(mine.acquire({ waitTime: 60_000 }))
    await scene.clock.advance(60_000)
    expect(call.error).toMatchObject({ code: 'HOLDFAST_WAIT_TIMEOUT' })
    expect(asked(scene, 'permits.acquire').length).toBeLessThan(35)
  })

  it('one that wants more than there are is told so at once, unless its maker did not say how many', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    for (const call of [watched(mine.acquire(4)), watched(mine.tryAcquire(4))]) {
      await scene.clock.advance(0)
      expect(call.error).toEqual(
        new RangeError(`permits must not be more than semaphore '${NAME}' has in all (3), but is 4`),
      )
    }
    const other = new LeasedSemaphore(scene.runtime, { family: 'permits', name: NAME, title: NAME })
    const waiting = watched(other.acquire(4))
    await scene.clock.advance(10_000)
    expect(waiting.settled).toBe(false)
    // The number may be another than the one it began with.
    await mine.set(4)
    await scene.clock.advance(0)
    expect(waiting.value?.ids).toHaveLength(4)
    await waiting.value?.release()
    expect((await mine.acquire(4)).ids).toHaveLength(4)
    expect(await mine.tryAcquire(4)).toBeNull()
  })
})

describe('permits of leases of this process, by their ids', () => {
  /** Lets an operation run, and its answer come when the test says so. */
  function held(scene: Stage, op: Operation['op']): () => void {
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    scene.engine.direction = async (operation, run) => {
      const reply = await run()
      if (operation.op === op) await gate
      return reply
    }
    return open
  }

  it('given back, end their lease at once, and no other', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    const [one, two] = [await mine.acquire(2), await mine.acquire()]
    const { signal } = one
    const [, second = ''] = one.ids
    await mine.release(second)
    expect(signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
    expect([one.held, two.held]).toEqual([false, true])
    // The other permit goes back, too.
    expect(await one.release()).toBe('stolen')
    await scene.clock.advance(0)
    expect(await mine.available()).toBe(2)
    expect(await mine.tryRelease([...one.ids, ...two.ids])).toBe(1)
    expect(two.held).toBe(false)
    expect(scene.runtime.stats().held).toBe(0)
  })

  it('are not believed in from the asking on, before anybody else can have them', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    const lease = await mine.acquire()
    const renewed = held(scene, 'permits.renew')
    await scene.clock.advance(10_000)
    expect(asked(scene, 'permits.renew')).toHaveLength(1)
    const open = held(scene, 'permits.give')
    const release = watched(mine.releaseAll(lease.ids))
    expect(lease.held).toBe(false)
    // This one was sent before.
    renewed()
    await scene.clock.advance(0)
    expect(lease.held).toBe(false)
    open()
    await scene.clock.advance(0)
    expect(release.settled).toBe(true)
    expect(lease.held).toBe(false)
  })

  it('stay held where the list was refused, or got no answer and no effect', async () => {
    const scene = stage({ commandTimeout: 1_000 })
    const mine = semaphore(scene)
    const [watchedOne, leased] = [await mine.acquire(), await mine.acquire({ leaseTime: 600_000 })]
    const { signal } = leased
    const ids = [...watchedOne.ids, ...leased.ids]
    scene.engine.direction = async (_operation, run) => {
      await new Promise<void>((resolve) => scene.clock.setTimer(resolve, 1))
      return run()
    }
    const refused = watched(mine.releaseAll([...ids, 'ab'.repeat(16)]))
    await scene.clock.advance(1)
    expect(refused.error).toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
    await scene.clock.advance(10)
    expect([watchedOne.held, leased.held]).toEqual([true, true])
    expect(leased.remaining).toBeGreaterThan(580_000)
    scene.engine.direction = (operation, run, passage) =>
      operation.op === 'permits.give' ? silence(operation, run, passage) : run()
    const release = watched(mine.releaseAll(ids))
    await scene.clock.advance(1_000)
    expect(release.error).toBeInstanceOf(UnavailableError)
    await scene.clock.advance(10)
    expect([watchedOne.held, leased.held]).toEqual([true, true])
    expect(signal.aborted).toBe(false)
  })

  it('that expire sooner end their lease then, watchdog or not', async () => {
    const scene = stage({ lockWatchdogTimeout: 30_000 })
    const mine = semaphore(scene, 4)
    const leases = [await mine.acquire(), await mine.acquire({ leaseTime: 60_000 }), await mine.acquire(2)]
    // The next renewal is due before the new end.
    await scene.clock.advance(8_000)
    for (const { ids } of leases) {
      expect(await mine.updateLeaseTime(ids[0] ?? '', 5_000)).toBe(true)
    }
    for (const lease of leases) expect(lease.remaining).toBeLessThan(5_000)
    await scene.clock.advance(4_900)
    expect(leases.map(({ held }) => held)).toEqual([true, true, true])
    await scene.clock.advance(100)
    expect(leases.map(({ held }) => held)).toEqual([false, false, false])
    await leases[2]?.release()
    await scene.clock.advance(0)
    expect(await mine.available()).toBe(4)
    // What is of another lease, or not out, ends nothing.
    const other = await mine.acquire()
    expect(await mine.updateLeaseTime(leases[0]?.ids[0] ?? '', 5)).toBe(false)
    await scene.clock.advance(40_000)
    expect(other.held).toBe(true)
  })

  it('are not believed in for longer because of a renewal that was on its way', async () => {
    const scene = stage({ lockWatchdogTimeout: 30_000 })
    const mine = semaphore(scene)
    const lease = await mine.acquire()
    const open = held(scene, 'permits.renew')
    await scene.clock.advance(10_000)
    expect(asked(scene, 'permits.renew')).toHaveLength(1)
    await mine.updateLeaseTime(lease.ids[0] ?? '', 5_000)
    open()
    await scene.clock.advance(0)
    expect(lease.remaining).toBeLessThan(5_000)
    await scene.clock.advance(5_000)
    expect(lease.held).toBe(false)
  })

  it('are believed in for longer where the lease is of one alone, and as long as any where it is of several', async () => {
    const scene = stage({ lockWatchdogTimeout: 30_000 })
    const mine = semaphore(scene)
    const [one, two] = [await mine.acquire(), await mine.acquire(2)]
    for (const { ids } of [one, two]) await mine.updateLeaseTime(ids[0] ?? '', 100_000)
    expect(one.remaining).toBeGreaterThan(90_000)
    expect(two.remaining).toBeLessThan(30_000)
    // One lasts as long as was said, the other is kept alive.
    await scene.clock.advance(100_000)
    expect([one.held, two.held]).toEqual([false, true])
  })

  it('gone, end their lease when their time is to be changed', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    const lease = await mine.acquire({ leaseTime: 60_000 })
    const elsewhere = new Runtime(
      new MemoryEngine(scene.store),
      resolveHoldfastOptions({ clock: scene.clock }),
    )
    await semaphore({ ...scene, runtime: elsewhere }).releaseAll(lease.ids)
    expect(lease.held).toBe(true)
    expect(await mine.updateLeaseTime(lease.ids[0] ?? '', 100_000)).toBe(false)
    expect(lease.held).toBe(false)
  })
})

describe('messages', () => {
  it('are about semaphores, and short whatever was taken', async () => {
    const scene = stage({ commandTimeout: 100 })
    const mine = semaphore(scene, 1_000)
    const lease = await mine.acquire(1_000)
    expect(lease.owner).toBe(`${lease.ids[0]}+999`)
    expect(JSON.stringify(lease).length).toBeLessThan(100)
    await expect(mine.tryAcquire().then(() => mine.acquire({ waitTime: 0 }))).rejects.toMatchObject({
      message: `Semaphore '${NAME}' still has no permit available after waiting 0 ms`,
    })
    scene.engine.direction = silence
    const calls = [
      watched(mine.tryAcquire()),
      watched(mine.available()),
      watched(mine.set(3)),
      watched(lease.extend(600_000)),
    ]
    await scene.clock.advance(200)
    for (const { error } of calls) expect(String(error)).toContain(`Semaphore '${NAME}': `)
  })
})

describe('what nobody waits for any more', () => {
  it('is undone, ids and tombstone', async () => {
    const scene = stage({ commandTimeout: 1_000 })
    const mine = semaphore(scene)
    scene.engine.direction = silence
    const call = watched(mine.acquire(2, { waitTime: 0 }))
    await scene.clock.advance(1_000)
    expect(call.error).toBeInstanceOf(UnavailableError)
    scene.engine.direction = (_operation, run) => run()
    await scene.clock.advance(5_000)
    expect(scene.runtime.stats().compensating).toBe(0)
    const [first] = asked(scene, 'permits.acquire')
    expect(asked(scene, 'permits.release').at(-1)).toMatchObject({
      entombMs: 60_000,
      owner: owners([first as Operation])[0],
    })
  })

  it('a grant that came too late goes back, and the next attempt has as many new ids', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    let open: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    scene.engine.direction = async (_operation, run) => {
      scene.engine.direction = (_next, go) => go()
      const reply = await run()
      await gate
      return reply
    }
    const call = watched(mine.acquire(2, { leaseTime: 500 }))
    await scene.clock.advance(1_000)
    open()
    await scene.clock.advance(200)
    expect(call.value?.ids).toHaveLength(2)
    const [old, next] = owners(asked(scene, 'permits.acquire'))
    expect(next).toBe(call.value?.ids.join(','))
    expect(next).not.toBe(old)
    expect(next?.split(',')).toHaveLength(2)
    expect(await mine.acquired()).toBe(2)
  })

  it('ids that were ended before are replaced after a pause, though no other message comes', async () => {
    const scene = stage()
    const mine = semaphore(scene)
    const held = await mine.acquire(3)
    const call = watched(mine.acquire(2, { pollInterval: 60_000 }))
    await scene.clock.advance(100)
    const before = asked(scene, 'permits.acquire').length
    scene.engine.direction = (operation, run) => {
      if (operation.op !== 'permits.acquire') return run()
      scene.engine.direction = (_next, go) => go()
      return Promise.resolve({ outcome: 'dead' })
    }
    await held.release()
    await scene.clock.advance(200)
    expect(call.value?.ids).toHaveLength(2)
    const [old, next] = owners(asked(scene, 'permits.acquire').slice(before))
    expect(next).toBe(call.value?.ids.join(','))
    expect(next).not.toBe(old)
  })
})

describe('the watchdog', () => {
  it('renews the permits of many leases by one command', async () => {
    const scene = stage({ lockWatchdogTimeout: 30_000 })
    const mine = semaphore(scene, 500)
    for (let i = 0; i < 60; i++) await mine.acquire(2)
    await scene.clock.advance(10_000)
    const renewals = asked(scene, 'permits.renew')
    expect(renewals).toHaveLength(1)
    await scene.clock.advance(60_000)
    expect(await mine.acquired()).toBe(120)
  })

  it('takes more commands for owners of very many', async () => {
    const scene = stage({ lockWatchdogTimeout: 30_000 })
    const mine = semaphore(scene, 10_000)
    for (let i = 0; i < 6; i++) await mine.acquire(500)
    await scene.clock.advance(10_000)
    expect(asked(scene, 'permits.renew')).toHaveLength(3)
    await scene.clock.advance(60_000)
    expect(await mine.acquired()).toBe(3_000)
  })
})
