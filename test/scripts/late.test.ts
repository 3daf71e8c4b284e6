/** Copies of a script that come twice, late, or both: clients send again, old links deliver after new ones. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import type { ScriptDefinition } from '../../src/engine/redis/script.js'
import { hash, Stage, text, type Step } from './stage.js'
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
  unlocked,
} from './words.js'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

const acquire = (count: number, owner = OWNER): Promise<Step<scripts.LockAcquireReply>> =>
  stage.run(scripts.lockAcquire, locks.acquire({ count, owner }))
const leave = (count: number): Promise<Step<scripts.LockLeaveReply>> =>
  stage.run(scripts.lockLeave, { lock, owner: OWNER, count })
const release = (args: Partial<scripts.LockReleaseArgs> = {}): Promise<Step<scripts.LockReleaseReply>> =>
  stage.run(scripts.lockRelease, locks.release(args))

/** Runs a script twice; the second copy must leave what the first one left. */
async function twice<A, R>(
  definition: ScriptDefinition<A, R>,
  args: A,
): Promise<readonly [Step<R>, Step<R>]> {
  const first = await stage.run(definition, args)
  const second = await stage.run(definition, args)
  expect(second.keys).toEqual(first.keys)
  return [first, second]
}

describe('each lock script, twice', () => {
  test('acquire: granted both times, one hold', async () => {
    const [first, second] = await twice(scripts.lockAcquire, locks.acquire())
    expect([first.reply, second.reply]).toEqual([{ outcome: 'granted' }, { outcome: 'granted' }])
    expect(second.keys).toEqual({ [lock]: hash({ [OWNER]: '1' }, 30_000) })
  })

  test('nested acquire: granted both times, counted once', async () => {
    await acquire(1)
    const [first, second] = await twice(scripts.lockAcquire, locks.acquire({ count: 2 }))
    expect([first.reply, second.reply]).toEqual([{ outcome: 'granted' }, { outcome: 'granted' }])
    expect(second.keys).toEqual({ [lock]: hash({ [OWNER]: '2' }, 30_000) })
  })

  test('leave: kept both times, counted once', async () => {
    await acquire(1)
    await acquire(3)
    const [first, second] = await twice(scripts.lockLeave, { lock, owner: OWNER, count: 2 })
    expect([first.reply, second.reply]).toEqual([{ outcome: 'kept' }, { outcome: 'kept' }])
    expect(second.keys).toEqual({ [lock]: hash({ [OWNER]: '2' }, 30_000) })
  })

  test('release: the second copy finds nothing and wakes nobody', async () => {
    await acquire(1)
    const [first, second] = await twice(scripts.lockRelease, locks.release({ entombMs: 60_000 }))
    expect([first.reply, second.reply]).toEqual([{ outcome: 'released' }, { outcome: 'gone' }])
    expect([first.messages, second.messages]).toEqual([[unlocked], []])
    expect(second.keys).toEqual({ [DEAD]: dead })
  })

  test('release with a minimum hold: the second copy leaves the same rest', async () => {
    await acquire(1)
    const options = { mayShorten: true }
    const args = locks.release({ keepMs: 5_000 })
    await stage.run(scripts.lockRelease, args, options)
    const second = await stage.run(scripts.lockRelease, args, options)
    expect(second).toEqual({
      reply: { outcome: 'released' },
      keys: { [lock]: hash({ [`${OWNER}:0`]: '1' }, 5_000) },
      messages: [],
    })
  })

  test('release with a minimum hold: a late renewal does not raise the rest, a late acquire does not enter it', async () => {
    await acquire(1)
    const rest = { [lock]: hash({ [`${OWNER}:0`]: '1' }, 5_000) }
    await stage.run(scripts.lockRelease, locks.release({ keepMs: 5_000 }), { mayShorten: true })
    const renewed = await stage.run(scripts.lockRenew, { locks: [lock], ttlMs: 60_000, owners: [OWNER] })
    expect(renewed).toEqual({ reply: { results: [-1] }, keys: rest, messages: [] })
    expect((await acquire(1)).keys).toEqual(rest)
    const freed = await stage.run(scripts.lockRelease, locks.release())
    expect(freed.keys).toEqual({})
  })

  test('renew: raised once', async () => {
    await acquire(1)
    const [, second] = await twice(scripts.lockRenew, { locks: [lock], ttlMs: 60_000, owners: [OWNER] })
    expect(second.reply).toEqual({ results: [1] })
    expect(second.keys).toEqual({ [lock]: hash({ [OWNER]: '1' }, 60_000) })
  })

  test('force: the second copy finds nothing and wakes nobody', async () => {
    await acquire(1)
    const [first, second] = await twice(scripts.lockForce, locks.force([OWNER]))
    expect([first.reply, second.reply]).toEqual([{ outcome: 'freed' }, { outcome: 'none' }])
    expect([first.messages, second.messages]).toEqual([[unlocked], []])
  })
})

