import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ManualClock, systemClock } from '../../src/clock.js'

describe('timers of the machine', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const YEAR_MS = 365 * 24 * 3_600_000

  test('may be longer than Node takes: they are armed again in steps', () => {
    const fired = vi.fn()
    systemClock.setTimer(fired, YEAR_MS, true)
    vi.advanceTimersByTime(YEAR_MS - 1)
    expect(fired).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(fired).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([0, YEAR_MS / 2])('a long one can be withdrawn (after %d ms)', (afterMs) => {
    const fired = vi.fn()
    const timer = systemClock.setTimer(fired, YEAR_MS, true)
    vi.advanceTimersByTime(afterMs)
    timer.cancel()
    expect(vi.getTimerCount()).toBe(0)
    vi.advanceTimersByTime(2 * YEAR_MS)
    expect(fired).not.toHaveBeenCalled()
  })

  test('a longest one never fires at once', () => {
    const fired = vi.fn()
    systemClock.setTimer(fired, Number.MAX_SAFE_INTEGER, true)
    vi.advanceTimersByTime(1_000)
    expect(fired).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(1)
  })

  test('never fire early: fractions are rounded up', () => {
    const fired = vi.fn()
    systemClock.setTimer(fired, 10.2, true)
    vi.advanceTimersByTime(10)
    expect(fired).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(fired).toHaveBeenCalledOnce()
  })

  test('keep the process alive or not, also after they were armed again', () => {
    const spy = vi.spyOn(globalThis, 'setTimeout')
    const handles = () => spy.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())
    const timer = systemClock.setTimer(() => undefined, YEAR_MS, false)
    expect(handles()).toEqual([false])
    vi.advanceTimersByTime(2 ** 31)
    expect(handles().at(-1)).toBe(false)
    timer.keepAlive(true)
    expect(handles().at(-1)).toBe(true)
    vi.advanceTimersByTime(2 ** 31)
    expect(handles().at(-1)).toBe(true)
    timer.keepAlive(false)
    expect(handles().at(-1)).toBe(false)
    timer.cancel()
  })

  test('may be withdrawn when they have fired', () => {
    const timer = systemClock.setTimer(() => undefined, 5, true)
    vi.advanceTimersByTime(5)
    timer.cancel()
    timer.keepAlive(true)
    timer.keepAlive(false)
  })
})

test('the clocks of the machine go forward in milliseconds', () => {
  const before = [systemClock.now(), systemClock.wall(), systemClock.uptime()]
  expect(systemClock.wall()).toBeGreaterThan(Date.UTC(2020, 0))
  expect(systemClock.uptime()).toBeGreaterThan(1_000)
  const after = [systemClock.now(), systemClock.wall(), systemClock.uptime()]
  after.forEach((time, i) => {
    expect(time).toBeGreaterThanOrEqual(before[i] ?? NaN)
  })
})

describe('a manual clock', () => {
  test('fires what is due in order of time, then of registration, at its time', async () => {
    const clock = new ManualClock()
    const fired: string[] = []
    const note = (words: string) => () => fired.push(`${words} at ${clock.now()}`)
    clock.setTimer(note('late'), 30)
    clock.setTimer(note('one'), 10)
    clock.setTimer(note('two'), 10)
    clock.setTimer(note('never'), 41)
    await clock.advance(40)
    expect(fired).toEqual(['one at 10', 'two at 10', 'late at 30'])
    expect(clock.now()).toBe(40)
    expect(clock.pendingTimers).toBe(1)
  })

  test('fires timers that timers set, and those that promises set in between', async () => {
    const clock = new ManualClock()
    const fired: number[] = []
    const tick = () => {
      fired.push(clock.now())
      void Promise.resolve()
        .then(() => undefined)
        .then(() => clock.setTimer(tick, 10))
    }
    clock.setTimer(tick, 10)
    await clock.advance(35)
    expect(fired).toEqual([10, 20, 30])
  })

  test('does not fire what was withdrawn, also by another timer', async () => {
    const clock = new ManualClock()
    const fired: string[] = []
    const second = clock.setTimer(() => fired.push('second'), 20)
    clock.setTimer(() => {
      fired.push('first')
      second.cancel()
    }, 10)
    await clock.advance(100)
    expect(fired).toEqual(['first'])
    second.cancel()
    expect(clock.pendingTimers).toBe(0)
  })

  test('fires a negative delay at the next step, without going back', async () => {
    const clock = new ManualClock()
    await clock.advance(50)
    const fired: number[] = []
    clock.setTimer(() => fired.push(clock.now()), -10)
    expect(fired).toEqual([])
    await clock.advance(0)
    expect(fired).toEqual([50])
  })

  test('that is blocked fires late, all at once', async () => {
    const clock = new ManualClock()
    const fired: number[] = []
    clock.setTimer(() => fired.push(clock.now()), 10)
    clock.setTimer(() => fired.push(clock.now()), 20)
    clock.block(100)
    expect(fired).toEqual([])
    await clock.advance(0)
    expect(fired).toEqual([100, 100])
  })

  test('that sleeps stands still while the world goes on', async () => {
    const clock = new ManualClock(5_000)
    await clock.advance(10)
    clock.sleepMachine(1_000)
    expect([clock.now(), clock.wall(), clock.uptime()]).toEqual([10, 6_010, 1_010])
  })
})
