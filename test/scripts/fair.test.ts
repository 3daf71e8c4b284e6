/** The state that each script of the fair lock leaves: hash, queue, deadlines, messages, on a clock that the test holds. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { PeerFairLock } from '../peer/fair-lock.js'
import { evaluate, hash, Stage, text, type Entry, type Step } from './stage.js'

const CLIENT = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d'
const [A, B, C, D, E] = [1, 2, 3, 4, 5].map((i) => `${CLIENT}:${i}`) as [
  string,
  string,
  string,
  string,
  string,
]

const lock = 'orders:42'
const queue = 'redisson_lock_queue:{orders:42}'
const deadlines = 'redisson_lock_timeout:{orders:42}'
const channel = 'redisson_lock__channel:{orders:42}'
const START = 1_000_000

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

const keys = { lock, queue, deadlines }
const tombstoneOf = (owner: string) => `redisson_unlock_latch:{orders:42}:${owner}`
const toHead = (owner: string) => ({ channel: `${channel}:${owner}`, payload: '0' })
const told = { channel, publish: 'PUBLISH' }
/** What a queue looks like. */
const standing = (scores: Readonly<Record<string, number>>): Record<string, Entry> => {
  const strings = Object.fromEntries(Object.entries(scores).map(([owner, ms]) => [owner, String(ms)]))
  return {
    [queue]: { type: 'list', value: Object.keys(scores), ttl: 'none' },
    [deadlines]: { type: 'zset', value: strings, ttl: 'none' },
  }
}

type Acquire = Partial<scripts.FairAcquireArgs>
type Abandon = Partial<scripts.FairAbandonArgs>
type Release = Partial<scripts.FairReleaseArgs>

function acquireArgs(owner: string, args: Acquire = {}): scripts.FairAcquireArgs {
  const terms = { leaseMs: 30_000, waitMs: 300_000, nowMs: START, join: 1, lookMs: 10_000 }
  return { ...keys, ...told, tombstone: tombstoneOf(owner), owner, ...terms, ...args }
}

const acquire = (owner: string, args?: Acquire): Promise<Step<scripts.FairAcquireReply>> =>
  stage.run(scripts.fairAcquire, acquireArgs(owner, args))
const once = (owner: string, args?: Acquire) => acquire(owner, { join: 0, ...args })

function abandonArgs(owner: string, args: Abandon = {}): scripts.FairAbandonArgs {
  const terms = { waitMs: 300_000, entombMs: 60_000, nowMs: START, lookMs: 10_000 }
  return { ...keys, ...told, tombstone: tombstoneOf(owner), owner, ...terms, ...args }
}

const abandon = (owner: string, args?: Abandon): Promise<Step<scripts.FairAbandonReply>> =>
  stage.run(scripts.fairAbandon, abandonArgs(owner, args))

function releaseArgs(owner: string, args: Release = {}): scripts.FairReleaseArgs {
  const terms = { keepMs: 0, entombMs: 0, nowMs: START }
  return { ...keys, ...told, tombstone: tombstoneOf(owner), owner, ...terms, ...args }
}

const release = (owner: string, args?: Release): Promise<Step<scripts.FairReleaseReply>> =>
  stage.run(scripts.fairRelease, releaseArgs(owner, args))
const force = (owners: readonly string[], nowMs = START): Promise<Step<scripts.FairForceReply>> =>
  stage.run(scripts.fairForce, { ...keys, ...told, nowMs, owners })

/** The deadline of each, less what the holder's TTL lost in real time before it was read. */
async function deadlineOf(owner: string): Promise<number> {
  return Number(await stage.raw.command('ZSCORE', deadlines, owner))
}

/** The holder's TTL is read by the script itself, so it may be a little shorter than the lease. */
const about = (ms: number): unknown =>
  expect.toSatisfy((value: unknown) => {
    const behind = ms - Number(value)
    return behind >= 0 && behind <= 500
  }, `at most 500 less than ${ms}`)

/** Takes the holder's TTL away: real time is not in the way any more. */
const freeze = () => stage.raw.command('PERSIST', lock)

