/** Acquiring a spin lock, group C: the time that its waiters sleep. */
import { expect, test } from 'vitest'
import { constantBackoff, exponentialBackoff, Holdfast, ManualClock } from '../../src/index.js'
import { watch } from './scene.js'

test.each([
  ['that grows', exponentialBackoff()],
  ['longer than waitTime', constantBackoff(60_000)],
])('fault 32: a back-off %s is cut to the rest of waitTime', async (what, backoff) => {
  const clock = new ManualClock()
  const store = `memory:fault-32-spin-${what}`
  const holder = await Holdfast.connect(store, { clock })
  const waiter = await Holdfast.connect(store, { clock })
  await holder.spinLock('order').acquire({ leaseTime: 60_000 })
  const waiting = waiter.spinLock('order', { backoff }).tryAcquire({ waitTime: 500 })
  const state = watch(waiting)
  await clock.advance(499)
  expect(state.settled).toBe(false)
  await clock.advance(1)
  expect(state.settled).toBe(true)
  expect(await waiting).toBeNull()
})
