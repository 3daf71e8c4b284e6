/** The stand-ins for Redisson's semaphores and latch leave behind what the wire describes, to the byte. */
import { describe, expect, test } from 'vitest'
import { PeerLatch } from '../peer/count-down-latch.js'
import { PeerPermits } from '../peer/permit-semaphore.js'
import { PeerSemaphore } from '../peer/semaphore.js'
import { text, zset } from '../peer/snapshot.js'
import { NO_LEASE } from '../peer/wire.js'
import { goldenStage } from './stage.js'

const stage = goldenStage()
const act = <R>(action: () => Promise<R>) => stage.recorder.act(action)

const told = (channel: string, payload: number) => [{ channel, payload: String(payload) }]

describe('semaphore', () => {
  const CHANNEL = 'redisson_sc:{n}'

  test('set once, taken, given back: the new total is told', async () => {
    const semaphore = new PeerSemaphore(stage.raw, 'n')
    expect(await semaphore.tryAcquire()).toBe(false)
    expect(await act(() => semaphore.trySet(3))).toEqual({
      reply: true,
      keys: { n: text(3, 'none') },
      messages: told(CHANNEL, 3),
    })
    expect(await act(() => semaphore.trySet(5))).toMatchObject({ reply: false, messages: [] })
    expect(await act(() => semaphore.tryAcquire(2))).toEqual({
      reply: true,
      keys: { n: text(1, 'none') },
      messages: [],
    })
    expect(await semaphore.tryAcquire(2)).toBe(false)
    expect(await act(() => semaphore.release(2))).toMatchObject({ messages: told(CHANNEL, 3) })
    expect(await act(() => semaphore.add(-4))).toMatchObject({
      keys: { n: text(-1, 'none') },
      messages: told(CHANNEL, -1),
    })
    expect(await semaphore.drain()).toBe(-1)
    expect(await semaphore.available()).toBe(0)
  })

  test('with a TTL, which draining drops; released where nothing is', async () => {
    const semaphore = new PeerSemaphore(stage.raw, 'n')
    expect(await act(() => semaphore.releaseIfExists())).toEqual({ reply: false, keys: {}, messages: [] })
    expect((await act(() => semaphore.trySet(2, 20_000))).keys).toEqual({ n: text(2, 20_000) })
    expect(await act(() => semaphore.drain())).toEqual({
      reply: 2,
      keys: { n: text(0, 'none') },
      messages: [],
    })
    expect(await act(() => semaphore.delete())).toEqual({ reply: true, keys: {}, messages: [] })
    expect(await act(() => semaphore.release())).toEqual({
      reply: undefined,
      keys: { n: text(1, 'none') },
      messages: told(CHANNEL, 1),
    } as never)
  })
})

