/** The state that the scripts on several locks leave: keys, fields, TTLs, messages, for every outcome that they declare. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { hash, Stage } from './stage.js'
import { OTHER, OWNER, dead, locks } from './words.js'

const NAMES = ['orders:1', 'orders:2', '{t1}:orders'] as const
const DEAD = [
  `redisson_unlock_latch:{orders:1}:${OWNER}`,
  `redisson_unlock_latch:{orders:2}:${OWNER}`,
  `redisson_unlock_latch:{t1}:orders:${OWNER}`,
] as const
const CHANNELS = [
  'redisson_lock__channel:{orders:1}',
  'redisson_lock__channel:{orders:2}',
  'redisson_lock__channel:{t1}:orders',
] as const
const keys = [...NAMES, ...DEAD]
const taking = { keys, owner: OWNER, leaseMs: 30_000 }
const freeing = { keys, owner: OWNER, entombMs: 0, publish: 'PUBLISH', channels: CHANNELS }
const ours = hash({ [OWNER]: '1' }, 30_000)

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

describe('multi/acquire', () => {
  test('granted: a hash with the owner, the count 1 and the lease as TTL under each name; no message', async () => {
    expect(await stage.run(scripts.multiAcquire, taking)).toEqual({
      reply: { outcome: 'granted' },
      keys: Object.fromEntries(NAMES.map((name) => [name, ours])),
      messages: [],
    })
  })

  test('repeated: counts stay, TTLs are raised and never cut', async () => {
    await stage.run(scripts.multiAcquire, taking)
    const again = await stage.run(scripts.multiAcquire, { ...taking, leaseMs: 60_000 })
    expect(again.keys).toEqual(
      Object.fromEntries(NAMES.map((name) => [name, hash({ [OWNER]: '1' }, 60_000)])),
    )
    const shorter = await stage.run(scripts.multiAcquire, { ...taking, leaseMs: 10_000 })
    expect(shorter.keys).toEqual(again.keys)
    expect(shorter.reply).toEqual({ outcome: 'granted' })
  })

  test('busy: says which, and takes none', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ lock: NAMES[1], owner: OTHER }))
    const step = await stage.run(scripts.multiAcquire, taking)
    expect(step.reply).toMatchObject({ outcome: 'busy', index: 1, holder: OTHER })
    expect(step.keys).toEqual({ [NAMES[1]]: hash({ [OTHER]: '1' }, 30_000) })
  })

  test('dead: a tombstone beside one of them refuses all', async () => {
    await stage.run(scripts.lockRelease, locks.release({ lock: NAMES[0], entombMs: 60_000 }))
    const step = await stage.run(scripts.multiAcquire, taking)
    expect(step.reply).toEqual({ outcome: 'dead', index: 0 })
    expect(step.keys).toEqual({ [DEAD[0]]: dead })
  })

  test('foreign: other data under one of them refuses all, and stays', async () => {
    for (const command of [
      ['RPUSH', NAMES[2], 'theirs'],
      ['HSET', NAMES[2], 'colour', 'red'],
    ]) {
      await stage.clear()
      await stage.raw.command(...command)
      const step = await stage.run(scripts.multiAcquire, taking)
      expect(step.reply).toEqual({ outcome: 'foreign', index: 2 })
      expect(Object.keys(step.keys)).toEqual([NAMES[2]])
    }
  })
})

describe('multi/release', () => {
  test('frees all that the owner has, with one message for each', async () => {
    await stage.run(scripts.multiAcquire, taking)
    expect(await stage.run(scripts.multiRelease, freeing)).toEqual({
      reply: { results: [1, 1, 1] },
      keys: {},
      messages: CHANNELS.map((channel) => ({ channel, payload: '0' })),
    })
  })

  test('goes on behind what is gone, taken or no lock, and tells only of what it freed', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ lock: NAMES[1] }))
    await stage.raw.command('RPUSH', NAMES[2], 'theirs')
    const step = await stage.run(scripts.multiRelease, freeing)
    expect(step.reply).toEqual({ results: [0, 1, -3] })
    expect(step.messages).toEqual([{ channel: CHANNELS[1], payload: '0' }])
    await stage.run(scripts.lockAcquire, locks.acquire({ lock: NAMES[0], owner: OTHER }))
    expect((await stage.run(scripts.multiRelease, freeing)).reply).toEqual({ results: [-1, 0, -3] })
  })

  test('leaves tombstones where it is asked to', async () => {
    await stage.run(scripts.multiAcquire, taking)
    const step = await stage.run(scripts.multiRelease, { ...freeing, entombMs: 60_000 })
    expect(step.keys).toEqual(Object.fromEntries(DEAD.map((key) => [key, dead])))
  })
})

test('server/identify: the run of the server and the id of its data; nothing is stored', async () => {
  const step = await stage.run(scripts.serverIdentify, { name: NAMES[0] })
  const id = expect.stringMatching(/^[0-9a-f]{40}$/) as string
  expect(step).toEqual({ reply: { outcome: 'known', runId: id, dataId: id }, keys: {}, messages: [] })
})
