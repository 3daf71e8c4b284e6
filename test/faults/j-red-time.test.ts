/** Several servers, group J: what is left of a lease when it is handed over, and how long it lasts. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import { MemoryStore } from '../../src/engine/memory/memory-store.js'
import { Runtime } from '../../src/lease/runtime.js'
import { redOf, RedLockObject } from '../../src/locks/red-lock.js'
import { resolveHoldfastOptions } from '../../src/options.js'
import { eventually } from '../support/eventually.js'
import { StagedEngine, watched } from '../support/staged-engine.js'
import { openServers, redOn } from './support/servers.js'

const NAME = 'orders:42'

test('fault 95: what is handed over after a long wait has its time before it', async () => {
  await using servers = await openServers(3)
  const [holder, waiter] = [await servers.red(NAME), await servers.red(NAME)]
  for (let turn = 0; turn < 3; turn++) {
    const held = await holder.acquire()
    const waiting = waiter.acquire({ leaseTime: 1_000 })
    const startMs = performance.now()
    await eventually(() => performance.now() - startMs > 1_200, 'more than the lease time has passed')
    await held.release()
    const lease = await waiting
    expect(lease.held).toBe(true)
    expect(lease.remaining).toBeGreaterThan(0)
    await lease.release()
  }
})

test('fault 95: a grant whose time is over before it arrives is given back', async () => {
  await using servers = await openServers(3)
  const proxies = await Promise.all(servers.scenes.map((scene) => scene.proxy()))
  const members = proxies.map(({ port }, i) =>
    servers.at(i).holdfast({ subscriber: 'off' }, servers.at(i).ioredis({ port })),
  )
  const red = await redOn(NAME, members, { memberTimeout: 10_000 })
  for (const proxy of proxies.slice(0, 2)) proxy.delayReplies(260)
  expect(await red.tryAcquire({ waitTime: 1_500, leaseTime: 200 }).catch(() => null)).toBeNull()
  for (const proxy of proxies) proxy.delayReplies(0)
  await servers.untilGone(NAME)
  expect(await red.tryUsing({ leaseTime: 60_000 }, () => 'in')).toMatchObject({ acquired: true })
})

test('fault 96: a lease taken after a long wait is renewed from the start', async () => {
  await using servers = await openServers(3)
  const settings = { lockWatchdogTimeout: 1_000 }
  const [holder, waiter] = [await servers.red(NAME, settings), await servers.red(NAME, settings)]
  const held = await holder.acquire()
  const aborted: unknown[] = []
  const work = waiter.using(async (lease) => {
    lease.signal.addEventListener('abort', () => aborted.push(lease.signal.reason))
    const startMs = performance.now()
    await eventually(() => performance.now() - startMs > 2_500, 'the work goes on')
    return lease.held
  })
  const startMs = performance.now()
  await eventually(() => performance.now() - startMs > 1_200, 'it has waited')
  await held.release()
  expect(await work).toBe(true)
  expect(aborted).toEqual([])
})

interface Delay {
  /** Until the server executes it, and from there until the answer arrives. */
  readonly there: number
  readonly back: number
}

const delay = fc.record({ there: fc.nat({ max: 700 }), back: fc.nat({ max: 700 }) })

/** A lock over three engines whose every answer takes its time. */
function slowRed(delays: readonly Delay[], clockDrift: number) {
  const clock = new ManualClock()
  const stores = delays.map(() => new MemoryStore(clock))
  const members = stores.map((store, i) => {
    const engine = new StagedEngine(store)
    const { there, back } = delays[i] ?? { there: 0, back: 0 }
    const wait = (ms: number) => new Promise<void>((resolve) => clock.setTimer(resolve, ms))
    engine.direction = async (_operation, run, passage) => {
      // It is on its way from here on.
      passage.sends += 1
      passage.firstSentAtMs = clock.now()
      await wait(there)
      const reply = await run()
      await wait(back)
      return reply
    }
    const runtime = new Runtime(engine, resolveHoldfastOptions({ clock, clockDrift }))
    return { runtime, target: { family: 'lock' as const, name: NAME, title: NAME } }
  })
  const [first] = members
  if (first === undefined) throw new Error('there is no member')
  return {
    clock,
    stores,
    red: new RedLockObject(first.runtime, redOf(NAME, members, { memberTimeout: 10_000 })),
  }
}

test('fault 104: a majority of the servers has the lock for longer than the holder believes', async () => {
  const drifts = fc.constantFrom(0, 0.01, 0.1)
  const leases = fc.integer({ min: 100, max: 1_500 })
  let granted = 0
  await fc.assert(
    fc.asyncProperty(fc.tuple(delay, delay, delay), leases, drifts, async (delays, leaseTime, clockDrift) => {
      const { clock, stores, red } = slowRed(delays, clockDrift)
      const seen = watched(red.tryAcquire({ leaseTime }))
      while (!seen.settled) await clock.advance(1)
      const lease = seen.value
      if (lease === undefined || lease === null) return
      granted += 1
      expect(lease.remaining).toBeGreaterThan(0)
      // An answer that comes in later may put the end off.
      for (let left = lease.remaining; left > 0; left = lease.remaining) {
        const endMs = clock.now() + left
        const lasting = stores.filter((store) => {
          const { value, expiresAtMs } = store.read(NAME)
          return value !== undefined && expiresAtMs >= endMs + 2 + leaseTime * clockDrift
        })
        expect(lasting.length).toBeGreaterThanOrEqual(2)
        await clock.advance(Math.ceil(left))
      }
      expect(lease.held).toBe(false)
    }),
    { numRuns: 60 },
  )
  expect(granted).toBeGreaterThan(10)
})
