/** The permit semaphore: the state it leaves, what a Java program does to it, and sees of it. */
import { describe, expect, test } from 'vitest'
import { PeerPermits, permitId } from '../peer/permit-semaphore.js'
import { text, zset } from '../peer/snapshot.js'
import { NO_LEASE } from '../peer/wire.js'
import { eventually } from '../support/eventually.js'
import { goldenHoldfast, goldenStage, shared } from './stage.js'

const stage = goldenStage()
const act = async <R>(action: () => Promise<R>) => {
  const step = await stage.recorder.act(action)
  return { ...step, keys: shared(step.keys) }
}
const AGES = 600_000

const CHANNEL = 'redisson_sc:{n}'
const PERMITS = '{n}:timeout'
const peer = () => new PeerPermits(stage.raw, 'n')
const ours = async (permits?: number) => (await goldenHoldfast(stage)).permitSemaphore('n', { permits })
const told = (payload: number) => [{ channel: CHANNEL, payload: String(payload) }]

/** Until so many connections listen for permits. */
const listened = (count = 1) =>
  eventually(async () => {
    const reply = await stage.raw.command('PUBSUB', 'NUMSUB', CHANNEL)
    return Array.isArray(reply) && Number(reply[1]) >= count
  }, 'the waiter listens')

describe('what is left', () => {
  test('set, taken, released: a count, and a raw id with the epoch of its end', async () => {
    const semaphore = await ours()
    expect(await act(() => semaphore.trySet(3))).toEqual({
      reply: true,
      keys: { n: text(3, 'none') },
      messages: told(3),
    })
    const before = Date.now()
    const { reply: lease, keys, messages } = await act(() => semaphore.acquire({ leaseTime: AGES }))
    const after = Date.now()
    expect(messages).toEqual([])
    expect(Object.keys(keys).sort()).toEqual(['n', PERMITS].sort())
    expect(keys['n']).toEqual(text(2, 'none'))
    expect(await peer().ids()).toEqual(lease.ids)
    expect(
      await stage.raw.command('EVAL', "return #redis.call('ZRANGE', KEYS[1], 0, 0)[1]", 1, PERMITS),
    ).toBe(16)
    const end = Number(Object.values(keys[PERMITS]?.value as Record<string, number>)[0])
    expect(end).toSatisfy((ms: number) => ms >= before + AGES && ms <= after + AGES)
    expect(await act(() => lease.release())).toMatchObject({
      reply: 'released',
      keys: { n: text(3, 'none') },
      messages: told(3),
    })
  })

  test('the count is there with the first acquire where `permits` says it', async () => {
    const { keys } = await act(async () => (await ours(2)).acquire({ leaseTime: AGES }))
    expect(keys['n']).toEqual(text(1, 'none'))
  })

  test('a TTL of the count is kept for the ids too', async () => {
    await stage.raw.command('SET', 'n', 2, 'PX', 50_000)
    await (await ours()).acquire({ leaseTime: 20_000 })
    const ttls = await Promise.all(['n', PERMITS].map((key) => stage.raw.command('PTTL', key)))
    for (const ttl of ttls) expect(ttl).toSatisfy((ms: number) => ms > 0 && ms <= 50_000)
  })

  test('the total, changed and added to', async () => {
    const semaphore = await ours()
    await semaphore.trySet(2)
    await semaphore.acquire({ leaseTime: AGES })
    expect((await act(() => semaphore.set(5))).keys['n']).toEqual(text(4, 'none'))
    expect((await act(() => semaphore.add(-5))).keys['n']).toEqual(text(-1, 'none'))
    expect([await peer().available(), await peer().total(), await peer().acquired()]).toEqual([-1, 0, 1])
  })
})

describe('with the permits of a Java program', () => {
  test('ids of any bytes are released, looked at and lengthened by their hex', async () => {
    const semaphore = await ours()
    const odd = ['00', '0d0a', 'ff', '7c7c'].map((end) => end.padStart(32, 'c328a0a1'))
    await semaphore.trySet(4)
    await peer().tryAcquire({ ids: odd, leaseMs: 60_000 })
    expect(await semaphore.acquired()).toBe(4)
    for (const id of odd) {
      expect(await semaphore.updateLeaseTime(id, AGES)).toBe(true)
      expect(await semaphore.remainingTime(id)).toBeGreaterThan(AGES / 2)
      await semaphore.release(id)
    }
    expect((await act(() => Promise.resolve())).keys).toEqual({ n: text(4, 'none') })
  })

  test('an expired one is recycled, and the rest is told', async () => {
    const semaphore = await ours()
    await semaphore.trySet(2)
    await peer().tryAcquire({ ids: [permitId(), permitId()], leaseMs: 1, now: Date.now() - 1_000 })
    const { reply, messages } = await act(() => semaphore.tryAcquire({ leaseTime: AGES }))
    expect(reply?.ids).toHaveLength(1)
    for (const { payload } of messages) expect(Number(payload)).toBeGreaterThanOrEqual(0)
    expect(await semaphore.available()).toBe(1)
  })

  test('a waiter takes one over at its end, with nobody there to tell', async () => {
    const semaphore = await ours()
    await semaphore.trySet(1)
    await peer().tryAcquire({ leaseMs: 500 })
    expect((await semaphore.acquire({ leaseTime: AGES, pollInterval: AGES })).held).toBe(true)
  })

  test('one without a lease stays', async () => {
    const semaphore = await ours()
    await semaphore.trySet(1)
    const { ids } = await peer().tryAcquire()
    expect(await semaphore.tryAcquire({ waitTime: 50 })).toBeNull()
    expect(await semaphore.remainingTime(ids?.[0] ?? '')).toBe(Infinity)
    expect((await act(() => Promise.resolve())).keys).toMatchObject({
      n: text(0, 'none'),
      [PERMITS]: zset({ [ids?.[0] ?? '']: Number(NO_LEASE) }),
    })
  })

  test('ids of the form before 3.17 are there, and nothing breaks', async () => {
    const semaphore = await ours()
    await semaphore.trySet(1)
    await stage.raw.command('ZADD', PERMITS, Date.now() + AGES, '0123456789abcdef0123456789abcdef')
    await expect(semaphore.release('0123456789abcdef0123456789abcdef')).rejects.toMatchObject({
      code: 'HOLDFAST_NOT_HELD',
    })
    expect(await stage.raw.command('ZCARD', PERMITS)).toBe(1)
  })
})

describe('what is told, both ways', () => {
  test.each(['1', '0', '1000', '-2', '', 'no number'])(
    'a message %j wakes, or is ignored, and breaks nothing',
    async (payload) => {
      const semaphore = await ours()
      await semaphore.trySet(1)
      const { ids } = await peer().tryAcquire({ leaseMs: AGES })
      const waiting = semaphore.acquire({ pollInterval: AGES })
      await listened()
      await stage.raw.command('PUBLISH', CHANNEL, payload)
      expect(await peer().tryRelease(ids?.[0] ?? '')).toBe(true)
      expect((await waiting).held).toBe(true)
    },
  )

  test('nothing that we tell is below zero', async () => {
    const semaphore = await ours()
    const heard = await stage.raw.subscribe(CHANNEL)
    await semaphore.trySet(1)
    const lease = await semaphore.acquire({ leaseTime: AGES })
    await semaphore.set(0)
    await semaphore.add(-3)
    await lease.release()
    await semaphore.add(1)
    for (const { payload } of await heard.take()) expect(payload).toMatch(/^[0-9]+$/)
    heard.close()
  })
})