describe('permits with ids and leases', () => {
  const CHANNEL = 'redisson_sc:{n}'
  const ODD = ['00', '0d0a', 'ff'].map((bytes) => bytes.padStart(32, '20ff00'))

  test('without a count nothing; a lease in the score; recycled at its end', async () => {
    const permits = new PeerPermits(stage.raw, 'n')
    const [first = '', second = '', third = ''] = ODD
    expect(await permits.tryAcquire({ now: 0, ids: [first] })).toEqual({
      ids: undefined,
      nextExpiry: undefined,
    })
    expect((await act(() => permits.trySet(2))).messages).toEqual(told(CHANNEL, 2))
    await permits.tryAcquire({ now: 0, ids: [first] })
    const step = await act(() => permits.tryAcquire({ now: 0, leaseMs: 6_000, ids: [second] }))
    expect(step).toEqual({
      reply: { ids: [second] },
      keys: { n: text(0, 'none'), '{n}:timeout': zset({ [first]: Number(NO_LEASE), [second]: 6_000 }) },
      messages: [],
    })
    expect(await permits.tryAcquire({ now: 0, ids: [third] })).toEqual({ ids: undefined, nextExpiry: 6_000 })
    expect(await permits.leaseOf(first, 100)).toBe(-1)
    expect(await permits.leaseOf(second, 100)).toBe(5_900)
    const recycled = await act(() => permits.tryAcquire({ now: 6_000, ids: [third] }))
    expect(recycled).toMatchObject({ reply: { ids: [third] }, messages: told(CHANNEL, 1) })
    expect(new Set(await permits.ids())).toEqual(new Set([first, third]))
  })

  test('released one by one, or all or nothing', async () => {
    const permits = new PeerPermits(stage.raw, 'n')
    await permits.trySet(3)
    await permits.tryAcquire({ now: 0, leaseMs: 5_000, ids: ODD })
    const [first = '', second = '', third = ''] = ODD
    expect(await act(() => permits.tryRelease(first, 0))).toMatchObject({
      reply: true,
      messages: told(CHANNEL, 1),
    })
    expect(await act(() => permits.tryRelease(first, 0))).toMatchObject({ reply: false, messages: [] })
    expect(await permits.tryReleaseAll([first, second], 0)).toBe(0)
    expect(await permits.acquired(0)).toBe(2)
    expect(await act(() => permits.tryReleaseAll([second, third], 0))).toMatchObject({
      reply: 2,
      keys: { n: text(3, 'none') },
      messages: told(CHANNEL, 2),
    })
  })

  test('an expired one is given back all the same, but the answer is no', async () => {
    const permits = new PeerPermits(stage.raw, 'n')
    await permits.trySet(1)
    const [id = ''] = ODD
    await permits.tryAcquire({ now: 0, leaseMs: 100, ids: [id] })
    expect(await permits.updateLease(id, 200, 50)).toBe(true)
    expect(await act(() => permits.tryRelease(id, 250))).toMatchObject({
      reply: false,
      keys: { n: text(1, 'none') },
      messages: told(CHANNEL, 1),
    })
    expect(await permits.updateLease(id, 200, 300)).toBe(false)
  })

  test('the total, changed', async () => {
    const permits = new PeerPermits(stage.raw, 'n')
    expect((await act(() => permits.set(2))).messages).toEqual(told(CHANNEL, 2))
    await permits.tryAcquire({ now: 0, ids: [ODD[0] ?? ''] })
    expect(await act(() => permits.set(5))).toMatchObject({
      keys: { n: text(4, 'none') },
      messages: told(CHANNEL, 5),
    })
    expect((await act(() => permits.set(5))).messages).toEqual([])
    expect(await act(() => permits.set(0))).toMatchObject({ keys: { n: text(-1, 'none') } })
    expect(await act(() => permits.add(3))).toMatchObject({
      keys: { n: text(2, 'none') },
      messages: told(CHANNEL, 3),
    })
    expect(await act(() => permits.add(-1))).toMatchObject({ keys: { n: text(1, 'none') }, messages: [] })
    expect([await permits.available(0), await permits.total(0)]).toEqual([1, 2])
  })
})

describe('count-down latch', () => {
  const CHANNEL = 'redisson_countdownlatch__channel__{n}'

  test('set once, counted down, told at zero only', async () => {
    const latch = new PeerLatch(stage.raw, 'n')
    expect(await act(() => latch.countDown())).toEqual({ reply: undefined, keys: {}, messages: [] } as never)
    expect(await act(() => latch.trySetCount(2))).toEqual({
      reply: true,
      keys: { n: text(2, 'none') },
      messages: told(CHANNEL, 1),
    })
    expect(await act(() => latch.trySetCount(3))).toMatchObject({ reply: false, messages: [] })
    expect(await act(() => latch.countDown())).toMatchObject({ keys: { n: text(1, 'none') }, messages: [] })
    expect(await act(() => latch.countDown())).toMatchObject({ keys: {}, messages: told(CHANNEL, 0) })
    expect(await latch.count()).toBe(0)
  })

  test('deleted: told by 1; a count of 0 is kept until it is counted down', async () => {
    const latch = new PeerLatch(stage.raw, 'n')
    await latch.trySetCount(2)
    expect(await act(() => latch.delete())).toEqual({ reply: true, keys: {}, messages: told(CHANNEL, 1) })
    expect(await act(() => latch.delete())).toEqual({ reply: false, keys: {}, messages: [] })
    expect((await act(() => latch.trySetCount(0))).keys).toEqual({ n: text(0, 'none') })
    expect(await act(() => latch.countDown())).toMatchObject({ keys: {}, messages: [] })
  })

  test('the channel is in braces whatever the name is', () => {
    expect(new PeerLatch(stage.raw, '{a}b').channel).toBe('redisson_countdownlatch__channel__{{a}b}')
  })
})
