/** The state that each script of the read/write lock leaves: keys, fields, TTLs, messages, for every outcome that it declares. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { hash, Stage, text, type Entry } from './stage.js'
import { OTHER, OWNER } from './words.js'

const lock = 'orders:42'
const channel = 'redisson_rwlock:{orders:42}'
const THIRD = '5d0b8a3e-7c41-4d0e-9f0a-2b1c3d4e5f60:3'
const to = { channel, publish: 'PUBLISH' }
const all = [
  { channel, payload: '1' },
  { channel, payload: '0' },
]
const one = { channel, payload: '0' }
const busyWith = (holder: string) => ({ outcome: 'busy', ttlMs: expect.any(Number) as number, holder })

/** What is left of a hold that was taken before. */
const restOf = (ms: number) =>
  expect.toSatisfy((ttl) => Number(ttl) <= ms && Number(ttl) > ms - 5_000) as unknown as number

const holdOf = (owner: string, i = 1) => `{${lock}}:${owner}:rwlock_timeout:${i}`
const latchOf = (owner: string) => `redisson_unlock_latch:{${lock}}:${owner}`
const holds = (ttls: Readonly<Record<string, number>>): Record<string, Entry> =>
  Object.fromEntries(Object.entries(ttls).map(([key, ttl]) => [key, text('1', ttl)]))

let stage: Stage

const read = (owner: string, leaseMs = 30_000, more: { count?: number; writer?: string } = {}) =>
  stage.run(scripts.readAcquire, {
    lock,
    tombstone: latchOf(owner),
    owner,
    writer: '',
    count: 1,
    leaseMs,
    ...more,
  })
const write = (owner: string, leaseMs = 30_000, count = 1) =>
  stage.run(scripts.writeAcquire, { lock, tombstone: latchOf(`${owner}:write`), owner, count, leaseMs })
const endRead = (owner: string, more: { keepMs?: number; entombMs?: number } = {}) =>
  stage.run(
    scripts.readRelease,
    { lock, tombstone: latchOf(owner), owner, ...to, keepMs: 0, entombMs: 0, ...more },
    { mayShorten: true },
  )
const endWrite = (owner: string, more: { keepMs?: number; entombMs?: number } = {}) =>
  stage.run(
    scripts.writeRelease,
    { lock, tombstone: latchOf(`${owner}:write`), owner, ...to, keepMs: 0, entombMs: 0, ...more },
    { mayShorten: true },
  )

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

