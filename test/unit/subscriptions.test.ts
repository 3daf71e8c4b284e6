/** The channels of one process on one link. */
import { expect, it } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import { Subscriptions } from '../../src/engine/redis/subscriptions.js'

it('a listener that comes after the end does not open the link again', async () => {
  let opened = 0
  const subscriptions = new Subscriptions(() => {
    opened += 1
    const done = Promise.resolve()
    return { subscribe: () => done, unsubscribe: () => done, close: () => done }
  }, new ManualClock())
  await subscriptions.close()
  const late = subscriptions.add('channel', () => undefined)
  expect(await late.live).toBe(false)
  late.close()
  expect({ opened, size: subscriptions.size }).toEqual({ opened: 0, size: 0 })
})
