/** The stand-ins for Redisson's locks leave behind what the wire describes, to the byte. */
import { describe, expect, test } from 'vitest'
import { PeerFairLock } from '../peer/fair-lock.js'
import { PeerFencedLock, PeerNonReentrantLock, PeerSpinLock } from '../peer/lock.js'
import { PeerReadWriteLock } from '../peer/read-write-lock.js'
import { hash, list, text, zset } from '../peer/snapshot.js'
import { A, B, C, goldenStage } from './stage.js'

const stage = goldenStage()
const act = <R>(action: () => Promise<R>) => stage.recorder.act(action)

const RW_CHANNEL = 'redisson_rwlock:{n}'

describe('non-re-entrant, spin and fenced', () => {
  test('a second entry is refused in words, another owner by the TTL', async () => {
    const [mine, theirs] = [A, B].map((owner) => new PeerNonReentrantLock(stage.raw, 'n', owner))
    expect((await act(async () => mine?.tryAcquire(20_000))).reply).toBeUndefined()
    await expect(mine?.tryAcquire(20_000)).rejects.toThrow(/NON_REENTRANT_REACQUIRE/)
    expect(await theirs?.tryAcquire()).toBeGreaterThan(0)
    expect((await act(async () => undefined)).keys).toEqual({ n: hash({ [A]: 1 }, 20_000) })
  })

  test('a spin lock tells nobody', async () => {
    const spin = new PeerSpinLock(stage.raw, 'n', A)
    await spin.tryAcquire()
    expect(await act(() => spin.unlock('1'))).toEqual({ reply: 1, keys: {}, messages: [] })
    await spin.tryAcquire()
    expect(await act(() => spin.forceUnlock())).toEqual({ reply: true, keys: {}, messages: [] })
  })

  test('tokens 1, 2 and, after expiry, 3; deleted, 1 again', async () => {
    const fenced = new PeerFencedLock(stage.raw, 'n', A)
    const token = 'redisson_lock_token:{n}'
    expect(await act(() => fenced.acquireWithToken(20_000))).toEqual({
      reply: [-1, 1],
      keys: { n: hash({ [A]: 1 }, 20_000), [token]: text(1, 'none') },
      messages: [],
    })
    expect(await fenced.acquireWithToken(20_000)).toEqual([-1, 2])
    const [ttl, none] = await new PeerFencedLock(stage.raw, 'n', B).acquireWithToken()
    expect(ttl).toBeGreaterThan(0)
    expect(none).toBe(-1)
    await stage.raw.command('DEL', 'n')
    expect(await fenced.acquireWithToken()).toEqual([-1, 3])
    await fenced.unlock('1')
    expect(await fenced.token()).toBe(3)
    await fenced.delete()
    expect(await fenced.acquireWithToken()).toEqual([-1, 1])
  })
})

describe('fair', () => {
  const NOW = 1_000_000
  const fair = (owner: string) => new PeerFairLock(stage.raw, 'n', { owner })
  const [QUEUE, DEADLINES] = ['redisson_lock_queue:{n}', 'redisson_lock_timeout:{n}']

  /** Redis' own time goes on while the client's is frozen: as if it had not. */
  const freeze = () => stage.raw.command('PEXPIRE', 'n', 30_000)

  test('A holds, B and C queue, A is gone: the table of the wire', async () => {
    expect(await fair(A).tryWaiting({ now: NOW })).toBeUndefined()
    await freeze()
    const first = Number(await fair(B).tryWaiting({ now: NOW + 10 }))
    expect(first).toSatisfy((ttl: number) => ttl > 29_000 && ttl <= 30_000)
    const deadline = Number(await fair(B).deadlineOf())
    expect(deadline).toBe(NOW + 10 + 300_000 + first)
    expect(await fair(C).tryWaiting({ now: NOW + 20 })).toBe(deadline - NOW - 20)
    expect(await fair(C).deadlineOf()).toBe(deadline + 300_000)
    expect(await fair(B).tryOnce({ now: NOW + 40 })).toBe(1)
    const { keys } = await act(() => stage.raw.command('DEL', 'n'))
    expect(keys).toEqual({
      [QUEUE]: list(B, C),
      [DEADLINES]: zset({ [B]: deadline, [C]: deadline + 300_000 }),
    })
    expect(await fair(C).tryWaiting({ now: NOW + 50 })).toBe(0)
    const entered = await act(() => fair(B).tryWaiting({ now: NOW + 60 }))
    expect(entered.reply).toBeUndefined()
    expect(entered.keys).toEqual({
      n: hash({ [B]: 1 }, 30_000),
      [QUEUE]: list(C),
      [DEADLINES]: zset({ [C]: deadline }),
    })
  })

  test('an unlock tells the head only, which stays queued; without a queue nobody', async () => {
    await fair(A).tryWaiting()
    await fair(B).tryWaiting()
    await fair(C).tryWaiting()
    const step = await act(() => fair(A).unlock('1'))
    expect(step).toMatchObject({
      reply: 1,
      messages: [{ channel: `redisson_lock__channel:{n}:${B}`, payload: '0' }],
    })
    expect(await fair(B).queue()).toEqual([B, C])
    expect((await act(() => fair(C).unlock('2'))).messages).toHaveLength(1)
  })

  test.each([
    { who: B, queue: [C], shifted: [C] },
    { who: C, queue: [B], shifted: [] },
  ])('who gives up moves only those behind it', async ({ who, queue, shifted }) => {
    await fair(A).tryWaiting({ now: NOW })
    await fair(B).tryWaiting({ now: NOW, waitMs: 5_000 })
    await fair(C).tryWaiting({ now: NOW, waitMs: 5_000 })
    const before = Object.fromEntries(
      await Promise.all(queue.map(async (owner) => [owner, Number(await fair(owner).deadlineOf())] as const)),
    )
    expect((await act(() => fair(who).acquireFailed(5_000))).messages).toEqual([])
    expect(await fair(A).queue()).toEqual(queue)
    for (const owner of queue) {
      const shift = shifted.includes(owner) ? 5_000 : 0
      expect(await fair(owner).deadlineOf()).toBe(Number(before[owner]) - shift)
    }
  })

  test('four waiters of 5 s behind a lease of 30 s are told 30, 35, 40 and 45 s', async () => {
    await fair(A).tryWaiting({ now: NOW })
    const told = []
    for (const i of [1, 2, 3, 4]) {
      told.push(Number(await fair(`${B}${i}`).tryWaiting({ now: NOW, waitMs: 5_000 })))
    }
    expect(told.map((ms) => Math.ceil(ms / 1_000))).toEqual([30, 35, 40, 45])
    await fair(`${B}2`).acquireFailed(5_000)
    const again = await Promise.all(
      [1, 3, 4].map((i) => fair(`${B}${i}`).tryWaiting({ now: NOW, waitMs: 5_000 })),
    )
    expect(again.map((ms) => Math.ceil(Number(ms) / 1_000))).toEqual([30, 30, 30])
    await fair(A).unlock('1', { now: NOW })
    expect(await fair(`${B}1`).tryWaiting({ now: NOW, waitMs: 5_000 })).toBeUndefined()
  })
})

