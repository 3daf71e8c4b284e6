/** The fair lock: the queue that it leaves, what a Java program does to it, and sees of it. */
import { describe, expect, test } from 'vitest'
import { PeerFairLock } from '../peer/fair-lock.js'
import { hash, list } from '../peer/snapshot.js'
import { eventually } from '../support/eventually.js'
import { A, B, C, goldenHoldfast, goldenStage } from './stage.js'

const stage = goldenStage()
const act = <R>(action: () => Promise<R>) => stage.recorder.act(action)
const AGES = 600_000

const [QUEUE, DEADLINES] = ['redisson_lock_queue:{n}', 'redisson_lock_timeout:{n}']
const peer = (owner: string) => new PeerFairLock(stage.raw, 'n', { owner })
const ours = async () => (await goldenHoldfast(stage)).fairLock('n')

/** Until the queue is so long. */
const queued = (count: number) =>
  eventually(async () => (await peer(A).queue()).length === count, `${count} in the queue`)

describe('what is left', () => {
  test('held without a queue: the key of the lock, and after the release nothing', async () => {
    const lock = await ours()
    const { reply: lease, keys } = await act(() => lock.acquire({ leaseTime: 20_000 }))
    expect(keys).toEqual({ n: hash({ [lease.owner]: 1 }, 20_000) })
    const nested = await act(() => lock.acquire({ within: lease, leaseTime: 20_000 }))
    expect(nested.keys).toMatchObject({ n: { value: { [lease.owner]: '2' } } })
    expect(await act(() => nested.reply.release())).toMatchObject({ reply: 'still-held', messages: [] })
    expect(await act(() => lease.release())).toEqual({ reply: 'released', keys: {}, messages: [] })
  })

  test.each([
    { waitTime: undefined, wait: 300_000 },
    { waitTime: 50_000, wait: 50_000 },
  ])(
    'a waiter with waitTime $waitTime: its deadline is now + wait + what is left of the lease',
    async ({ waitTime, wait }) => {
      await peer(A).tryWaiting({ leaseMs: 60_000 })
      const before = Date.now()
      const waiting = (await ours()).acquire({ waitTime, leaseTime: 20_000 })
      await queued(1)
      const after = Date.now()
      const [owner = ''] = await peer(A).queue()
      const deadline = Number(await peer(A).deadlineOf(owner))
      expect(deadline).toBeGreaterThanOrEqual(before + wait + 60_000 - (after - before) - 1_000)
      expect(deadline).toBeLessThanOrEqual(after + wait + 60_000)
      const { keys } = await act(() => Promise.resolve())
      expect(keys).toMatchObject({ [QUEUE]: list(owner), [DEADLINES]: { value: { [owner]: deadline } } })
      const freed = await act(() => peer(A).unlock('1'))
      expect(freed.messages).toContainEqual({ channel: `redisson_lock__channel:{n}:${owner}`, payload: '0' })
      const lease = await waiting
      expect(lease.owner).toBe(owner)
      expect((await act(() => lease.release())).keys).toEqual({})
    },
  )

  test('behind a Java waiter: one more wait; and it moves up when that one enters or gives up', async () => {
    const holder = await (await ours()).acquire({ leaseTime: AGES })
    await peer(A).tryWaiting({ waitMs: 100_000 })
    const waiting = (await ours()).acquire()
    await queued(2)
    const [, owner = ''] = await peer(A).queue()
    const [first, second] = [Number(await peer(A).deadlineOf()), Number(await peer(A).deadlineOf(owner))]
    expect(second).toSatisfy((ms: number) => ms >= first + 299_000 && ms <= first + 301_000)
    await holder.release()
    expect(await peer(A).tryWaiting({ waitMs: 100_000 })).toBeUndefined()
    // Moved by Java's wait.
    expect(await peer(A).deadlineOf(owner)).toBe(second - 100_000)
    await peer(A).unlock('1')
    await (await waiting).release()
  })
})