describe('read/acquire', () => {
  test('granted: mode, owner, and a hold key with the lease; nothing else, no message', async () => {
    expect(await read(OWNER)).toEqual({
      reply: { outcome: 'granted' },
      keys: {
        [lock]: hash({ mode: 'read', [OWNER]: '1' }, 30_000),
        ...holds({ [holdOf(OWNER)]: 30_000 }),
      },
      messages: [],
    })
  })

  test('granted beside readers: each has a hold of its own, and the hash the longest', async () => {
    await read(OWNER, 60_000)
    await read(OTHER, 10_000)
    const { keys, messages } = await read(THIRD, 90_000)
    expect(keys).toEqual({
      [lock]: hash({ mode: 'read', [OWNER]: '1', [OTHER]: '1', [THIRD]: '1' }, 90_000),
      ...holds({ [holdOf(OWNER)]: 60_000, [holdOf(OTHER)]: 10_000, [holdOf(THIRD)]: 90_000 }),
    })
    expect(messages).toEqual([])
  })

  test('entered again: a hold of its own; the first one lasts at least as long; a copy changes nothing', async () => {
    await read(OWNER, 30_000)
    await read(OWNER, 10_000, { count: 2 })
    const third = await read(OWNER, 60_000, { count: 3 })
    const keys = {
      [lock]: hash({ mode: 'read', [OWNER]: '3' }, 60_000),
      ...holds({ [holdOf(OWNER)]: 60_000, [holdOf(OWNER, 2)]: 10_000, [holdOf(OWNER, 3)]: 60_000 }),
    }
    expect(third.keys).toEqual(keys)
    expect((await read(OWNER, 60_000, { count: 3 })).keys).toEqual(keys)
    expect((await read(OWNER, 20_000)).keys).toEqual(keys)
  })

  test('granted inside the write of that owner, and of no other', async () => {
    await write(OWNER, 30_000)
    expect((await read(OTHER)).reply).toEqual(busyWith(OWNER))
    expect((await read(OTHER, 30_000, { writer: THIRD })).reply).toEqual(busyWith(OWNER))
    const own = await read(OWNER, 60_000, { writer: OWNER })
    expect(own.reply).toEqual({ outcome: 'granted' })
    const second = await read(THIRD, 10_000, { writer: OWNER })
    expect(second.keys).toEqual({
      [lock]: hash({ mode: 'write', [`${OWNER}:write`]: '1', [OWNER]: '1', [THIRD]: '1' }, 60_000),
      ...holds({ [holdOf(OWNER)]: 60_000, [holdOf(THIRD)]: 10_000 }),
    })
  })

  test('busy: the rest of the TTL and the writer as its lease calls it; nothing is changed', async () => {
    await write(OTHER, 30_000)
    const { reply, keys } = await read(OWNER, 60_000)
    expect(reply).toEqual(busyWith(OTHER))
    expect(keys).toEqual({ [lock]: hash({ mode: 'write', [`${OTHER}:write`]: '1' }, 30_000) })
  })

  test('lost: a nested entry does not take what is free, read by others, or has run out', async () => {
    expect((await read(OWNER, 30_000, { count: 2 })).reply).toEqual({ outcome: 'lost' })
    await read(OTHER)
    expect((await read(OWNER, 30_000, { count: 2 })).reply).toEqual({ outcome: 'lost' })
    await read(OWNER)
    await stage.raw.command('DEL', holdOf(OWNER))
    expect((await read(OWNER, 30_000, { count: 2 })).reply).toEqual({ outcome: 'lost' })
  })

  test('a first entry takes anew what has run out beside others', async () => {
    await read(OTHER, 60_000)
    await read(OWNER)
    await read(OWNER, 30_000, { count: 3 })
    await stage.raw.command('DEL', holdOf(OWNER))
    const { keys } = await read(OWNER, 10_000)
    expect(keys).toMatchObject({
      [lock]: hash({ mode: 'read', [OTHER]: '1', [OWNER]: '1' }, 60_000),
      ...holds({ [holdOf(OWNER)]: 10_000 }),
    })
  })

  test('dead: an entombed owner neither takes nor joins', async () => {
    await stage.raw.command('SET', latchOf(OWNER), '1', 'PX', 60_000)
    expect((await read(OWNER)).reply).toEqual({ outcome: 'dead' })
    await read(OTHER)
    const { reply, keys } = await read(OWNER)
    expect(reply).toEqual({ outcome: 'dead' })
    expect(keys[lock]).toEqual(hash({ mode: 'read', [OTHER]: '1' }, 30_000))
  })

  test.each([
    ['of other things', { colour: 'red' }],
    ['of a plain lock', { [OTHER]: '1' }],
    ['with a mode and other things', { mode: 'read', size: 'A4' }],
    ['with another mode', { mode: 'dark', colour: 'red' }],
    ['with nothing but a mode', { mode: 'read' }],
  ])('foreign: a hash %s stays as it is', async (_, fields) => {
    await stage.raw.command('HSET', lock, ...Object.entries(fields).flat())
    for (const step of [await read(OWNER), await write(OWNER)])
      expect(step).toMatchObject({ reply: { outcome: 'foreign' }, keys: { [lock]: hash(fields, 'none') } })
  })

  test('a lock that lost its TTL is joined, and gets one', async () => {
    await stage.raw.command('HSET', lock, 'mode', 'read', OTHER, '1')
    expect((await read(OWNER, 20_000)).keys[lock]).toEqual(
      hash({ mode: 'read', [OTHER]: '1', [OWNER]: '1' }, 20_000),
    )
  })
})