describe('read-write', () => {
  const rw = (owner: string) => new PeerReadWriteLock(stage.raw, 'n', owner)
  const holdOf = (owner: string, i: number) => `{n}:${owner}:rwlock_timeout:${i}`

  test('a writer inside twice has both leases; then it reads, stops writing, and others may read, untold', async () => {
    expect((await act(() => rw(A).write(20_000))).keys).toEqual({
      n: hash({ mode: 'write', [`${A}:write`]: 1 }, 20_000),
    })
    await rw(A).write(20_000)
    const ttl = Number(await stage.raw.command('PTTL', 'n'))
    expect(ttl).toSatisfy((ms: number) => ms > 38_000 && ms <= 40_000)
    await rw(A).read(10_000)
    expect((await act(() => rw(A).unlockWrite('1', 20_000))).keys).toEqual({
      n: hash({ mode: 'write', [`${A}:write`]: 1, [A]: 1 }, 20_000),
      [holdOf(A, 1)]: expect.objectContaining(text(1, expect.any(Number) as number)) as unknown,
    })
    expect(await rw(B).read()).toBeGreaterThan(0)
    const downgraded = await act(() => rw(A).unlockWrite('2'))
    expect(downgraded).toMatchObject({ reply: 1, messages: [] })
    expect(downgraded.keys['n']).toMatchObject({ value: { mode: 'read', [A]: '1' } })
    expect(await rw(B).read()).toBeUndefined()
    expect(await rw(A).write()).toBeGreaterThan(0)
  })

  test('readers with leases of their own: who leaves sets the TTL to the longest that stays', async () => {
    await rw(A).read(30_000)
    await rw(B).read(10_000)
    expect((await act(() => rw(B).read(20_000))).keys).toMatchObject({
      n: { value: { mode: 'read', [A]: '1', [B]: '2' } },
      [holdOf(A, 1)]: { type: 'string' },
      [holdOf(B, 1)]: { type: 'string' },
      [holdOf(B, 2)]: text(1, 20_000),
    })
    const step = await act(() => rw(A).unlockRead('1'))
    expect(step).toMatchObject({ reply: 0, messages: [] })
    expect(Object.keys(step.keys).sort()).toEqual(['n', holdOf(B, 1), holdOf(B, 2)].sort())
    expect(await stage.raw.command('PTTL', 'n')).toBeLessThanOrEqual(20_000)
    expect(Object.keys((await act(() => rw(B).unlockRead('2'))).keys).sort()).toEqual(
      ['n', holdOf(B, 1)].sort(),
    )
    expect(await act(() => rw(B).unlockRead('3'))).toEqual({
      reply: 1,
      keys: {},
      messages: [{ channel: RW_CHANNEL, payload: '0' }],
    })
  })

  test('what is told: 1 by a writer, 0 by the last reader, both also by whoever held nothing', async () => {
    await rw(A).write()
    expect((await act(() => rw(A).unlockWrite('1'))).messages).toEqual([
      { channel: RW_CHANNEL, payload: '1' },
    ])
    expect(await act(() => rw(A).unlockWrite('2'))).toMatchObject({ messages: [{ payload: '1' }] })
    expect(await act(() => rw(A).unlockRead('3'))).toMatchObject({ messages: [{ payload: '0' }] })
    await rw(A).write()
    expect(await act(() => rw(B).unlockWrite('4'))).toMatchObject({ reply: undefined, messages: [] })
    expect(await act(() => rw(B).forceUnlock('read'))).toMatchObject({ reply: false, messages: [] })
    expect(await act(() => rw(B).forceUnlock('write'))).toMatchObject({
      reply: true,
      messages: [{ payload: '1' }],
    })
  })

  test('a renewal touches the holds of its owner only', async () => {
    await rw(A).read(10_000)
    await act(() => rw(B).read(20_000))
    const { reply, keys } = await act(() => rw(A).renewRead(60_000))
    expect(reply).toBe(true)
    expect(keys[holdOf(A, 1)]).toEqual(text(1, 60_000))
    expect(keys[holdOf(B, 1)]).toEqual(text(1, 20_000))
    expect([await rw(C).renewRead(), await rw(A).renewWrite()]).toEqual([false, false])
  })
})
