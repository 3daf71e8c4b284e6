/** Permits in the runtime: what goes out when, and what is undone. */
import { describe, expect, it } from 'vitest'
import type { Operation } from '../../src/engine/operations.js'
import { UnavailableError } from '../../src/errors.js'
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
    expect(new Set(sent)).toEqual(new Set([call.value?.owner]))
    expect(await mine.available()).toBe(1)
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
    expect(next).toBe(call.value?.owner)
    expect(next).not.toBe(old)
    expect(next?.split(',')).toHaveLength(2)
    expect(await mine.acquired()).toBe(2)
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
