/** Mistakes and misunderstandings of first-time users, each with an answer. */
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { Holdfast, type UnderLease } from '../../src/index.js'
import { stage, unavailable } from '../support/staged-engine.js'
import { startRedis } from '../support/server.js'

it('options behind the callback are refused, not dropped', async () => {
  const holdfast = await Holdfast.connect('memory:')
  const lock = holdfast.lock('a')
  const using = lock.using.bind(lock) as (...args: unknown[]) => Promise<unknown>
  await expect(using(() => 1, { waitTime: 5 })).rejects.toThrow(/using\(options, callback\)/)
  expect(await lock.isLocked()).toBe(false)
  await holdfast.close()
})

it('a lease can be logged as JSON', async () => {
  const holdfast = await Holdfast.connect('memory:')
  const lease = await holdfast.lock('a').acquire()
  expect(JSON.parse(JSON.stringify({ lease }))).toEqual({ lease: { lock: 'a', owner: lease.owner } })
  await lease.release()
  await holdfast.close()
})

it('one signal for many waiting calls warns of no leak', async () => {
  const warnings: string[] = []
  const listen = ({ name }: Error): number => warnings.push(name)
  process.on('warning', listen)
  const holdfast = await Holdfast.connect('memory:')
  const lease = await holdfast.lock('a').acquire()
  const shutDown = new AbortController()
  const { signal } = shutDown
  const calls = Array.from({ length: 50 }, () => holdfast.lock('a').acquire({ signal }))
  shutDown.abort(new Error('shutting down'))
  for (const call of calls) await expect(call).rejects.toThrow('shutting down')
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
  process.off('warning', listen)
  await lease.release()
  await holdfast.close()
})

it('the outcome is unknown if any attempt may have been applied, whatever became of the last one', async () => {
  const { clock, lock, engine } = stage({ unavailableAfter: 1_000 })
  let attempts = 0
  engine.direction = ({ op }, run, passage) => {
    if (op !== 'lock.acquire') return run()
    attempts += 1
    if (attempts > 1) return unavailable('not-applied')
    passage.sends += 1
    return unavailable('unknown')
  }
  const call = lock().acquire()
  const settled = expect(call).rejects.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' })
  await clock.advance(5_000)
  await settled
  expect(attempts).toBeGreaterThan(1)
})

it("the application's own client is not taken for the subscriber", async () => {
  await using server = await startRedis()
  const redis = new Redis(server.url)
  await once(redis, 'ready')
  expect(() => new Holdfast(redis, { subscriber: redis })).toThrow(/a client of its own/)
  redis.disconnect()
})

it('a type of callback is exported for wrappers', async () => {
  const callback: UnderLease<number> = (lease) => lease.holdCount
  const holdfast = await Holdfast.connect('memory:')
  expect(await holdfast.lock('a').using(callback)).toBe(1)
  await holdfast.close()
})
