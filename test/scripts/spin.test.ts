/** The state that the spin lock's scripts leave: as a plain lock's, without a message. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { hash, Stage } from './stage.js'
import { DEAD, LOCK as lock, OTHER, OWNER, dead, locks } from './words.js'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

const acquire = (args: Partial<scripts.LockAcquireArgs> = {}) =>
  stage.run(scripts.lockAcquire, locks.acquire(args))
const release = (args: Partial<scripts.SpinReleaseArgs> = {}, mayShorten = false) => {
  const all = { lock, tombstone: DEAD, owner: OWNER, keepMs: 0, entombMs: 0, ...args }
  return stage.run(scripts.spinRelease, all, { mayShorten })
}

describe('spin/release', () => {
  test.each([1, 5])('released from the count %i: the key is gone, and nobody is told', async (count) => {
    await acquire()
    await acquire({ count })
    expect(await release()).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: [] })
  })

  test.each([
    ['shorter', 60_000, 5_000],
    ['longer', 5_000, 60_000],
  ])('released with a minimum hold: the rest is the TTL, also where it is %s', async (_, leaseMs, keepMs) => {
    await acquire({ leaseMs })
    expect(await release({ keepMs }, true)).toEqual({
      reply: { outcome: 'released' },
      keys: { [lock]: hash({ [`${OWNER}:0`]: '1' }, keepMs) },
      messages: [],
    })
    // A late copy finds it kept already; a later one, when the time is over, frees it.
    expect((await release({ keepMs: 90_000 })).keys).toEqual({
      [lock]: hash({ [`${OWNER}:0`]: '1' }, keepMs),
    })
    expect(await release()).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: [] })
  })

  test('gone and taken: nothing is touched', async () => {
    expect(await release()).toEqual({ reply: { outcome: 'gone' }, keys: {}, messages: [] })
    expect(await release({ keepMs: 5_000 })).toEqual({ reply: { outcome: 'gone' }, keys: {}, messages: [] })
    await acquire({ owner: OTHER })
    for (const keepMs of [0, 5_000])
      expect(await release({ keepMs })).toEqual({
        reply: { outcome: 'taken' },
        keys: { [lock]: hash({ [OTHER]: '1' }, 30_000) },
        messages: [],
      })
  })

  test('the entombing release marks its owner, whether something is held or not', async () => {
    await acquire()
    const held = await release({ entombMs: 60_000 })
    expect(held).toEqual({ reply: { outcome: 'released' }, keys: { [DEAD]: dead }, messages: [] })
    const gone = await release({ entombMs: 60_000 })
    expect(gone).toEqual({ reply: { outcome: 'gone' }, keys: { [DEAD]: dead }, messages: [] })
    expect((await acquire()).reply).toEqual({ outcome: 'dead' })
  })

  test('a full server allows it', async () => {
    await acquire()
    await stage.raw.command('CONFIG', 'SET', 'maxmemory', '1')
    try {
      expect((await release({ keepMs: 5_000, entombMs: 60_000 }, true)).reply).toEqual({
        outcome: 'released',
      })
      expect((await release({ entombMs: 60_000 })).reply).toEqual({ outcome: 'released' })
    } finally {
      await stage.raw.command('CONFIG', 'SET', 'maxmemory', '0')
    }
  })
})

describe('spin/force', () => {
  test('freed: the owners that were seen are gone, and nobody is told', async () => {
    await acquire()
    const step = await stage.run(scripts.spinForce, { lock, owners: [OTHER, OWNER] })
    expect(step).toEqual({ reply: { outcome: 'freed' }, keys: {}, messages: [] })
  })

  test('none: an owner that came later keeps its hold', async () => {
    await acquire({ owner: OTHER })
    for (const owners of [[OWNER], []])
      expect(await stage.run(scripts.spinForce, { lock, owners })).toEqual({
        reply: { outcome: 'none' },
        keys: { [lock]: hash({ [OTHER]: '1' }, 30_000) },
        messages: [],
      })
  })
})
