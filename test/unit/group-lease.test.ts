import { expect, test } from 'vitest'
import { ManualClock, type Timer } from '../../src/clock.js'
import { Holdfast } from '../../src/index.js'

/** Timers come a part of a millisecond too early, as those of Node may. */
class HastyClock extends ManualClock {
  override setTimer(callback: () => void, delayMs: number): Timer {
    return super.setTimer(callback, delayMs > 1 ? delayMs - 0.5 : delayMs)
  }
}

test('maxHold of several locks ends their renewal, also by a timer that is early', async () => {
  const clock = new HastyClock()
  const holdfast = await Holdfast.connect('memory:', { clock, lockWatchdogTimeout: 1_000 })
  const lease = await holdfast.multiLock([holdfast.lock('a'), holdfast.lock('b')]).acquire({ maxHold: 100 })
  const { signal } = lease
  await clock.advance(99.9)
  expect(signal.reason).toMatchObject({ reason: 'max-hold' })
  await clock.advance(1_000)
  expect(await holdfast.lock('a').isLocked()).toBe(false)
  expect(await holdfast.lock('b').isLocked()).toBe(false)
  await lease.release()
})