describe('who is told', () => {
  test('our release tells the head of the queue alone, and it stays there', async () => {
    const lease = await (await ours()).acquire({ leaseTime: AGES })
    await peer(A).tryWaiting()
    await peer(B).tryWaiting()
    const { messages } = await act(() => lease.release())
    expect(messages).toEqual([{ channel: `redisson_lock__channel:{n}:${A}`, payload: '0' }])
    expect(await peer(A).queue()).toEqual([A, B])
  })

  test('our forced release tells it too', async () => {
    const lock = await ours()
    await peer(C).tryWaiting({ leaseMs: AGES })
    await peer(A).tryWaiting()
    const { reply, messages } = await act(() => lock.forceRelease())
    expect(reply).toBe(true)
    expect(messages).toEqual([{ channel: `redisson_lock__channel:{n}:${A}`, payload: '0' }])
  })

  test('a waiter of ours that gives up leaves the queue; those behind it move up by its wait', async () => {
    await peer(C).tryWaiting({ leaseMs: AGES })
    const abort = new AbortController()
    const waiting = (await ours()).acquire({ signal: abort.signal, waitTime: 100_000 })
    await queued(1)
    await peer(A).tryWaiting()
    const before = Number(await peer(A).deadlineOf())
    abort.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await queued(1)
    expect(await peer(A).queue()).toEqual([A])
    expect(await peer(A).deadlineOf()).toBe(before - 100_000)
  })
})

describe('a queue that a Java program left', () => {
  test('a silent head with time left: nobody overtakes it, and nobody spins', async () => {
    await seed([A], { [A]: Date.now() + 60_000 })
    const lock = await ours()
    expect(await lock.tryAcquire()).toBeNull()
    const before = await scriptCalls()
    expect(await lock.tryAcquire({ waitTime: 1_000 })).toBeNull()
    // Redisson's own waiter asks thousands of times.
    expect((await scriptCalls()) - before).toBeLessThan(60)
    expect(await peer(A).queue()).toEqual([A])
  })

  test('a silent head: at the end of its time the next one enters', async () => {
    await seed([A], { [A]: Date.now() + 500 })
    const lease = await (await ours()).acquire({ leaseTime: 20_000 })
    expect((await act(() => Promise.resolve())).keys).toMatchObject({ n: { value: { [lease.owner]: '1' } } })
    expect(await peer(A).queue()).toEqual([])
  })

  test('heads whose time is over are cleared away at once', async () => {
    await seed([A, B], { [A]: Date.now() - 1, [B]: Date.now() - 1 })
    const { reply, keys } = await act(async () => (await ours()).tryAcquire({ leaseTime: 20_000 }))
    expect(Object.keys(keys)).toEqual(['n'])
    expect(reply?.held).toBe(true)
  })

  test.each([
    { what: 'a head without a deadline', queue: [A], deadlines: {} },
    { what: 'deadlines without a queue', queue: [], deadlines: { [A]: Date.now() + 60_000 } },
    { what: 'an owner that stands there twice', queue: [A, A], deadlines: { [A]: Date.now() - 1 } },
  ])('$what blocks nobody for ever', async ({ queue, deadlines }) => {
    await seed(queue, deadlines)
    const lease = await (await ours()).acquire({ leaseTime: AGES, pollInterval: 100 })
    expect(await lease.release()).toBe('released')
    expect(await peer(B).tryWaiting()).toBeUndefined()
  })
})

async function seed(queue: readonly string[], deadlines: Readonly<Record<string, number>>): Promise<void> {
  if (queue.length > 0) await stage.raw.command('RPUSH', QUEUE, ...queue)
  for (const [owner, ms] of Object.entries(deadlines)) await stage.raw.command('ZADD', DEADLINES, ms, owner)
}

async function scriptCalls(): Promise<number> {
  const info = String(await stage.raw.command('INFO', 'commandstats'))
  const calls = [...info.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)]
  return calls.reduce((sum, [, count]) => sum + Number(count), 0)
}