describe("Redisson's table, on a client clock that stands at 1000000", () => {
  test('who comes: the deadlines add up, and the reply tells when the one before is through', async () => {
    expect((await acquire(A)).keys).toEqual({ [lock]: hash({ [A]: '1' }, 30_000) })
    const second = await acquire(B, { nowMs: START + 10 })
    expect(second.reply).toEqual({
      outcome: 'queued',
      untilMs: about(30_000),
      ttlMs: about(30_000),
      holder: A,
      head: B,
      headMs: 0,
    })
    expect(second.messages).toEqual([])
    // What real time took of the TTL is missing in the first deadline, and in all that count from it.
    const lost = 1_330_010 - (await deadlineOf(B))
    expect(lost).toBeLessThan(500)
    const third = await acquire(C, { nowMs: START + 20 })
    expect(third.reply).toMatchObject({ outcome: 'queued', untilMs: 329_990 - lost, head: B })
    expect(third.keys).toMatchObject(standing({ [B]: 1_330_010 - lost, [C]: 1_630_010 - lost }))
    const again = await acquire(B, { nowMs: START + 30 })
    expect(again.reply).toMatchObject({ outcome: 'queued', untilMs: about(30_000) })
    expect(again.keys).toMatchObject(standing({ [B]: 1_330_010 - lost, [C]: 1_630_010 - lost }))
    expect((await once(B, { nowMs: START + 30 })).reply).toEqual({
      outcome: 'busy',
      ttlMs: about(30_000),
      holder: A,
    })
    await stage.raw.command('DEL', lock)
    const early = await acquire(C, { nowMs: START + 40 })
    expect(early.reply).toEqual({
      outcome: 'queued',
      untilMs: 0,
      ttlMs: -2,
      holder: '',
      head: B,
      headMs: 329_970 - lost,
    })
    const granted = await acquire(B, { nowMs: START + 50 })
    expect(granted).toEqual({
      reply: { outcome: 'granted' },
      keys: { [lock]: hash({ [B]: '1' }, 30_000), ...standing({ [C]: 1_330_010 - lost }) },
      messages: [],
    })
  })

  test('a lock without a TTL counts as -1, as with Redisson', async () => {
    await acquire(A)
    await freeze()
    expect((await acquire(B)).reply).toMatchObject({ untilMs: -1, ttlMs: -1 })
    expect(await deadlineOf(B)).toBe(1_299_999)
  })

  test('drift: wait 5000, lease 30000; after one gave up, those behind it move up by its wait', async () => {
    const short = { waitMs: 5_000 }
    await acquire(A)
    const until: number[] = []
    for (const owner of [B, C, D, E]) {
      const { reply } = await acquire(owner, short)
      until.push(reply.outcome === 'queued' ? reply.untilMs : NaN)
    }
    expect(until).toEqual([30_000, 35_000, 40_000, 45_000].map(about))
    const before = await Promise.all([B, D, E].map(deadlineOf))
    await abandon(C, short)
    const after = await Promise.all([B, D, E].map(deadlineOf))
    expect(after.map((ms, i) => (before[i] ?? NaN) - ms)).toEqual([0, 5_000, 5_000])
    for (const owner of [B, D, E])
      expect((await acquire(owner, short)).reply).toMatchObject({ untilMs: about(30_000) })
    await release(A)
    expect((await acquire(B, short)).reply).toEqual({ outcome: 'granted' })
  })

  test.each([
    ['first', B, [-300_000, -300_000]],
    ['in the middle', C, [0, -300_000]],
    ['last', D, [0, 0]],
  ] as const)('the one standing %s gives up: only those behind it move up', async (_, gone, moved) => {
    await acquire(A)
    for (const owner of [B, C, D]) await acquire(owner)
    const rest = [B, C, D].filter((owner) => owner !== gone)
    const before = await Promise.all(rest.map(deadlineOf))
    const { reply, keys: left } = await abandon(gone)
    expect(reply).toEqual({ outcome: 'left' })
    expect(left[queue]?.value).toEqual(rest)
    expect(left[tombstoneOf(gone)]).toEqual(text('1', 60_000))
    const after = await Promise.all(rest.map(deadlineOf))
    expect(after.map((ms, i) => ms - (before[i] ?? NaN))).toEqual(moved)
  })

  test('the same steps of Redisson leave the same', async () => {
    const peers = [A, B, C].map((owner) => new PeerFairLock(stage.raw, lock, { owner }))
    await peers[0]?.tryWaiting({ now: START })
    await freeze()
    await peers[1]?.tryWaiting({ now: START + 10 })
    await peers[2]?.tryWaiting({ now: START + 20 })
    await peers[1]?.acquireFailed()
    const theirs = await stage.act(() => Promise.resolve())
    await stage.clear()
    await acquire(A)
    await freeze()
    await acquire(B, { nowMs: START + 10 })
    await acquire(C, { nowMs: START + 20 })
    await abandon(B)
    await stage.raw.command('DEL', tombstoneOf(B))
    const ours = await stage.act(() => Promise.resolve())
    expect(ours.keys).toEqual(theirs.keys)
  })
})

