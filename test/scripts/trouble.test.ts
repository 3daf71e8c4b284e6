/** Other data under the name, a full server, a refused message, the longest TTL. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ScriptDefinition } from '../../src/engine/redis/script.js'
import * as scripts from '../../src/engine/redis/scripts.js'
import { raw, type Raw } from '../support/raw.js'
import { evaluate, hash, Stage, text, type Step } from './stage.js'
import {
  DEAD,
  LOCK as lock,
  MUTEX as mutex,
  MUTEX_DEAD,
  OTHER,
  OWNER,
  dead,
  locks,
  mutexes,
} from './words.js'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

interface Call {
  run(on: Raw): Promise<unknown>
}

function call<A, R>(definition: ScriptDefinition<A, R>, args: A): Call {
  return { run: (on) => evaluate(on, definition, args) }
}

const LOCK_CALLS: Readonly<Record<string, Call>> = {
  acquire: call(scripts.lockAcquire, locks.acquire()),
  'nested acquire': call(scripts.lockAcquire, locks.acquire({ count: 2 })),
  leave: call(scripts.lockLeave, { lock, owner: OWNER, count: 1 }),
  release: call(scripts.lockRelease, locks.release()),
  'entombing release': call(scripts.lockRelease, locks.release({ entombMs: 60_000 })),
  'keeping release': call(scripts.lockRelease, locks.release({ keepMs: 5_000 })),
  inspect: call(scripts.lockInspect, { lock }),
  force: call(scripts.lockForce, locks.force([OWNER])),
}

const MUTEX_CALLS: Readonly<Record<string, Call>> = {
  acquire: call(scripts.mutexAcquire, mutexes.acquire()),
  release: call(scripts.mutexRelease, mutexes.release()),
  'entombing release': call(scripts.mutexRelease, mutexes.release({ entombMs: 60_000 })),
  'keeping release': call(scripts.mutexRelease, mutexes.release({ keepMs: 5_000 })),
  inspect: call(scripts.mutexInspect, { mutex }),
  force: call(scripts.mutexForce, mutexes.force(OWNER)),
}

describe('another type under the name', () => {
  test.each(Object.keys(LOCK_CALLS))('lock/%s answers WRONGTYPE and changes nothing', async (name) => {
    await stage.raw.command('SET', lock, 'a value', 'PX', 20_000)
    const step = await stage.act(() => expect(LOCK_CALLS[name]?.run(stage.raw)).rejects.toThrow(/WRONGTYPE/))
    expect(step).toMatchObject({ keys: { [lock]: { type: 'string', value: 'a value' } }, messages: [] })
    expect(Object.keys(step.keys)).toEqual([lock])
  })

  test.each(Object.keys(MUTEX_CALLS))('mutex/%s answers WRONGTYPE and changes nothing', async (name) => {
    await stage.raw.command('RPUSH', mutex, 'a', 'b')
    const step = await stage.act(() => expect(MUTEX_CALLS[name]?.run(stage.raw)).rejects.toThrow(/WRONGTYPE/))
    expect(step.keys).toEqual({ [mutex]: { type: 'list', value: ['a', 'b'], ttl: 'none' } })
    expect(step.messages).toEqual([])
  })
})

describe("somebody's hash under the name", () => {
  const data = { name: 'Ada', city: 'London' }

  test.each(Object.keys(LOCK_CALLS))('lock/%s leaves it as it is', async (name) => {
    await stage.raw.command('HSET', lock, ...Object.entries(data).flat())
    const step = await stage.act(async () => LOCK_CALLS[name]?.run(stage.raw))
    expect(step.keys[lock]).toEqual(hash(data, 'none'))
    expect(step.messages).toEqual([])
  })

  test('a large one is recognised from its first fields', async () => {
    const fields = Array.from({ length: 2_000 }, (_, index) => [`field${index}`, 'x'.repeat(100)])
    await stage.raw.command('HSET', lock, ...fields.flat())
    const acquired = await stage.run(scripts.lockAcquire, locks.acquire())
    expect(acquired.reply).toEqual({ outcome: 'foreign' })
    const seen = await stage.run(scripts.lockInspect, { lock })
    expect(seen.reply).toEqual({ outcome: 'foreign' })
    expect(await stage.raw.command('HLEN', lock)).toBe(2_000)
  })
})

describe('a full server', () => {
  const OOM = /OOM/

  beforeEach(async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 20_000 }))
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 20_000 }))
    return () => stage.raw.command('CONFIG', 'SET', 'maxmemory', 0)
  })

  async function fill(): Promise<void> {
    await stage.raw.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    await stage.raw.command('SET', 'ballast', 'x'.repeat(2_000_000))
    await stage.raw.command('CONFIG', 'SET', 'maxmemory', '1mb')
    await expect(stage.raw.command('SET', 'more', 'x')).rejects.toThrow(OOM)
  }

  async function full<A, R>(
    definition: ScriptDefinition<A, R>,
    args: A,
    mayShorten = false,
  ): Promise<Step<R>> {
    const { reply, messages, keys } = await stage.run(definition, args, { mayShorten })
    return {
      reply,
      messages,
      keys: Object.fromEntries(Object.entries(keys).filter(([key]) => key !== 'ballast')),
    }
  }

  test('refuses a first acquire, and leaves nothing of it', async () => {
    await fill()
    const args = locks.acquire({ lock: 'new' })
    await expect(stage.run(scripts.lockAcquire, args)).rejects.toThrow(OOM)
    await expect(stage.run(scripts.mutexAcquire, mutexes.acquire({ mutex: 'new' }))).rejects.toThrow(OOM)
    expect(await stage.raw.command('EXISTS', 'new', args.tombstone)).toBe(0)
  })

  test('still repeats an acquire whose reply was lost', async () => {
    await fill()
    expect((await full(scripts.lockAcquire, locks.acquire({ leaseMs: 30_000 }))).reply).toEqual({
      outcome: 'granted',
    })
    const again = await full(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 30_000 }))
    expect(again.reply).toEqual({ outcome: 'granted' })
    expect(again.keys).toEqual({ [lock]: hash({ [OWNER]: '1' }, 30_000), [mutex]: text(OWNER, 30_000) })
  })

  test('still leaves', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ count: 2, leaseMs: 20_000 }))
    await fill()
    const step = await full(scripts.lockLeave, { lock, owner: OWNER, count: 1 })
    expect(step.reply).toEqual({ outcome: 'kept' })
    expect(step.keys[lock]).toEqual(hash({ [OWNER]: '1' }, 20_000))
  })

  test('still leaves a lock that somebody made permanent', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ count: 2, leaseMs: 20_000 }))
    await stage.raw.command('PERSIST', lock)
    await fill()
    const step = await full(scripts.lockLeave, { lock, owner: OWNER, count: 1 })
    expect(step.reply).toEqual({ outcome: 'kept' })
    expect(step.keys[lock]).toEqual(hash({ [OWNER]: '1' }, 'none'))
  })

  test('still renews, without storing anything', async () => {
    await fill()
    const renewed = await full(scripts.lockRenew, {
      locks: [lock, 'gone'],
      ttlMs: 30_000,
      owners: [OWNER, OWNER],
    })
    expect(renewed.reply).toEqual({ results: [1, 0] })
    const both = await full(scripts.mutexRenew, {
      mutexes: [mutex, 'gone'],
      ttlMs: 30_000,
      owners: [OWNER, OWNER],
    })
    expect(both.reply).toEqual({ results: [1, 0] })
    expect(both.keys).toEqual({ [lock]: hash({ [OWNER]: '1' }, 30_000), [mutex]: text(OWNER, 30_000) })
  })

  test('still releases, and tells the waiters', async () => {
    await fill()
    const released = await full(scripts.lockRelease, locks.release())
    expect(released.reply).toEqual({ outcome: 'released' })
    expect(released.messages).toHaveLength(1)
    const both = await full(scripts.mutexRelease, mutexes.release())
    expect(both).toMatchObject({ reply: { outcome: 'released' }, keys: {} })
    expect(both.messages).toHaveLength(1)
  })

  test('still releases with a minimum hold', async () => {
    await fill()
    const released = await full(scripts.lockRelease, locks.release({ keepMs: 5_000 }), true)
    expect(released.reply).toEqual({ outcome: 'released' })
    const both = await full(scripts.mutexRelease, mutexes.release({ keepMs: 5_000 }), true)
    expect(both.reply).toEqual({ outcome: 'released' })
    expect(both.keys).toEqual({
      [lock]: hash({ [`${OWNER}:0`]: '1' }, 5_000),
      [mutex]: text(`${OWNER}:0`, 5_000),
    })
  })

  test.each([0, 5_000])('still entombs, also an owner that holds nothing (keepMs %i)', async (keepMs) => {
    const ended = { keepMs, entombMs: 60_000 }
    await fill()
    expect((await full(scripts.lockRelease, locks.release(ended), true)).reply).toEqual({
      outcome: 'released',
    })
    expect((await full(scripts.mutexRelease, mutexes.release(ended), true)).reply).toEqual({
      outcome: 'released',
    })
    const gone = await full(scripts.lockRelease, locks.release({ ...ended, lock: 'gone' }), true)
    expect(gone.reply).toEqual({ outcome: 'gone' })
    const both = await full(scripts.mutexRelease, mutexes.release({ ...ended, mutex: 'gone' }), true)
    expect(both.reply).toEqual({ outcome: 'gone' })
    const tombs = [
      DEAD,
      MUTEX_DEAD,
      `redisson_unlock_latch:{gone}:${OWNER}`,
      `holdfast_mutex_tombstone:{gone}:${OWNER}`,
    ]
    for (const tomb of tombs) expect(both.keys[tomb]).toEqual(dead)
  })

  test('still inspects and forces', async () => {
    await fill()
    expect((await full(scripts.lockInspect, { lock })).reply).toMatchObject({
      outcome: 'held',
      holders: [OWNER, '1'],
    })
    expect((await full(scripts.mutexInspect, { mutex })).reply).toMatchObject({
      outcome: 'held',
      holder: OWNER,
    })
    expect((await full(scripts.lockForce, locks.force([OWNER]))).reply).toEqual({ outcome: 'freed' })
    const both = await full(scripts.mutexForce, mutexes.force(OWNER))
    expect(both).toMatchObject({ reply: { outcome: 'freed' }, keys: {} })
  })
})

describe('a user who may not publish', () => {
  let quiet: Raw

  beforeAll(async () => {
    await stage.raw.command('ACL', 'SETUSER', 'quiet', 'on', '>secret', '~*', '+@all', 'resetchannels')
    quiet = await raw(stage.server.port)
    await quiet.command('AUTH', 'quiet', 'secret')
  })
  afterAll(() => quiet[Symbol.asyncDispose]())

  test('releases and forces all the same, and is told that nobody was', async () => {
    const refused = { reply: { outcome: 'unannounced' }, keys: {}, messages: [] }
    const via = { via: quiet }
    await stage.run(scripts.lockAcquire, locks.acquire(), via)
    expect(await stage.run(scripts.lockRelease, locks.release(), via)).toEqual(refused)
    await stage.run(scripts.lockAcquire, locks.acquire(), via)
    expect(await stage.run(scripts.lockForce, locks.force([OWNER]), via)).toEqual(refused)
    await stage.run(scripts.mutexAcquire, mutexes.acquire(), via)
    expect(await stage.run(scripts.mutexRelease, mutexes.release(), via)).toEqual(refused)
    await stage.run(scripts.mutexAcquire, mutexes.acquire(), via)
    expect(await stage.run(scripts.mutexForce, mutexes.force(OWNER), via)).toEqual(refused)
  })

  test('releases with a minimum hold, and says that nobody was told', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire())
    const args = locks.release({ keepMs: 5_000 })
    const { reply } = await stage.run(scripts.lockRelease, args, { via: quiet, mayShorten: true })
    expect(reply).toEqual({ outcome: 'unannounced' })
  })

  test('entombs all the same', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire())
    const step = await stage.run(scripts.lockRelease, locks.release({ entombMs: 60_000 }), { via: quiet })
    expect(step).toEqual({ reply: { outcome: 'unannounced' }, keys: { [DEAD]: dead }, messages: [] })
  })

  test('a publish command that the server does not know releases too', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire())
    const step = await stage.run(scripts.lockRelease, locks.release({ publish: 'NOSUCHPUBLISH' }))
    expect(step).toEqual({ reply: { outcome: 'unannounced' }, keys: {}, messages: [] })
  })
})

describe('the longest lease, 2^53 - 1 ms', () => {
  const FOR_EVER = Number.MAX_SAFE_INTEGER
  const DAY = 86_400_000

  async function expectTtl(key: string): Promise<void> {
    expect(Number(await stage.raw.command('PTTL', key))).toSatisfy(
      (ms: number) => ms <= FOR_EVER && ms > FOR_EVER - DAY,
    )
  }

  test('is set, raised to, kept, and told', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: FOR_EVER }))
    await expectTtl(lock)
    await stage.run(scripts.lockAcquire, locks.acquire({ count: 2, leaseMs: 1 }))
    await stage.run(scripts.lockLeave, { lock, owner: OWNER, count: 1 })
    await expectTtl(lock)
    const busy = await stage.run(scripts.lockAcquire, locks.acquire({ owner: OTHER }))
    expect(busy.reply).toHaveProperty(
      'ttlMs',
      expect.toSatisfy((ms) => Number(ms) > FOR_EVER - DAY),
    )
    await stage.run(scripts.lockAcquire, locks.acquire({ lock: 'short', leaseMs: 30_000 }))
    await stage.run(scripts.lockRenew, { locks: ['short'], ttlMs: FOR_EVER, owners: [OWNER] })
    await expectTtl('short')
    await stage.run(scripts.lockRelease, locks.release({ keepMs: FOR_EVER, entombMs: FOR_EVER }))
    await expectTtl(lock)
    await expectTtl(DEAD)
  })

  test('the same for the mutex', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: FOR_EVER }))
    await expectTtl(mutex)
    const busy = await stage.run(scripts.mutexAcquire, mutexes.acquire({ owner: OTHER }))
    expect(busy.reply).toHaveProperty(
      'ttlMs',
      expect.toSatisfy((ms) => Number(ms) > FOR_EVER - DAY),
    )
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ mutex: 'short', leaseMs: 30_000 }))
    await stage.run(scripts.mutexRenew, { mutexes: ['short'], ttlMs: FOR_EVER, owners: [OWNER] })
    await expectTtl('short')
    await stage.run(scripts.mutexRelease, mutexes.release({ keepMs: FOR_EVER, entombMs: FOR_EVER }))
    await expectTtl(mutex)
    await expectTtl(MUTEX_DEAD)
  })
})