describe('each mutex script, twice', () => {
  test('acquire: granted both times', async () => {
    const [first, second] = await twice(scripts.mutexAcquire, mutexes.acquire())
    expect([first.reply, second.reply]).toEqual([{ outcome: 'granted' }, { outcome: 'granted' }])
    expect(second.keys).toEqual({ [mutex]: text(OWNER, 30_000) })
  })

  test('release: the second copy finds nothing and wakes nobody', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire())
    const [first, second] = await twice(scripts.mutexRelease, mutexes.release({ entombMs: 60_000 }))
    expect([first.reply, second.reply]).toEqual([{ outcome: 'released' }, { outcome: 'gone' }])
    expect([first.messages.length, second.messages.length]).toEqual([1, 0])
    expect(second.keys).toEqual({ [MUTEX_DEAD]: dead })
  })

  test('release with a minimum hold: the second copy leaves the same rest', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire())
    const args = mutexes.release({ keepMs: 5_000 })
    await stage.run(scripts.mutexRelease, args, { mayShorten: true })
    const second = await stage.run(scripts.mutexRelease, args, { mayShorten: true })
    expect(second).toEqual({
      reply: { outcome: 'released' },
      keys: { [mutex]: text(`${OWNER}:0`, 5_000) },
      messages: [],
    })
  })

  test('release with a minimum hold: a late renewal does not raise the rest, a late acquire does not enter it', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire())
    const rest = { [mutex]: text(`${OWNER}:0`, 5_000) }
    await stage.run(scripts.mutexRelease, mutexes.release({ keepMs: 5_000 }), { mayShorten: true })
    const late = { mutexes: [mutex], ttlMs: 60_000, owners: [OWNER] }
    const renewed = await stage.run(scripts.mutexRenew, late)
    expect(renewed).toEqual({ reply: { results: [-1] }, keys: rest, messages: [] })
    expect((await stage.run(scripts.mutexAcquire, mutexes.acquire())).keys).toEqual(rest)
    expect((await stage.run(scripts.mutexRelease, mutexes.release())).keys).toEqual({})
  })

  test('renew: raised once', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire())
    const [, second] = await twice(scripts.mutexRenew, { mutexes: [mutex], ttlMs: 60_000, owners: [OWNER] })
    expect(second.reply).toEqual({ results: [1] })
    expect(second.keys).toEqual({ [mutex]: text(OWNER, 60_000) })
  })

  test('force: the second copy finds nothing and wakes nobody', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire())
    const [first, second] = await twice(scripts.mutexForce, mutexes.force(OWNER))
    expect([first.reply, second.reply]).toEqual([{ outcome: 'freed' }, { outcome: 'none' }])
    expect([first.messages.length, second.messages.length]).toEqual([1, 0])
  })
})

