import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ManualClock, type Clock, type Timer } from '../../src/clock.js'
import { Deadlines, type Waiting } from '../../src/lease/deadlines.js'

class Command implements Waiting {
  before: Waiting | undefined = undefined
  after: Waiting | undefined = undefined
  readonly deadlineMs: number
  readonly keepAlive: boolean
  readonly onDeadline: () => void

  constructor(deadlineMs: number, keepAlive: boolean, onDeadline: () => void) {
    this.deadlineMs = deadlineMs
    this.keepAlive = keepAlive
    this.onDeadline = onDeadline
  }
}

/** A manual clock that remembers which of its timers keep the process alive. */
class WatchedClock extends ManualClock {
  readonly alive = new Set<Timer>()

  override setTimer(callback: () => void, delayMs: number, keepAlive = true): Timer {
    const inner = super.setTimer(() => {
      this.alive.delete(timer)
      callback()
    }, delayMs)
    const timer: Timer = {
      cancel: () => {
        this.alive.delete(timer)
        inner.cancel()
      },
      keepAlive: (on) => {
        if (on) this.alive.add(timer)
        else this.alive.delete(timer)
      },
    }
    timer.keepAlive(keepAlive)
    return timer
  }
}

const make = (clock: Clock) => {
  const deadlines = new Deadlines(clock)
  const ended: number[] = []
  const add = (deadlineMs: number, keepAlive = false) => {
    const command = new Command(deadlineMs, keepAlive, () => {
      ended.push(clock.now())
      deadlines.remove(command)
    })
    deadlines.add(command)
    return command
  }
  return { deadlines, ended, add }
}

test('those that are not answered end at their deadline, those that are answered do not', async () => {
  // Each is sent some time after the one before, has 100 ms, and is answered after some time or too late.
  const histories = fc.array(fc.tuple(fc.nat(50), fc.nat(200)), { maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const clock = new ManualClock()
      const { deadlines, ended, add } = make(clock)
      const expected: number[] = []
      for (const [pauseMs, answeredAfterMs] of history) {
        await clock.advance(pauseMs)
        const command = add(clock.now() + 100)
        if (answeredAfterMs >= 100) expected.push(command.deadlineMs)
        else
          clock.setTimer(() => {
            deadlines.remove(command)
          }, answeredAfterMs)
      }
      await clock.advance(1_000)
      expect(ended).toEqual(expected)
      expect(clock.pendingTimers).toBe(0)
    }),
    { numRuns: 50 },
  )
})

test('keeps the process alive exactly while one of them does', async () => {
  const clock = new WatchedClock()
  const { deadlines, add } = make(clock)
  const quiet = add(100)
  expect(clock.alive.size).toBe(0)
  const loud = add(110, true)
  expect(clock.alive.size).toBe(1)
  const other = add(120, true)
  deadlines.remove(loud)
  expect(clock.alive.size).toBe(1)
  deadlines.remove(other)
  expect(clock.alive.size).toBe(0)
  deadlines.remove(quiet)
  await clock.advance(200)
  const again = add(300, true)
  expect(clock.alive.size).toBe(1)
  deadlines.remove(again)
  expect(clock.alive.size).toBe(0)
})

test('takes only what is in order', () => {
  const { deadlines, add } = make(new ManualClock())
  expect(deadlines.fits(5)).toBe(true)
  const first = add(100)
  expect([deadlines.fits(99), deadlines.fits(100), deadlines.fits(101)]).toEqual([false, true, true])
  deadlines.remove(first)
  expect(deadlines.fits(5)).toBe(true)
})

test('a blocked event loop ends all that are due in one turn', async () => {
  const clock = new ManualClock()
  const { ended, add } = make(clock)
  for (const deadlineMs of [10, 20, 30, 90]) add(deadlineMs)
  clock.block(50)
  await clock.advance(0)
  expect(ended).toEqual([50, 50, 50])
  await clock.advance(100)
  expect(ended).toEqual([50, 50, 50, 90])
})

test('one that does not take itself out ends once', async () => {
  const clock = new ManualClock()
  const deadlines = new Deadlines(clock)
  let ended = 0
  deadlines.add(new Command(10, false, () => (ended += 1)))
  deadlines.add(new Command(20, false, () => (ended += 1)))
  await clock.advance(100)
  expect(ended).toBe(2)
})
