/** Copies of the read/write lock's scripts that come twice, late, or both. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { hash, Stage, text } from './stage.js'
import { OTHER, OWNER } from './words.js'

const lock = 'orders:42'
const to = { channel: 'redisson_rwlock:{orders:42}', publish: 'PUBLISH' }
const latchOf = (owner: string) => `redisson_unlock_latch:{${lock}}:${owner}`
const holdOf = (owner: string, i = 1) => `{${lock}}:${owner}:rwlock_timeout:${i}`

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

const read = (owner: string, { count = 1, writer = '' } = {}) =>
  stage.run(scripts.readAcquire, {
    lock,
    tombstone: latchOf(owner),
    owner,
    writer,
    count,
    leaseMs: 30_000,
  })
const leaveRead = (owner: string, count: number) => stage.run(scripts.readLeave, { lock, owner, count })
const endRead = (owner: string, { entombMs = 0 } = {}) =>
  stage.run(
    scripts.readRelease,
    { lock, tombstone: latchOf(owner), owner, ...to, keepMs: 0, entombMs },
    { mayShorten: true },
  )
const write = (owner: string, count = 1) =>
  stage.run(scripts.writeAcquire, {
    lock,
    tombstone: latchOf(`${owner}:write`),
    owner,
    count,
    leaseMs: 30_000,
  })
const endWrite = (owner: string, { entombMs = 0 } = {}) =>
  stage.run(
    scripts.writeRelease,
    { lock, tombstone: latchOf(`${owner}:write`), owner, ...to, keepMs: 0, entombMs },
    { mayShorten: true },
  )
const fieldsOf = async () => (await stage.act(() => Promise.resolve())).keys[lock]?.value

describe('each script, twice', () => {
  test('acquires and leaves leave what the first copy left', async () => {
    for (const step of [() => read(OWNER), () => read(OWNER, { count: 2 }), () => leaveRead(OWNER, 1)]) {
      const first = await step()
      const second = await step()
      expect(second).toEqual({ ...first, messages: [] })
    }
    await stage.clear()
    for (const step of [() => write(OWNER), () => write(OWNER, 2)]) {
      const first = await step()
      expect(await step()).toEqual(first)
    }
  })

  test('a release tells once, and its copy says that nothing is there, or somebody else', async () => {
    await read(OWNER)
    expect((await endRead(OWNER)).messages).toHaveLength(1)
    expect(await endRead(OWNER)).toEqual({ reply: { outcome: 'gone' }, keys: {}, messages: [] })
    await write(OWNER)
    expect((await endWrite(OWNER)).messages.map(({ payload }) => payload)).toEqual(['1', '0'])
    await read(OTHER)
    expect(await endWrite(OWNER)).toMatchObject({ reply: { outcome: 'taken' }, messages: [] })
    expect(await endRead(OWNER)).toMatchObject({ reply: { outcome: 'taken' }, messages: [] })
    expect(await fieldsOf()).toEqual({ mode: 'read', [OTHER]: '1' })
  })
})

describe('a copy that comes late', () => {
  test('of a first entry, after the end: refused where a tombstone lies, for each side its own', async () => {
    await read(OWNER)
    await endRead(OWNER, { entombMs: 60_000 })
    expect((await read(OWNER)).reply).toEqual({ outcome: 'dead' })
    expect((await write(OWNER)).reply).toEqual({ outcome: 'granted' })
    // A read inside the write, as a new owner: the old name is dead.
    expect((await read(OWNER, { writer: OWNER })).reply).toEqual({ outcome: 'dead' })
    expect((await read(OTHER, { writer: OWNER })).reply).toEqual({ outcome: 'granted' })
    await endRead(OTHER)
    await endWrite(OWNER, { entombMs: 60_000 })
    expect((await write(OWNER)).reply).toEqual({ outcome: 'dead' })
  })

  test('of a nested entry, after the end, neither takes nor joins', async () => {
    await read(OTHER)
    await read(OWNER)
    await endRead(OWNER)
    expect((await read(OWNER, { count: 2 })).reply).toEqual({ outcome: 'lost' })
    expect(await fieldsOf()).toEqual({ mode: 'read', [OTHER]: '1' })
    await endRead(OTHER)
    expect((await write(OWNER, 2)).reply).toEqual({ outcome: 'lost' })
    expect(await fieldsOf()).toBeUndefined()
  })

  test('of a nested entry, after it was left, is undone by the end, hold key and all', async () => {
    await read(OWNER)
    await read(OWNER, { count: 2 })
    await leaveRead(OWNER, 1)
    expect((await read(OWNER, { count: 2 })).keys).toMatchObject({ [holdOf(OWNER, 2)]: text('1', 30_000) })
    expect((await endRead(OWNER)).keys).toEqual({})
  })

  test('of a leave, while the hold is entered again, takes nothing from under it', async () => {
    await read(OWNER)
    await read(OWNER, { count: 2 })
    await leaveRead(OWNER, 1)
    await read(OWNER, { count: 2 })
    expect((await leaveRead(OWNER, 1)).keys).toMatchObject({
      [lock]: hash({ mode: 'read', [OWNER]: '1' }, 30_000),
      [holdOf(OWNER)]: text('1', 30_000),
    })
  })

  test("of a writer's end, while reads inside of it go on, does not end them", async () => {
    await write(OWNER)
    await read(OWNER, { writer: OWNER })
    await endWrite(OWNER)
    const late = await endWrite(OWNER)
    expect(late).toMatchObject({ reply: { outcome: 'taken' }, messages: [] })
    expect(await fieldsOf()).toEqual({ mode: 'read', [OWNER]: '1' })
  })

  test("of a reader's end does not end the write of that name", async () => {
    await write(OWNER)
    await read(OWNER, { writer: OWNER })
    await endRead(OWNER)
    expect(await endRead(OWNER)).toMatchObject({ reply: { outcome: 'taken' }, messages: [] })
    expect(await fieldsOf()).toEqual({ mode: 'write', [`${OWNER}:write`]: '1' })
  })

  test('of a renewal brings nobody back', async () => {
    await read(OWNER)
    await endRead(OWNER)
    await read(OTHER)
    const args = { locks: [lock], ttlMs: 60_000, owners: [OWNER] }
    const step = await stage.run(scripts.readRenew, args)
    expect(step.reply).toEqual({ results: [-1] })
    expect(step.keys).toEqual({
      [lock]: hash({ mode: 'read', [OTHER]: '1' }, 30_000),
      [holdOf(OTHER)]: text('1', 30_000),
    })
  })
})

describe('trouble of the server', () => {
  test('a full server lets readers and writers go, also those who left a tombstone', async () => {
    await read(OWNER)
    await read(OTHER)
    await stage.raw.command('CONFIG', 'SET', 'maxmemory', '1')
    try {
      await expect(read('9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:58')).rejects.toThrow(/OOM/)
      expect((await endRead(OWNER, { entombMs: 60_000 })).reply).toEqual({ outcome: 'released' })
      expect((await endRead(OTHER)).reply).toEqual({ outcome: 'released' })
      await stage.raw.command('CONFIG', 'SET', 'maxmemory', '0')
      await stage.clear()
      await write(OWNER)
      await read(OWNER, { writer: OWNER })
      await read(OWNER, { count: 2 })
      await stage.raw.command('CONFIG', 'SET', 'maxmemory', '1')
      expect((await leaveRead(OWNER, 1)).reply).toEqual({ outcome: 'kept' })
      expect((await endWrite(OWNER, { entombMs: 60_000 })).reply).toEqual({ outcome: 'released' })
      expect(await fieldsOf()).toEqual({ mode: 'read', [OWNER]: '1' })
    } finally {
      await stage.raw.command('CONFIG', 'SET', 'maxmemory', '0')
    }
  })

  test('a message that is refused does not keep the lock', async () => {
    const refused = { ...to, publish: 'NOSUCHCOMMAND' }
    await read(OWNER)
    const args = { lock, tombstone: latchOf(OWNER), owner: OWNER, keepMs: 0, entombMs: 0 }
    const reading = await stage.run(scripts.readRelease, { ...args, ...refused })
    expect(reading).toEqual({ reply: { outcome: 'unannounced' }, keys: {}, messages: [] })
    await write(OWNER)
    const writing = await stage.run(scripts.writeRelease, { ...args, ...refused })
    expect(writing).toEqual({ reply: { outcome: 'unannounced' }, keys: {}, messages: [] })
    await read(OWNER)
    const forced = await stage.run(scripts.readForce, { lock, ...refused, owners: [OWNER] })
    expect(forced.reply).toEqual({ outcome: 'unannounced' })
    await write(OWNER)
    const taken = await stage.run(scripts.writeForce, { lock, ...refused, owners: [OWNER] })
    expect(taken.reply).toEqual({ outcome: 'unannounced' })
  })
})