describe('a late copy, after the owner went on', () => {
  test('of the first acquire does not lower a nested count', async () => {
    await acquire(1)
    await acquire(2)
    const late = await acquire(1)
    expect(late.reply).toEqual({ outcome: 'granted' })
    expect(late.keys).toEqual({ [lock]: hash({ [OWNER]: '2' }, 30_000) })
  })

  test('of a leave does not raise the count', async () => {
    await acquire(1)
    await acquire(3)
    await leave(1)
    const late = await leave(2)
    expect(late.keys).toEqual({ [lock]: hash({ [OWNER]: '1' }, 30_000) })
  })

  test('of a nested acquire may leave the count too high, and the release frees the lock all the same', async () => {
    await acquire(1)
    await acquire(2)
    await leave(1)
    await acquire(2)
    const step = await release()
    expect(step).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: [unlocked] })
  })

  test('of a nested acquire, after the release, takes nothing', async () => {
    await acquire(1)
    await acquire(2)
    await release()
    expect(await acquire(2)).toEqual({ reply: { outcome: 'lost' }, keys: {}, messages: [] })
  })

  test('of leave, renew, release or force, after the release, creates nothing and wakes nobody', async () => {
    await acquire(1)
    await release()
    const nothing = { keys: {}, messages: [] }
    expect(await leave(1)).toEqual({ reply: { outcome: 'gone' }, ...nothing })
    expect(await release()).toEqual({ reply: { outcome: 'gone' }, ...nothing })
    const renewed = await stage.run(scripts.lockRenew, { locks: [lock], ttlMs: 60_000, owners: [OWNER] })
    expect(renewed).toEqual({ reply: { results: [0] }, ...nothing })
    const forced = await stage.run(scripts.lockForce, locks.force([OWNER]))
    expect(forced).toEqual({ reply: { outcome: 'none' }, ...nothing })
  })

  test("of any lock script leaves the next owner's hold as it is", async () => {
    await acquire(1)
    await release()
    await stage.run(scripts.lockAcquire, locks.acquire({ owner: OTHER, leaseMs: 20_000 }))
    const untouched = { keys: { [lock]: hash({ [OTHER]: '1' }, 20_000) }, messages: [] }
    expect(await acquire(1)).toMatchObject({ reply: { outcome: 'busy' }, ...untouched })
    expect(await acquire(2)).toEqual({ reply: { outcome: 'lost' }, ...untouched })
    expect(await leave(1)).toEqual({ reply: { outcome: 'taken' }, ...untouched })
    expect(await release()).toEqual({ reply: { outcome: 'taken' }, ...untouched })
    expect(await release({ keepMs: 60_000 })).toEqual({ reply: { outcome: 'taken' }, ...untouched })
    const renewed = await stage.run(scripts.lockRenew, { locks: [lock], ttlMs: 60_000, owners: [OWNER] })
    expect(renewed).toEqual({ reply: { results: [-1] }, ...untouched })
    const forced = await stage.run(scripts.lockForce, locks.force([OWNER]))
    expect(forced).toEqual({ reply: { outcome: 'none' }, ...untouched })
  })

  test("of any mutex script leaves the next token's hold as it is", async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ owner: OTHER, leaseMs: 20_000 }))
    const untouched = { keys: { [mutex]: text(OTHER, 20_000) }, messages: [] }
    const acquired = await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 60_000 }))
    expect(acquired).toMatchObject({ reply: { outcome: 'busy' }, ...untouched })
    for (const keepMs of [0, 60_000]) {
      const released = await stage.run(scripts.mutexRelease, mutexes.release({ keepMs }))
      expect(released).toEqual({ reply: { outcome: 'taken' }, ...untouched })
    }
    const renewed = await stage.run(scripts.mutexRenew, { mutexes: [mutex], ttlMs: 60_000, owners: [OWNER] })
    expect(renewed).toEqual({ reply: { results: [-1] }, ...untouched })
    const forced = await stage.run(scripts.mutexForce, mutexes.force(OWNER))
    expect(forced).toEqual({ reply: { outcome: 'none' }, ...untouched })
  })
})

describe('the tombstone', () => {
  test('refuses an acquire that arrives after the release that gave it up', async () => {
    expect((await release({ entombMs: 60_000 })).reply).toEqual({ outcome: 'gone' })
    expect(await acquire(1)).toEqual({ reply: { outcome: 'dead' }, keys: { [DEAD]: dead }, messages: [] })
    await stage.run(scripts.mutexRelease, mutexes.release({ entombMs: 60_000 }))
    const late = await stage.run(scripts.mutexAcquire, mutexes.acquire())
    expect(late.reply).toEqual({ outcome: 'dead' })
    expect(late.keys).toEqual({ [DEAD]: dead, [MUTEX_DEAD]: dead })
  })

  test('stands in the way of its own owner only', async () => {
    await release({ entombMs: 60_000 })
    const { reply, keys } = await acquire(1, OTHER)
    expect(reply).toEqual({ outcome: 'granted' })
    expect(keys).toEqual({ [DEAD]: dead, [lock]: hash({ [OTHER]: '1' }, 30_000) })
    await stage.run(scripts.mutexRelease, mutexes.release({ entombMs: 60_000 }))
    const token = await stage.run(scripts.mutexAcquire, mutexes.acquire({ owner: OTHER }))
    expect(token.reply).toEqual({ outcome: 'granted' })
  })

  test('is left by a copy of the entombing release that finds the next owner, who is not disturbed', async () => {
    await acquire(1, OTHER)
    const step = await release({ entombMs: 60_000 })
    expect(step).toEqual({
      reply: { outcome: 'taken' },
      keys: { [DEAD]: dead, [lock]: hash({ [OTHER]: '1' }, 30_000) },
      messages: [],
    })
  })
})