describe('read/leave', () => {
  test('kept: the count and the upper holds go, the TTL stays', async () => {
    await read(OWNER, 10_000)
    await read(OWNER, 60_000, { count: 2 })
    await read(OWNER, 10_000, { count: 3 })
    const leave = () => stage.run(scripts.readLeave, { lock, owner: OWNER, count: 1 })
    const left = {
      reply: { outcome: 'kept' },
      keys: {
        [lock]: hash({ mode: 'read', [OWNER]: '1' }, 60_000),
        ...holds({ [holdOf(OWNER)]: 60_000 }),
      },
      messages: [],
    }
    expect(await leave()).toEqual(left)
    expect(await leave()).toEqual(left)
  })

  test('gone, and taken: nothing is changed', async () => {
    const leave = async () => (await stage.run(scripts.readLeave, { lock, owner: OWNER, count: 1 })).reply
    expect(await leave()).toEqual({ outcome: 'gone' })
    await read(OTHER)
    expect(await leave()).toEqual({ outcome: 'taken' })
    await read(OWNER)
    await stage.raw.command('DEL', holdOf(OWNER))
    expect(await leave()).toEqual({ outcome: 'taken' })
  })
})

describe('read/release', () => {
  test('released: the last reader frees the lock whatever its count, with one message 0', async () => {
    await read(OWNER)
    await read(OWNER, 30_000, { count: 3 })
    expect(await endRead(OWNER)).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: [one] })
  })

  test('released: one of several sends no message; the longest hold that remains is the TTL', async () => {
    await read(OWNER, 30_000)
    await read(OTHER, 60_000)
    await read(THIRD, 10_000)
    const longest = await endRead(OTHER)
    expect(longest).toEqual({
      reply: { outcome: 'released' },
      keys: {
        [lock]: hash({ mode: 'read', [OWNER]: '1', [THIRD]: '1' }, restOf(30_000)),
        ...holds({ [holdOf(OWNER)]: 30_000, [holdOf(THIRD)]: 10_000 }),
      },
      messages: [],
    })
    expect((await endRead(THIRD)).keys[lock]).toEqual(hash({ mode: 'read', [OWNER]: '1' }, restOf(30_000)))
  })

  test('released: only readers that ran out remain, so the lock is free', async () => {
    await read(OWNER)
    await read(OTHER)
    await stage.raw.command('DEL', holdOf(OTHER))
    expect(await endRead(OWNER)).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: [one] })
  })

  test("released inside a write: the writer's time stays, no message", async () => {
    await write(OWNER, 60_000)
    await read(OWNER, 10_000, { writer: OWNER })
    expect(await endRead(OWNER)).toEqual({
      reply: { outcome: 'released' },
      keys: { [lock]: hash({ mode: 'write', [`${OWNER}:write`]: '1' }, 60_000) },
      messages: [],
    })
  })

  test('gone, and taken; a hold that ran out is cleared away, and told if it was the last', async () => {
    expect((await endRead(OWNER)).reply).toEqual({ outcome: 'gone' })
    await read(OTHER)
    await read(OWNER)
    await stage.raw.command('DEL', holdOf(OWNER))
    const taken = await endRead(OWNER)
    expect(taken).toMatchObject({ reply: { outcome: 'taken' }, messages: [] })
    expect(taken.keys[lock]).toEqual(hash({ mode: 'read', [OTHER]: '1' }, restOf(30_000)))
    await stage.raw.command('DEL', holdOf(OTHER))
    expect(await endRead(OTHER)).toEqual({ reply: { outcome: 'gone' }, keys: {}, messages: [one] })
  })

  test('with a minimum hold: a name that nobody renews keeps the rest of it, beside other readers', async () => {
    await read(OWNER, 60_000)
    await read(OTHER, 10_000)
    const rest = {
      [lock]: hash({ mode: 'read', [OTHER]: '1', [`${OWNER}:0`]: '1' }, 20_000),
      ...holds({ [holdOf(OTHER)]: 10_000, [holdOf(`${OWNER}:0`)]: 20_000 }),
    }
    const kept = await endRead(OWNER, { keepMs: 20_000 })
    expect(kept).toEqual({ reply: { outcome: 'released' }, keys: rest, messages: [one] })
    const again = await endRead(OWNER, { keepMs: 15_000 })
    expect(again).toEqual({ reply: { outcome: 'released' }, keys: rest, messages: [] })
  })

  test('entombing marks the owner in every case', async () => {
    await read(OWNER)
    expect((await endRead(OWNER, { entombMs: 60_000 })).keys).toEqual({ [latchOf(OWNER)]: text('1', 60_000) })
    await stage.clear()
    expect((await endRead(OWNER, { entombMs: 60_000 })).keys).toEqual({ [latchOf(OWNER)]: text('1', 60_000) })
  })
})

