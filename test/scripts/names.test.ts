/** The same keys and channels as Redisson, whatever the name. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  fencedToken,
  lockChannel,
  lockTombstone,
  mutexChannel,
  mutexTombstone,
} from '../../src/engine/redis/names.js'
import * as scripts from '../../src/engine/redis/scripts.js'
import { PeerLock } from '../peer/lock.js'
import { hash, Stage, text } from './stage.js'
import { OTHER, OWNER } from './words.js'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

/** Base name, then what stands for it in derived names. */
const NAMES: readonly (readonly [name: string, inside: string])[] = [
  ['n', '{n}'],
  ['{a}b', '{a}b'],
  ['a{b}c{d}', 'a{b}c{d}'],
  ['orders:42:items', '{orders:42:items}'],
  ['two words  and\ttab', '{two words  and\ttab}'],
  ['schlüssel-鍵-🔒', '{schlüssel-鍵-🔒}'],
  ['.*[a-z]+(x|y)?^$\\d%d%', '{.*[a-z]+(x|y)?^$\\d%d%}'],
  ['line\r\nbreak"\'`', '{line\r\nbreak"\'`}'],
  ['my{lock', 'my{lock'],
  ['my}lock', '{my}lock}'],
  ['-1', '{-1}'],
]

describe.each(NAMES)('the name %j', (name, inside) => {
  const lock = {
    tombstone: lockTombstone(name, OWNER),
    channel: lockChannel(name),
    publish: 'PUBLISH',
  }

  test('derives the names of the wire, and the peer the same', () => {
    expect(lockChannel(name)).toBe(`redisson_lock__channel:${inside}`)
    expect(lockTombstone(name, OWNER)).toBe(`redisson_unlock_latch:${inside}:${OWNER}`)
    const peer = new PeerLock(stage.raw, name, OTHER)
    expect([peer.channel, peer.latch(OWNER)]).toEqual([lock.channel, lock.tombstone])
    expect(fencedToken(name)).toBe(`redisson_lock_token:${inside}`)
    expect(mutexChannel(name)).toBe(`holdfast_mutex__channel:${inside}`)
    expect(mutexTombstone(name, OWNER)).toBe(`holdfast_mutex_tombstone:${inside}:${OWNER}`)
  })

  test('a lock is taken, busy for the peer, and released to it by one message', async () => {
    const args = { lock: name, tombstone: lock.tombstone, owner: OWNER, count: 1, leaseMs: 30_000 }
    const taken = await stage.run(scripts.lockAcquire, args)
    expect(taken.keys).toEqual({ [name]: hash({ [OWNER]: '1' }, 30_000) })
    const peer = new PeerLock(stage.raw, name, OTHER)
    expect(await peer.tryAcquire()).toBeGreaterThan(0)
    const released = await stage.run(scripts.lockRelease, {
      lock: name,
      owner: OWNER,
      keepMs: 0,
      entombMs: 60_000,
      ...lock,
    })
    expect(released).toEqual({
      reply: { outcome: 'released' },
      keys: { [lock.tombstone]: text('1', 60_000) },
      messages: [{ channel: peer.channel, payload: '0' }],
    })
    expect(await peer.tryAcquire()).toBeUndefined()
  })

  test("the peer's hold is seen, and its release is heard", async () => {
    const peer = new PeerLock(stage.raw, name, OTHER)
    await peer.tryAcquire(20_000)
    const seen = await stage.run(scripts.lockInspect, { lock: name })
    expect(seen.reply).toMatchObject({ outcome: 'held', holders: [OTHER, '1'] })
    const { messages } = await stage.act(() => peer.unlock('a1b2'))
    expect(messages).toEqual([{ channel: lockChannel(name), payload: '0' }])
  })

  test('a mutex is taken and released', async () => {
    const names = { mutex: name, tombstone: mutexTombstone(name, OWNER), owner: OWNER }
    const taken = await stage.run(scripts.mutexAcquire, { ...names, leaseMs: 30_000 })
    expect(taken.keys).toEqual({ [name]: text(OWNER, 30_000) })
    const to = { channel: mutexChannel(name), publish: 'PUBLISH' }
    const released = await stage.run(scripts.mutexRelease, { ...names, ...to, keepMs: 0, entombMs: 0 })
    expect(released).toEqual({
      reply: { outcome: 'released' },
      keys: {},
      messages: [{ channel: `holdfast_mutex__channel:${inside}`, payload: '0' }],
    })
  })
})

describe('owners', () => {
  test.each(['mode', '', 'x', 'ünïcödé:1', 'with space:2', '%d+:3', 'a:b:c:4'])(
    'the owner %j is compared as it is, never as a pattern',
    async (owner) => {
      const lock = { lock: 'n', tombstone: lockTombstone('n', owner), owner, leaseMs: 30_000 }
      const taken = await stage.run(scripts.lockAcquire, { ...lock, count: 1 })
      expect(taken.keys).toEqual({ n: hash({ [owner]: '1' }, 30_000) })
      const other = { ...lock, owner: OTHER, tombstone: lockTombstone('n', OTHER), count: 1 }
      expect((await stage.run(scripts.lockAcquire, other)).reply.outcome).not.toBe('granted')
      const to = { channel: lockChannel('n'), publish: 'PUBLISH', keepMs: 0, entombMs: 0 }
      const step = await stage.run(scripts.lockRelease, { ...lock, ...to })
      expect(step.reply).toEqual({ outcome: 'released' })
      expect(step.keys).toEqual({})
    },
  )
})