describe('fair/acquire', () => {
  test('free: a hash with the owner, no queue, no message', async () => {
    expect(await acquire(A, { leaseMs: 20_000 })).toEqual({
      reply: { outcome: 'granted' },
      keys: { [lock]: hash({ [A]: '1' }, 20_000) },
      messages: [],
    })
  })

  test('a copy for the holder: granted, the TTL raised and never shortened, no place in the queue', async () => {
    await acquire(A, { leaseMs: 20_000 })
    await acquire(A, { leaseMs: 10_000 })
    expect(await acquire(A, { leaseMs: 40_000 })).toEqual({
      reply: { outcome: 'granted' },
      keys: { [lock]: hash({ [A]: '1' }, 40_000) },
      messages: [],
    })
  })

  test('one attempt does not join, and does not overtake the head of a free lock', async () => {
    await acquire(A)
    await acquire(B)
    await release(A)
    const { reply, keys: left } = await once(C)
    expect(reply).toEqual({ outcome: 'busy', ttlMs: -2, holder: '' })
    expect(left[queue]?.value).toEqual([B])
    expect((await once(B)).reply).toEqual({ outcome: 'granted' })
  })

  test('a dead owner is refused, and leaves no ghost in the queue', async () => {
    await acquire(A)
    await acquire(B)
    await abandon(B)
    const { reply, keys: left } = await acquire(B)
    expect(reply).toEqual({ outcome: 'dead' })
    expect(left[queue]).toBeUndefined()
    await release(A)
    expect((await acquire(B)).reply).toEqual({ outcome: 'dead' })
  })

  test('foreign: somebody else has a hash there; nobody stands in line for it', async () => {
    await stage.raw.command('HSET', lock, 'item:42', '3')
    const { reply, keys: left } = await acquire(A)
    expect(reply).toEqual({ outcome: 'foreign' })
    expect(Object.keys(left)).toEqual([lock])
  })

  test.each([lock, queue])('another type under %s answers WRONGTYPE and changes nothing', async (key) => {
    if (key === queue) await acquire(A)
    await stage.raw.command('SET', key, 'theirs')
    const step = await stage.act(() =>
      expect(evaluate(stage.raw, scripts.fairAcquire, acquireArgs(B))).rejects.toThrow(/WRONGTYPE/),
    )
    expect(step.keys[key]?.value).toBe('theirs')
    expect(step.keys[deadlines]).toBeUndefined()
  })

  test('the head moves its deadline on while the holder holds on, and all behind it likewise', async () => {
    await acquire(A)
    await acquire(B)
    await acquire(C)
    const before = await Promise.all([B, C].map(deadlineOf))
    // Not the second: its deadline counts from that of the first.
    await acquire(C, { nowMs: START + 60_000 })
    expect(await Promise.all([B, C].map(deadlineOf))).toEqual(before)
    await acquire(B, { nowMs: START + 60_000 })
    const [b = NaN, c = NaN] = await Promise.all([B, C].map(deadlineOf))
    expect(b).toSatisfy((ms: number) => ms > 1_389_000 && ms <= 1_390_000)
    expect(c - b).toBe(300_000)
    await acquire(B, { nowMs: START + 60_000 })
    expect(await deadlineOf(B)).toBe(b)
  })

  test('the caller is alive, even if its deadline is over: the head keeps its place', async () => {
    await acquire(A)
    await acquire(B)
    await acquire(C)
    const { keys: left } = await acquire(B, { nowMs: START + 400_000 })
    expect(left[queue]?.value).toEqual([B, C])
  })

  test('heads whose deadline is over are dropped, and only heads', async () => {
    await acquire(A, { leaseMs: 90_000 })
    await acquire(B, { waitMs: 1_000 })
    await acquire(C, { waitMs: 1_000 })
    await acquire(D)
    await stage.raw.command('ZADD', deadlines, START + 1_000, B, START + 2_000, C)
    expect((await acquire(E, { nowMs: START + 999 })).keys[queue]?.value).toEqual([B, C, D, E])
    expect((await acquire(E, { nowMs: START + 1_000 })).keys[queue]?.value).toEqual([C, D, E])
    expect((await acquire(E, { nowMs: START + 2_000 })).keys[queue]?.value).toEqual([D, E])
  })

  test("a client whose clock is ahead of the server's drops nobody before its time", async () => {
    const realMs = Date.now()
    await acquire(A)
    await acquire(B, { nowMs: realMs })
    const ahead = realMs + 10_000_000
    const { reply, keys: left } = await acquire(C, { nowMs: ahead })
    expect(left[queue]?.value).toEqual([B, C])
    expect(reply).toMatchObject({ outcome: 'queued', head: B })
    expect((await once(D, { nowMs: ahead })).keys[queue]?.value).toEqual([B, C])
  })

  describe('tells a new head, if it must look before its own next look', () => {
    test.each([
      { what: 'a long lease', leaseMs: 30_000, waitMs: 300_000, messages: [] },
      { what: 'a lease shorter than that', leaseMs: 10_000, waitMs: 300_000, messages: [toHead(C)] },
      {
        what: 'a place kept for a shorter time than that',
        leaseMs: 60_000,
        waitMs: 10_000,
        messages: [toHead(C)],
      },
    ])('$what', async ({ leaseMs, waitMs, messages }) => {
      await acquire(A, { leaseMs: 10_000 })
      await acquire(B)
      await acquire(C, { waitMs })
      await release(A)
      const nowMs = START + 10_000
      expect(await acquire(B, { leaseMs, nowMs })).toMatchObject({ reply: { outcome: 'granted' }, messages })
    })

    test('a free lock that comes to it, because the head before is dead', async () => {
      await acquire(A)
      await acquire(B)
      await acquire(C)
      await release(A)
      const { reply, messages } = await acquire(D, { nowMs: START + 340_000 })
      expect(reply).toMatchObject({ outcome: 'queued', head: C })
      expect(messages).toEqual([toHead(C)])
    })
  })
})