describe('read/renew', () => {
  test('raises all holds of the owner and the hash, and no hold of others', async () => {
    await read(OWNER, 10_000)
    await read(OWNER, 20_000, { count: 2 })
    await read(OTHER, 10_000)
    await stage.raw.command('SET', 'text', 'a value')
    await write(THIRD)
    const names = [lock, lock, 'text', 'gone']
    const owners = [OWNER, THIRD, OWNER, OWNER]
    const step = await stage.run(scripts.readRenew, { locks: names, ttlMs: 30_000, owners })
    expect(step).toMatchObject({
      reply: { results: [1, -1, -1, 0] },
      keys: {
        [lock]: hash({ mode: 'read', [OWNER]: '2', [OTHER]: '1' }, 30_000),
        ...holds({ [holdOf(OWNER)]: 30_000, [holdOf(OWNER, 2)]: 30_000, [holdOf(OTHER)]: 10_000 }),
      },
      messages: [],
    })
  })

  test('never shortens, and raises the hash again that another renewal has cut', async () => {
    await read(OWNER, 90_000)
    await stage.raw.command('PEXPIRE', lock, 10_000)
    const args = { locks: [lock], ttlMs: 80_000, owners: [OWNER] }
    expect((await stage.run(scripts.readRenew, args)).keys).toEqual({
      [lock]: hash({ mode: 'read', [OWNER]: '1' }, 80_000),
      ...holds({ [holdOf(OWNER)]: 90_000 }),
    })
  })

  test('a hold whose key is gone is not renewed, whatever keeps the hash alive', async () => {
    await read(OTHER, 10_000)
    await read(OWNER, 10_000)
    await stage.raw.command('DEL', holdOf(OWNER))
    const step = await stage.run(scripts.readRenew, { locks: [lock], ttlMs: 30_000, owners: [OWNER] })
    expect(step.reply).toEqual({ results: [-1] })
    expect(step.keys).not.toHaveProperty([holdOf(OWNER)])
    expect(step.keys[lock]).toMatchObject({ ttl: 10_000 })
  })
})

describe('read/inspect and write/inspect', () => {
  const looks = async () => [
    (await stage.run(scripts.readInspect, { lock })).reply,
    (await stage.run(scripts.writeInspect, { lock })).reply,
  ]
  const heldBy = (...holders: string[]) => ({
    outcome: 'held',
    ttlMs: expect.any(Number) as number,
    holders,
  })
  const free = { outcome: 'free' }

  test('each side tells its own holders, of both at once those of a writer that reads', async () => {
    expect(await looks()).toEqual([free, free])
    await write(OWNER)
    await write(OWNER, 30_000, 2)
    expect(await looks()).toEqual([free, heldBy(OWNER, '2')])
    await read(OWNER, 30_000, { writer: OWNER })
    expect(await looks()).toEqual([heldBy(OWNER, '1'), heldBy(OWNER, '2')])
    await endWrite(OWNER)
    expect(await looks()).toEqual([heldBy(OWNER, '1'), free])
  })

  test('a reader that ran out counts 0; data of others is foreign', async () => {
    await read(OWNER)
    await read(OTHER)
    await stage.raw.command('DEL', holdOf(OWNER))
    expect(await looks()).toEqual([heldBy(OWNER, '0', OTHER, '1'), free])
    await stage.clear()
    await stage.raw.command('HSET', lock, OTHER, '1')
    expect(await looks()).toEqual([{ outcome: 'foreign' }, { outcome: 'foreign' }])
  })

  test('what is left of a minimum hold is told by its side', async () => {
    await write(OWNER)
    await endWrite(OWNER, { keepMs: 10_000 })
    expect(await looks()).toEqual([free, heldBy(`${OWNER}:00`, '1')])
    await stage.clear()
    await read(OWNER)
    await endRead(OWNER, { keepMs: 10_000 })
    expect(await looks()).toEqual([heldBy(`${OWNER}:0`, '1'), free])
  })
})

