/** What a holder believes, against what the engine says: the belief must end first. */
import { describe, expect, test } from 'vitest'
import { Holdfast, ManualClock } from '../../src/index.js'
import { stage } from '../support/staged-engine.js'

const open = async (options: { lockWatchdogTimeout?: number } = {}) => {
  const clock = new ManualClock()
  const address = `memory:${crypto.randomUUID()}`
  const holdfast = await Holdfast.connect(address, { clock, ...options })
  const other = await Holdfast.connect(address, { clock })
  return { clock, holdfast, lock: holdfast.lock('orders'), others: other.lock('orders') }
}

describe('the belief in a lease ends before the lease does', () => {
  test.each([1, 2, 5, 10, 100, 1_000, 60_000, 10 ** 9])('a lease of %d ms', async (leaseTime) => {
    const { clock, lock, others } = await open()
    const lease = await lock.acquire({ leaseTime })
    const { remaining } = lease
    expect(remaining).toBeGreaterThan(0)
    expect(remaining).toBeLessThan(leaseTime)
    const { signal } = lease
    await clock.advance(remaining / 2)
    expect(lease.held).toBe(true)
    await clock.advance(remaining / 2)
    expect(lease.held).toBe(false)
    expect(signal.aborted).toBe(true)
    // The engine still has it: nobody else can be inside already.
    expect(await others.tryAcquire()).toBeNull()
    await clock.advance(leaseTime - remaining)
    expect(await others.tryAcquire()).not.toBeNull()
  })

  test('when the event loop was blocked the signal fires before anything else, and nothing is renewed', async () => {
    const { clock, lock, others } = await open({ lockWatchdogTimeout: 3_000 })
    const lease = await lock.acquire()
    const order: string[] = []
    lease.signal.addEventListener('abort', () => order.push('the signal'))
    clock.setTimer(() => order.push('a timer of the work'), 3_000)
    clock.block(3_500)
    expect(lease.held).toBe(false)
    await clock.advance(0)
    expect(order).toEqual(['the signal', 'a timer of the work'])
    expect(await others.tryAcquire()).not.toBeNull()
    expect(await lease.release()).toBe('expired')
    expect(await others.isLocked()).toBe(true)
  })

  test('a late tick before the deadline renews', async () => {
    const { clock, lock, others } = await open({ lockWatchdogTimeout: 3_000 })
    const lease = await lock.acquire()
    clock.block(2_900)
    await clock.advance(0)
    await clock.advance(2_000)
    expect(lease.held).toBe(true)
    expect(await others.tryAcquire()).toBeNull()
  })

  test('a machine that slept is not believed until the engine has confirmed', async () => {
    const { clock, lock } = await open()
    const lease = await lock.acquire({ leaseTime: 60_000 })
    clock.sleepMachine(30_000)
    expect(lease.held).toBe(false)
    expect(lease.signal.aborted).toBe(false)
    await clock.advance(1)
    expect(lease.held).toBe(true)
    await lease.release()
  })

  test('an extension after a sleep promises no more than the engine was asked for', async () => {
    const { clock, lock, others } = await open()
    const lease = await lock.acquire({ leaseTime: 60_000 })
    clock.sleepMachine(30_000)
    await lease.extend(1)
    expect(lease.held).toBe(true)
    expect(lease.remaining).toBeLessThanOrEqual(await others.remainingTime())
    expect(lease.remaining).toBeGreaterThan(58_000)
  })

  test('a sleep that only the uptime tells puts every lease in doubt at the next tick', async () => {
    const { clock, lock, engine } = stage()
    clock.wall = () => 1_000_000 + clock.now()
    await lock('watched').acquire()
    const bare = await lock('bare').acquire({ leaseTime: 60_000 })
    clock.sleepMachine(30_000)
    expect(bare.held).toBe(true)
    await clock.advance(10_000)
    const renewed = engine.asked.flatMap((operation) =>
      operation.op === 'lock.renew' ? operation.holds.map(({ name }) => name) : [],
    )
    expect(renewed.sort()).toEqual(['bare', 'watched'])
  })
})

test('a lease that is released after its belief has ended is freed at once, without waiting for the engine', async () => {
  const { clock, lock, others } = await open()
  const lease = await lock.acquire({ leaseTime: 60_000 })
  await clock.advance(lease.remaining)
  expect(await others.tryAcquire()).toBeNull()
  expect(await lease.release()).toBe('expired')
  await clock.advance(0)
  expect(await others.tryAcquire()).not.toBeNull()
})

describe('the watchdog', () => {
  test('renews many in few commands, at most 100 in one', async () => {
    const { clock, lock, engine } = stage()
    for (let i = 0; i < 250; i++) await lock(`lock ${i}`).acquire()
    await clock.advance(10_000)
    const sizes = engine.asked.flatMap((asked) => (asked.op === 'lock.renew' ? [asked.holds.length] : []))
    expect(sizes).toEqual([100, 100, 50])
  })

  test('renews every third of its time-out', async () => {
    const { clock, lock, others } = await open()
    await lock.acquire()
    const seen: number[] = []
    for (let i = 0; i < 4; i++) {
      await clock.advance(9_999)
      seen.push(await others.remainingTime())
      await clock.advance(1)
      seen.push(await others.remainingTime())
    }
    expect(seen).toEqual(Array.from({ length: 4 }, () => [20_001, 30_000]).flat())
  })

  test('renews for ever, and stops with the release', async () => {
    const { clock, lock, holdfast } = await open()
    const lease = await lock.acquire()
    await clock.advance(3_600_000)
    expect(lease.held).toBe(true)
    await lease.release()
    expect(holdfast.stats()).toMatchObject({ held: 0, pending: 0 })
    await clock.advance(30_000)
    expect(clock.pendingTimers).toBe(0)
  })
})