describe('a queue that somebody has touched', () => {
  beforeEach(async () => {
    await acquire(A)
    for (const owner of [B, C, D]) await acquire(owner)
  })

  test('a head without a deadline counts as dead', async () => {
    await stage.raw.command('ZREM', deadlines, B)
    expect((await acquire(E)).keys[queue]?.value).toEqual([C, D, E])
  })

  test('deadlines without a queue: whoever still waits joins anew', async () => {
    await stage.raw.command('DEL', queue)
    const { keys: left } = await acquire(C)
    expect(left[queue]?.value).toEqual([C])
    expect(Object.keys(left[deadlines]?.value as object)).toEqual([C])
  })

  test('a queue without deadlines is nobody', async () => {
    await stage.raw.command('DEL', deadlines)
    const { keys: left } = await acquire(C)
    expect(left[queue]?.value).toEqual([C])
  })

  test('an owner that stands there twice has one place, the first', async () => {
    await stage.raw.command('RPUSH', queue, B)
    expect((await acquire(E)).keys[queue]?.value).toEqual([B, C, D, E])
    await stage.raw.command('RPUSH', queue, C)
    expect((await abandon(C)).keys[queue]?.value).toEqual([B, D, E])
  })

  test('no orphan is left when the lock is free', async () => {
    await stage.raw.command('DEL', queue, lock)
    expect((await acquire(E)).keys).toEqual({ [lock]: hash({ [E]: '1' }, 30_000) })
  })
})