describe('read/force and write/force', () => {
  const force = (side: 'read' | 'write', ...owners: string[]) =>
    stage.run(
      side === 'read' ? scripts.readForce : scripts.writeForce,
      { lock, ...to, owners },
      { mayShorten: true },
    )

  test('freed: the readers that were seen, and their holds; a message only when nobody is left', async () => {
    await read(OWNER, 60_000)
    await read(OTHER, 10_000)
    expect(await force('read', OWNER, THIRD)).toEqual({
      reply: { outcome: 'freed' },
      keys: {
        [lock]: hash({ mode: 'read', [OTHER]: '1' }, restOf(10_000)),
        ...holds({ [holdOf(OTHER)]: 10_000 }),
      },
      messages: [],
    })
    expect(await force('read', OTHER)).toEqual({ reply: { outcome: 'freed' }, keys: {}, messages: [one] })
  })

  test('freed: the writer that was seen; reads inside go on as readers', async () => {
    await write(OWNER, 60_000)
    expect(await force('write', OWNER)).toEqual({ reply: { outcome: 'freed' }, keys: {}, messages: all })
    await write(OWNER, 60_000)
    await read(OWNER, 30_000, { writer: OWNER })
    expect(await force('write', OWNER)).toEqual({
      reply: { outcome: 'freed' },
      keys: {
        [lock]: hash({ mode: 'read', [OWNER]: '1' }, restOf(30_000)),
        ...holds({ [holdOf(OWNER)]: 30_000 }),
      },
      messages: all,
    })
  })

  test('none: in the other mode, or for owners that were not seen', async () => {
    await read(OWNER)
    const reading = { [lock]: hash({ mode: 'read', [OWNER]: '1' }, 30_000) }
    for (const step of [await force('write', OWNER), await force('read', OTHER), await force('read')])
      expect(step).toMatchObject({ reply: { outcome: 'none' }, keys: reading, messages: [] })
    await endRead(OWNER)
    await write(OWNER)
    const writing = { [lock]: hash({ mode: 'write', [`${OWNER}:write`]: '1' }, 30_000) }
    for (const step of [await force('read', OWNER), await force('write', OTHER), await force('write')])
      expect(step).toMatchObject({ reply: { outcome: 'none' }, keys: writing, messages: [] })
  })

  test('what is left of a minimum hold goes by its name', async () => {
    await write(OWNER)
    await endWrite(OWNER, { keepMs: 10_000 })
    expect(await force('write', `${OWNER}:00`)).toMatchObject({ reply: { outcome: 'freed' }, keys: {} })
    await read(OWNER)
    await endRead(OWNER, { keepMs: 10_000 })
    expect(await force('read', `${OWNER}:0`)).toMatchObject({ reply: { outcome: 'freed' }, keys: {} })
  })
})

describe('write/acquire', () => {
  test('granted, entered again, repeated: the count that was asked for; the TTL is raised, never added up', async () => {
    expect(await write(OWNER, 30_000)).toEqual({
      reply: { outcome: 'granted' },
      keys: { [lock]: hash({ mode: 'write', [`${OWNER}:write`]: '1' }, 30_000) },
      messages: [],
    })
    const entered = { [lock]: hash({ mode: 'write', [`${OWNER}:write`]: '2' }, 60_000) }
    expect((await write(OWNER, 60_000, 2)).keys).toEqual(entered)
    expect((await write(OWNER, 60_000, 2)).keys).toEqual(entered)
    expect((await write(OWNER, 10_000)).keys).toEqual(entered)
  })

  test('busy: a writer, or a reader, even of the same owner', async () => {
    await write(OTHER)
    expect((await write(OWNER)).reply).toEqual(busyWith(OTHER))
    await stage.clear()
    await read(OWNER)
    expect((await write(OWNER)).reply).toEqual(busyWith(OWNER))
  })

  test('lost, and dead: the tombstone is that of the writer, not of a reader of that name', async () => {
    expect((await write(OWNER, 30_000, 2)).reply).toEqual({ outcome: 'lost' })
    await stage.raw.command('SET', latchOf(`${OWNER}:write`), '1', 'PX', 60_000)
    expect((await write(OWNER)).reply).toEqual({ outcome: 'dead' })
    expect((await read(OWNER)).reply).toEqual({ outcome: 'granted' })
  })
})

