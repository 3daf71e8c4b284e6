/** The state that the fenced lock's scripts leave: what is not as with a plain lock, whose scripts do the rest. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { raw } from '../support/raw.js'
import { evaluate, hash, Stage, text, type Step } from './stage.js'
import { DEAD, LOCK as lock, OTHER, OWNER, dead, locks, unlocked } from './words.js'

const TOKEN = 'redisson_lock_token:{orders:42}'
const HIGHEST = '9007199254740991'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

const args = (some: Partial<scripts.LockAcquireArgs> = {}): scripts.FencedAcquireArgs => ({
  ...locks.acquire(some),
  token: TOKEN,
})
const acquire = (some: Partial<scripts.LockAcquireArgs> = {}): Promise<Step<scripts.FencedAcquireReply>> =>
  stage.run(scripts.fencedAcquire, args(some))
const granted = (token: number | string) => ({ outcome: 'granted', token: String(token) })
const token = async () => (await stage.run(scripts.fencedToken, { token: TOKEN })).reply

describe('fenced/acquire', () => {
  test('granted: the hash of a lock, and the token 1 in a key without a TTL; no message', async () => {
    expect(await acquire({ leaseMs: 20_000 })).toEqual({
      reply: granted(1),
      keys: { [lock]: hash({ [OWNER]: '1' }, 20_000), [TOKEN]: text('1', 'none') },
      messages: [],
    })
  })

  test('entered again: the next token, the count that was asked for, the TTL raised and never cut', async () => {
    await acquire({ leaseMs: 30_000 })
    expect(await acquire({ count: 2, leaseMs: 10_000 })).toEqual({
      reply: granted(2),
      keys: { [lock]: hash({ [OWNER]: '2' }, 30_000), [TOKEN]: text('2', 'none') },
      messages: [],
    })
    const longer = await acquire({ count: 3, leaseMs: 60_000 })
    expect(longer.keys).toEqual({ [lock]: hash({ [OWNER]: '3' }, 60_000), [TOKEN]: text('3', 'none') })
  })

  test.each([
    ['of the first entry', 1],
    ['of a nested entry', 2],
  ])('a repeated copy %s: granted as before, with a token that is not lower', async (_, count) => {
    await acquire()
    const first = await acquire({ count })
    const again = await acquire({ count })
    expect(first.reply).toEqual(granted(2))
    expect(again.reply).toEqual(granted(3))
    expect(again.keys[lock]).toEqual(hash({ [OWNER]: String(count) }, 30_000))
  })

  test('a late copy of the first entry does not lower the count of a nested one', async () => {
    await acquire()
    await acquire({ count: 2 })
    const late = await acquire()
    expect(late).toMatchObject({ reply: granted(3), keys: { [lock]: hash({ [OWNER]: '2' }, 30_000) } })
  })

  test('busy, lost, dead: no token is spent, and none is made', async () => {
    await acquire({ owner: OTHER })
    const busy = await acquire({ leaseMs: 60_000 })
    expect(busy.reply).toMatchObject({ outcome: 'busy', holder: OTHER })
    expect(busy.keys).toEqual({ [lock]: hash({ [OTHER]: '1' }, 30_000), [TOKEN]: text('1', 'none') })
    expect((await acquire({ count: 2 })).reply).toEqual({ outcome: 'lost' })
    await stage.clear()
    expect(await acquire({ count: 2 })).toEqual({ reply: { outcome: 'lost' }, keys: {}, messages: [] })
    await stage.run(scripts.lockRelease, locks.release({ entombMs: 60_000 }))
    expect(await acquire()).toEqual({ reply: { outcome: 'dead' }, keys: { [DEAD]: dead }, messages: [] })
  })

  test("busy on a Java program's lock without a TTL: says so, and is no success", async () => {
    await stage.raw.command('HSET', lock, OTHER, '1')
    const step = await acquire()
    expect(step.reply).toEqual({ outcome: 'busy', ttlMs: -1, holder: OTHER })
    expect(step.keys).toEqual({ [lock]: hash({ [OTHER]: '1' }, 'none') })
  })

  test("foreign: somebody's hash stays as it is, and no token is spent", async () => {
    await stage.raw.command('HSET', lock, 'name', 'Ada')
    const step = await acquire()
    expect(step.reply).toEqual({ outcome: 'foreign' })
    expect(step.keys).toEqual({ [lock]: hash({ name: 'Ada' }, 'none') })
  })

  test('the token outlives release, force and the key, and goes on from there', async () => {
    await acquire()
    const released = await stage.run(scripts.lockRelease, locks.release())
    expect(released).toEqual({
      reply: { outcome: 'released' },
      keys: { [TOKEN]: text('1', 'none') },
      messages: [unlocked],
    })
    expect((await acquire()).reply).toEqual(granted(2))
    await stage.run(scripts.lockForce, locks.force([OWNER]))
    expect((await acquire({ owner: OTHER })).reply).toEqual(granted(3))
    await stage.raw.command('DEL', lock)
    expect((await acquire()).reply).toEqual(granted(4))
    expect(await token()).toEqual({ outcome: 'known', token: '4' })
  })

  test('the highest token is told to the last digit', async () => {
    await stage.raw.command('SET', TOKEN, '9007199254740989')
    expect((await acquire()).reply).toEqual(granted('9007199254740990'))
    expect((await acquire()).reply).toEqual(granted(HIGHEST))
    expect((await acquire()).reply).toEqual({ outcome: 'badToken' })
    expect(await token()).toEqual({ outcome: 'known', token: HIGHEST })
  })

  test.each([
    '9007199254740992',
    '9223372036854775807',
    '12345678901234567890',
    '-1',
    '1.5',
    '01',
    ' 1',
    'x',
    '',
  ])(
    'badToken: "%s" in its place is neither given nor touched, whether the lock is free or ours',
    async (value) => {
      await stage.raw.command('SET', TOKEN, value)
      const free = await acquire()
      expect(free).toEqual({
        reply: { outcome: 'badToken' },
        keys: { [TOKEN]: text(value, 'none') },
        messages: [],
      })
      expect(await token()).toEqual({ outcome: 'badToken' })
      await stage.run(scripts.lockAcquire, locks.acquire())
      const nested = await acquire({ count: 2, leaseMs: 60_000 })
      expect(nested.reply).toEqual({ outcome: 'badToken' })
      expect(nested.keys).toEqual({
        [lock]: hash({ [OWNER]: '1' }, 30_000),
        [TOKEN]: text(value, 'none'),
      })
    },
  )

  test('badToken: another type in its place', async () => {
    await stage.raw.command('RPUSH', TOKEN, 'theirs')
    const step = await acquire()
    expect(step.reply).toEqual({ outcome: 'badToken' })
    expect(Object.keys(step.keys)).toEqual([TOKEN])
    expect(await token()).toEqual({ outcome: 'badToken' })
  })

  test('a full server refuses it before anything is changed, free or nested', async () => {
    await acquire()
    const full = (on: boolean) => stage.raw.command('CONFIG', 'SET', 'maxmemory', on ? '1' : '0')
    const step = await stage.act(async () => {
      await full(true)
      try {
        await expect(evaluate(stage.raw, scripts.fencedAcquire, args({ count: 2 }))).rejects.toThrow(/OOM/)
        await stage.raw.command('DEL', lock)
        await expect(evaluate(stage.raw, scripts.fencedAcquire, args())).rejects.toThrow(/OOM/)
      } finally {
        await full(false)
      }
    })
    expect(step.keys).toEqual({ [TOKEN]: text('1', 'none') })
  })

  test('a user without a right to the token is told so, and not that it is broken', async () => {
    await stage.raw.command(
      'ACL',
      'SETUSER',
      'poor',
      'on',
      'nopass',
      '~orders:*',
      '~redisson_unlock*',
      '+@all',
    )
    const poor = await raw(stage.server.port)
    await poor.command('AUTH', 'poor', 'x')
    await expect(evaluate(poor, scripts.fencedAcquire, args())).rejects.toThrow(/NOPERM|No permissions/i)
    await poor[Symbol.asyncDispose]()
  })
})

describe('fenced/token', () => {
  test('0 before the first; makes nothing', async () => {
    expect(await stage.run(scripts.fencedToken, { token: TOKEN })).toEqual({
      reply: { outcome: 'known', token: '0' },
      keys: {},
      messages: [],
    })
  })
})