describe('fair/release', () => {
  test('the key goes and the head is told; it stays the head', async () => {
    await acquire(A)
    await acquire(B)
    await acquire(C)
    const step = await release(A)
    expect(step).toMatchObject({ reply: { outcome: 'released' }, messages: [toHead(B)] })
    expect(step.keys[queue]?.value).toEqual([B, C])
    expect(step.keys[lock]).toBeUndefined()
  })

  test('without a queue nobody is told', async () => {
    await acquire(A)
    expect(await release(A)).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: [] })
  })

  test('a dead head is dropped, and the next one told', async () => {
    await acquire(A, { leaseMs: 400_000 })
    await acquire(B, { waitMs: 1_000 })
    await acquire(C)
    await stage.raw.command('ZADD', deadlines, START + 1, B)
    const step = await release(A, { nowMs: START + 1 })
    expect(step.messages).toEqual([toHead(C)])
    expect(step.keys[queue]?.value).toEqual([C])
  })

  test('gone: the lock had expired; that is told, and the head is woken', async () => {
    await acquire(A)
    await acquire(B)
    await stage.raw.command('DEL', lock)
    expect(await release(A)).toMatchObject({ reply: { outcome: 'gone' }, messages: [toHead(B)] })
  })

  test('taken: somebody else has it; nothing changes', async () => {
    await acquire(A)
    await acquire(B)
    await stage.raw.command('DEL', lock)
    const before = (await acquire(B)).keys
    expect(await release(A)).toEqual({ reply: { outcome: 'taken' }, keys: before, messages: [] })
  })

  test('a minimum hold: the rest under another name, and the head told that the TTL is another', async () => {
    await acquire(A)
    await acquire(B)
    const step = await stage.run(scripts.fairRelease, releaseArgs(A, { keepMs: 5_000 }), { mayShorten: true })
    expect(step).toMatchObject({ reply: { outcome: 'released' }, messages: [toHead(B)] })
    expect(step.keys[lock]).toEqual(hash({ [`${A}:0`]: '1' }, 5_000))
    expect(await release(A, { keepMs: 4_000 })).toMatchObject({
      reply: { outcome: 'released' },
      messages: [],
    })
    expect(await release(A)).toMatchObject({ reply: { outcome: 'released' }, messages: [toHead(B)] })
  })

  test('twice: the second copy finds it gone, or taken, and leaves a tombstone if asked', async () => {
    await acquire(A)
    await release(A, { entombMs: 60_000 })
    const again = await release(A, { entombMs: 60_000 })
    expect(again).toEqual({
      reply: { outcome: 'gone' },
      keys: { [tombstoneOf(A)]: text('1', 60_000) },
      messages: [],
    })
  })
})

describe('fair/force', () => {
  test('only those that were seen, and the head is told', async () => {
    await acquire(A)
    await acquire(B)
    expect(await force([C])).toMatchObject({ reply: { outcome: 'none' }, messages: [] })
    const step = await force([A])
    expect(step).toMatchObject({ reply: { outcome: 'freed' }, messages: [toHead(B)] })
    expect(step.keys[lock]).toBeUndefined()
    expect(await force([A])).toMatchObject({ reply: { outcome: 'none' }, messages: [] })
  })
})