describe('write/release', () => {
  test('released: the lock is free, and everybody is told', async () => {
    await write(OWNER)
    await write(OWNER, 30_000, 3)
    expect(await endWrite(OWNER)).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: all })
  })

  test('downgrade: reads inside go on as readers, with their own time, and everybody is told', async () => {
    await write(OWNER, 60_000)
    await read(OWNER, 30_000, { writer: OWNER })
    await read(OTHER, 10_000, { writer: OWNER })
    expect(await endWrite(OWNER)).toEqual({
      reply: { outcome: 'released' },
      keys: {
        [lock]: hash({ mode: 'read', [OWNER]: '1', [OTHER]: '1' }, restOf(30_000)),
        ...holds({ [holdOf(OWNER)]: 30_000, [holdOf(OTHER)]: 10_000 }),
      },
      messages: all,
    })
    expect((await read(THIRD)).reply).toEqual({ outcome: 'granted' })
  })

  test('a read inside that ran out does not keep the lock', async () => {
    await write(OWNER)
    await read(OWNER, 30_000, { writer: OWNER })
    await stage.raw.command('DEL', holdOf(OWNER))
    expect(await endWrite(OWNER)).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: all })
  })

  test('gone, and taken, leave others alone, and readers of that name too', async () => {
    expect((await endWrite(OWNER)).reply).toEqual({ outcome: 'gone' })
    await read(OWNER)
    const step = await endWrite(OWNER, { entombMs: 60_000 })
    expect(step).toEqual({
      reply: { outcome: 'taken' },
      keys: {
        [lock]: hash({ mode: 'read', [OWNER]: '1' }, 30_000),
        ...holds({ [holdOf(OWNER)]: 30_000 }),
        [latchOf(`${OWNER}:write`)]: text('1', 60_000),
      },
      messages: [],
    })
  })

  test('with a minimum hold: the lock stays shut for the rest of it; a copy does not find it again', async () => {
    await write(OWNER, 60_000)
    const rest = { [lock]: hash({ mode: 'write', [`${OWNER}:00`]: '1' }, 20_000) }
    expect(await endWrite(OWNER, { keepMs: 20_000 })).toEqual({
      reply: { outcome: 'released' },
      keys: rest,
      messages: all,
    })
    expect(await endWrite(OWNER, { keepMs: 10_000 })).toMatchObject({
      reply: { outcome: 'released' },
      keys: rest,
      messages: [],
    })
    expect((await read(OTHER)).reply).toEqual(busyWith(`${OWNER}:00`))
    expect((await write(OWNER, 30_000, 2)).reply).toEqual({ outcome: 'lost' })
    expect(await endWrite(OWNER)).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: all })
  })
})

test('names with braces of their own: hold keys, tombstone and channel share the slot', async () => {
  const name = 'a{b}c'
  const args = { lock: name, tombstone: `redisson_unlock_latch:${name}:${OWNER}`, owner: OWNER }
  await stage.run(scripts.readAcquire, { ...args, writer: '', count: 1, leaseMs: 30_000 })
  const { keys } = await stage.run(scripts.readAcquire, { ...args, writer: '', count: 2, leaseMs: 30_000 })
  expect(Object.keys(keys).sort()).toEqual([
    name,
    `${name}:${OWNER}:rwlock_timeout:1`,
    `${name}:${OWNER}:rwlock_timeout:2`,
  ])
})
