import { expect, it } from 'vitest'
import { elsewhere, stage, watched } from '../support/staged-engine.js'

it('a message that comes while an attempt is under way is not lost', async () => {
  const scene = stage()
  const { clock, engine, lock } = scene
  const lease = await elsewhere(scene).acquire()
  const waiter = watched(lock().acquire())
  await clock.advance(0)
  // The next attempt is executed while the lock is held, but its answer is late.
  let answer = (): void => undefined
  engine.direction = async (operation, run) => {
    const reply = await run()
    if (operation.op === 'lock.acquire') await new Promise<void>((resolve) => (answer = resolve))
    return reply
  }
  await clock.advance(5_000)
  expect(waiter.settled).toBe(false)
  await lease.release()
  engine.direction = (_operation, run) => run()
  answer()
  await clock.advance(0)
  expect(waiter.value).toMatchObject({ held: true })
})

it('one look at a time: callers behind the head ask nothing', async () => {
  const scene = stage()
  const { clock, engine, lock, runtime } = scene
  const lease = await elsewhere(scene).acquire()
  const waiters = Array.from({ length: 500 }, () => watched(lock().using(() => undefined)))
  await clock.advance(60_000)
  // An attempt, one more after the subscription, then one each five seconds.
  expect(engine.asked.length).toBeLessThan(20)
  expect(runtime.stats()).toMatchObject({ waiting: 500, contests: 1 })
  await lease.release()
  await clock.advance(0)
  expect(waiters.every(({ settled }) => settled)).toBe(true)
  expect(runtime.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
})

it('a holder that outlives its TTL is not asked more and more often', async () => {
  const scene = stage()
  const { clock, engine, lock, store } = scene
  await elsewhere(scene).acquire({ leaseTime: 1_000 })
  const waiter = watched(lock().acquire())
  await clock.advance(990)
  // As if the server's clock stood still: the key keeps its last milliseconds.
  const frozen = store.read('x')
  engine.direction = (_operation, run) => {
    store.write('x', { ...frozen, expiresAtMs: clock.now() + 1 })
    return run()
  }
  engine.asked.length = 0
  await clock.advance(60_000)
  expect(waiter.settled).toBe(false)
  expect(engine.asked.length).toBeLessThan(40)
})