describe('fair/abandon', () => {
  test('twice: those behind move up once (fault 72)', async () => {
    await acquire(A)
    await acquire(B)
    await acquire(C)
    const first = await abandon(B)
    expect(await abandon(B)).toEqual({ ...first, reply: { outcome: 'none' }, messages: [] })
  })

  test('an owner that got the lock meanwhile gives it back, and the head is told', async () => {
    await acquire(A)
    await acquire(B)
    const step = await abandon(A)
    expect(step).toMatchObject({ reply: { outcome: 'left' }, messages: [toHead(B)] })
    expect(step.keys[lock]).toBeUndefined()
    expect((await acquire(A)).reply).toEqual({ outcome: 'dead' })
  })

  test('the head leaves a free lock: the next one is told', async () => {
    await acquire(A)
    await acquire(B)
    await acquire(C)
    await release(A)
    expect((await abandon(C)).messages).toEqual([])
    await acquire(D)
    expect(await abandon(B)).toMatchObject({ reply: { outcome: 'left' }, messages: [toHead(D)] })
  })

  test('the head leaves a lock that is held: the next one looks by itself, unless that is too late', async () => {
    await acquire(A, { leaseMs: 30_000 })
    for (const owner of [B, C]) await acquire(owner)
    expect((await abandon(B)).messages).toEqual([])
    await stage.raw.command('PEXPIRE', lock, 9_000)
    await acquire(D)
    expect((await abandon(C)).messages).toEqual([toHead(D)])
  })

  test('whatever is under the name of the lock, the owner leaves the queue', async () => {
    await acquire(A)
    await acquire(B)
    await stage.raw.command('SET', lock, 'theirs')
    const step = await abandon(B)
    expect(step.reply).toEqual({ outcome: 'left' })
    expect(step.keys[queue]).toBeUndefined()
    expect(step.keys[lock]?.value).toBe('theirs')
  })

  test('of an owner whose attempts were all answered no tombstone is left', async () => {
    await acquire(A)
    await acquire(B)
    const { reply, keys: left } = await abandon(B, { entombMs: 0 })
    expect(reply).toEqual({ outcome: 'left' })
    expect(Object.keys(left)).toEqual([lock])
  })

  test('an owner that never came leaves only its tombstone', async () => {
    expect(await abandon(A)).toEqual({
      reply: { outcome: 'none' },
      keys: { [tombstoneOf(A)]: text('1', 60_000) },
      messages: [],
    })
  })
})

describe('in trouble', () => {
  const full = (on: boolean) => stage.raw.command('CONFIG', 'SET', 'maxmemory', on ? '1' : '0')

  test('a full server lets go: release, force and abandon do all their work', async () => {
    await acquire(A)
    for (const owner of [B, C, D]) await acquire(owner)
    await full(true)
    try {
      expect((await abandon(C)).reply).toEqual({ outcome: 'left' })
      expect(await release(A, { entombMs: 60_000 })).toMatchObject({
        reply: { outcome: 'released' },
        messages: [toHead(B)],
      })
      await expect(evaluate(stage.raw, scripts.fairAcquire, acquireArgs(E))).rejects.toThrow(/OOM/)
    } finally {
      await full(false)
    }
    expect((await acquire(B)).reply).toEqual({ outcome: 'granted' })
    expect((await force([B])).messages).toEqual([toHead(D)])
  })

  test('a refused message undoes nothing, and is said', async () => {
    await acquire(A)
    for (const owner of [B, C]) await acquire(owner)
    const mute = { publish: 'NOT-A-COMMAND' }
    expect((await release(A, mute)).reply).toEqual({ outcome: 'unannounced' })
    expect((await abandon(B, mute)).reply).toEqual({ outcome: 'unannounced' })
    expect((await acquire(C, mute)).reply).toEqual({ outcome: 'granted' })
    await acquire(D)
    const forced = stage.run(scripts.fairForce, { ...keys, ...told, ...mute, nowMs: START, owners: [C] })
    expect((await forced).reply).toEqual({ outcome: 'unannounced' })
  })

  test('the longest times', async () => {
    const longest = Number.MAX_SAFE_INTEGER
    await acquire(A, { leaseMs: 30_000 })
    const [b, c] = [await acquire(B, { waitMs: longest }), await acquire(C, { waitMs: longest })]
    expect([b.reply.outcome, c.reply.outcome]).toEqual(['queued', 'queued'])
    await release(A)
    expect((await acquire(B, { waitMs: longest })).reply).toEqual({ outcome: 'granted' })
    expect((await acquire(C, { waitMs: longest })).reply).toMatchObject({ outcome: 'queued', head: C })
  })
})
