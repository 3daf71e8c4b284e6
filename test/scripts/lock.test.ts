/** The state that each lock script leaves: keys, fields, TTLs, messages, for every outcome that it declares. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { hash, Stage, text } from './stage.js'
import { DEAD, LOCK as lock, OTHER, OWNER, dead, locks, unlocked } from './words.js'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

describe('lock/acquire', () => {
  test('granted: a hash with the owner, the count 1 and the lease as TTL; nothing else, no message', async () => {
    expect(await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 30_000 }))).toEqual({
      reply: { outcome: 'granted' },
      keys: { [lock]: hash({ [OWNER]: '1' }, 30_000) },
      messages: [],
    })
  })

  test('entered again: the count that was asked for; the TTL is raised, not set', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 30_000 }))
    const shorter = await stage.run(scripts.lockAcquire, locks.acquire({ count: 2, leaseMs: 10_000 }))
    expect(shorter.reply).toEqual({ outcome: 'granted' })
    expect(shorter.keys).toEqual({ [lock]: hash({ [OWNER]: '2' }, 30_000) })
    const longer = await stage.run(scripts.lockAcquire, locks.acquire({ count: 3, leaseMs: 60_000 }))
    expect(longer.keys).toEqual({ [lock]: hash({ [OWNER]: '3' }, 60_000) })
    expect(longer.messages).toEqual([])
  })

  test('entered again: the count is set, not raised by one', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire())
    const step = await stage.run(scripts.lockAcquire, locks.acquire({ count: 3 }))
    expect(step.keys).toEqual({ [lock]: hash({ [OWNER]: '3' }, 30_000) })
  })

  test('busy: the rest of the TTL and the holder; the hold is untouched', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ owner: OTHER, leaseMs: 30_000 }))
    const step = await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 60_000 }))
    expect(step.reply).toEqual({ outcome: 'busy', ttlMs: expect.any(Number) as number, holder: OTHER })
    expect(step.reply).toHaveProperty(
      'ttlMs',
      expect.toSatisfy((ms) => Number(ms) > 0 && Number(ms) <= 30_000),
    )
    expect(step.keys).toEqual({ [lock]: hash({ [OTHER]: '1' }, 30_000) })
    expect(step.messages).toEqual([])
  })

  test('busy on a lock without a TTL: says -1 and gives it none', async () => {
    await stage.raw.command('HSET', lock, OTHER, '1')
    const step = await stage.run(scripts.lockAcquire, locks.acquire())
    expect(step.reply).toEqual({ outcome: 'busy', ttlMs: -1, holder: OTHER })
    expect(step.keys).toEqual({ [lock]: hash({ [OTHER]: '1' }, 'none') })
  })

  test('its own hold without a TTL gets one', async () => {
    await stage.raw.command('HSET', lock, OWNER, '1')
    const step = await stage.run(scripts.lockAcquire, locks.acquire({ count: 2, leaseMs: 20_000 }))
    expect(step.keys).toEqual({ [lock]: hash({ [OWNER]: '2' }, 20_000) })
  })

  test.each([
    ['another thread', '0a1b2c3d-0003-4000-8000-0000000012c1:7'],
    ['a hold inside a transaction', '0a1b2c3d-0003-4000-8000-0000000012c1:7:0a1b2c3d4e5f'],
  ])('busy also names %s', async (_, holder) => {
    await stage.raw.command('HSET', lock, holder, '1')
    const { reply } = await stage.run(scripts.lockAcquire, locks.acquire())
    expect(reply).toEqual({ outcome: 'busy', ttlMs: -1, holder })
  })

  test.each(['read', 'write'] as const)('foreign: a read/write lock that is held to %s', async (mode) => {
    const holder = `0a1b2c3d-0003-4000-8000-0000000012c1:7${mode === 'write' ? ':write' : ''}`
    await stage.raw.command('HSET', lock, 'mode', mode, holder, '1')
    const { reply, keys } = await stage.run(scripts.lockAcquire, locks.acquire())
    expect(reply).toEqual({ outcome: 'foreign' })
    expect(keys).toEqual({ [lock]: hash({ mode, [holder]: '1' }, 'none') })
  })

  test.each([
    ['free', undefined],
    ['held by another owner', OTHER],
  ])('lost: a nested entry does not take a lock that is %s', async (_, holder) => {
    if (holder !== undefined)
      await stage.run(scripts.lockAcquire, locks.acquire({ owner: holder, leaseMs: 30_000 }))
    const step = await stage.run(scripts.lockAcquire, locks.acquire({ count: 2, leaseMs: 60_000 }))
    expect(step.reply).toEqual({ outcome: 'lost' })
    expect(step.keys).toEqual(holder === undefined ? {} : { [lock]: hash({ [holder]: '1' }, 30_000) })
  })

  test('dead: an entombed owner does not take a free lock, nor look at a held one', async () => {
    await stage.raw.command('SET', DEAD, '1', 'PX', 60_000)
    const free = await stage.run(scripts.lockAcquire, locks.acquire())
    expect(free.reply).toEqual({ outcome: 'dead' })
    expect(free.keys).toMatchObject({ [DEAD]: { type: 'string', value: '1' } })
    expect(free.keys).not.toHaveProperty([lock])
    await stage.run(scripts.lockAcquire, locks.acquire({ owner: OTHER, leaseMs: 30_000 }))
    const held = await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 60_000 }))
    expect(held.reply).toEqual({ outcome: 'dead' })
    expect(held.keys[lock]).toEqual(hash({ [OTHER]: '1' }, 30_000))
  })

  test.each([
    ['no field like an owner', { name: 'Ada', city: 'London' }],
    ['articles and how many of each', { 'item:42': '3', 'item:43': '1' }],
    ['one field too many', { [OTHER]: '1', name: 'Ada' }],
    ['only a mode', { mode: 'read' }],
    ['a colon, but no number behind it', { 'user:ada': '1' }],
    ['a number, but nothing before it', { ':7': '1' }],
    ['a third part that is neither hexadecimal nor write', { 'user:7:read': '1' }],
  ])("foreign: somebody's hash with %s stays as it is", async (_, fields) => {
    await stage.raw.command('HSET', lock, ...Object.entries(fields).flat())
    const step = await stage.run(scripts.lockAcquire, locks.acquire())
    expect(step.reply).toEqual({ outcome: 'foreign' })
    expect(step.keys).toEqual({ [lock]: hash(fields, 'none') })
  })
})

describe('lock/leave', () => {
  test('kept: the count goes down to what was asked for, the TTL stays', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 30_000 }))
    await stage.run(scripts.lockAcquire, locks.acquire({ count: 3, leaseMs: 30_000 }))
    const step = await stage.run(scripts.lockLeave, { lock, owner: OWNER, count: 2 })
    expect(step).toEqual({
      reply: { outcome: 'kept' },
      keys: { [lock]: hash({ [OWNER]: '2' }, 30_000) },
      messages: [],
    })
  })

  test('kept: never raises a count', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 30_000 }))
    const step = await stage.run(scripts.lockLeave, { lock, owner: OWNER, count: 2 })
    expect(step.reply).toEqual({ outcome: 'kept' })
    expect(step.keys).toEqual({ [lock]: hash({ [OWNER]: '1' }, 30_000) })
  })

  test('gone: creates nothing', async () => {
    const step = await stage.run(scripts.lockLeave, { lock, owner: OWNER, count: 1 })
    expect(step).toEqual({ reply: { outcome: 'gone' }, keys: {}, messages: [] })
  })

  test("taken: leaves another owner's hold alone", async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ owner: OTHER, leaseMs: 30_000 }))
    const step = await stage.run(scripts.lockLeave, { lock, owner: OWNER, count: 1 })
    expect(step.reply).toEqual({ outcome: 'taken' })
    expect(step.keys).toEqual({ [lock]: hash({ [OTHER]: '1' }, 30_000) })
  })
})

describe('lock/release', () => {
  test.each([1, 5])(
    'released from the count %i: the key is gone and one message 0 is sent',
    async (count) => {
      await stage.run(scripts.lockAcquire, locks.acquire())
      await stage.run(scripts.lockAcquire, locks.acquire({ count }))
      expect(await stage.run(scripts.lockRelease, locks.release())).toEqual({
        reply: { outcome: 'released' },
        keys: {},
        messages: [unlocked],
      })
    },
  )

  test.each([
    ['shorter', 60_000, 5_000],
    ['longer', 5_000, 60_000],
  ])('released with a minimum hold: the rest is the TTL, also where it is %s', async (_, leaseMs, keepMs) => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs }))
    const step = await stage.run(scripts.lockRelease, locks.release({ keepMs }), { mayShorten: true })
    expect(step).toEqual({
      reply: { outcome: 'released' },
      keys: { [lock]: hash({ [`${OWNER}:0`]: '1' }, keepMs) },
      messages: [unlocked],
    })
  })

  test('gone: no key, no message', async () => {
    const step = await stage.run(scripts.lockRelease, locks.release())
    expect(step).toEqual({ reply: { outcome: 'gone' }, keys: {}, messages: [] })
    const kept = await stage.run(scripts.lockRelease, locks.release({ keepMs: 5_000 }))
    expect(kept).toEqual({ reply: { outcome: 'gone' }, keys: {}, messages: [] })
  })

  test.each([0, 5_000])(
    "taken: another owner's hold stays, without a message (keepMs %i)",
    async (keepMs) => {
      await stage.run(scripts.lockAcquire, locks.acquire({ owner: OTHER, leaseMs: 30_000 }))
      const step = await stage.run(scripts.lockRelease, locks.release({ keepMs }))
      expect(step).toEqual({
        reply: { outcome: 'taken' },
        keys: { [lock]: hash({ [OTHER]: '1' }, 30_000) },
        messages: [],
      })
    },
  )

  test('the entombing release frees what is held, and marks the owner', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire())
    const step = await stage.run(scripts.lockRelease, locks.release({ entombMs: 60_000 }))
    expect(step).toEqual({ reply: { outcome: 'released' }, keys: { [DEAD]: dead }, messages: [unlocked] })
  })

  test('the entombing release marks the owner where nothing is held, or somebody else holds', async () => {
    const gone = await stage.run(scripts.lockRelease, locks.release({ entombMs: 60_000 }))
    expect(gone).toEqual({ reply: { outcome: 'gone' }, keys: { [DEAD]: dead }, messages: [] })
    await stage.clear()
    await stage.run(scripts.lockAcquire, locks.acquire({ owner: OTHER, leaseMs: 30_000 }))
    const taken = await stage.run(scripts.lockRelease, locks.release({ entombMs: 60_000 }))
    expect(taken).toEqual({
      reply: { outcome: 'taken' },
      keys: { [DEAD]: dead, [lock]: hash({ [OTHER]: '1' }, 30_000) },
      messages: [],
    })
  })
})

describe('lock/renew', () => {
  test('raises what is held, tells what is gone or taken, and creates nothing', async () => {
    const held = [1, 2, 3].map((number) => `${lock}:${number}`)
    for (const name of held)
      await stage.run(scripts.lockAcquire, locks.acquire({ lock: name, leaseMs: 20_000 }))
    await stage.run(scripts.lockAcquire, locks.acquire({ lock: 'taken', owner: OTHER, leaseMs: 20_000 }))
    await stage.raw.command('SET', 'text', 'a value')
    await stage.raw.command('HSET', 'data', 'name', 'Ada')
    const names = [...held, 'taken', 'gone', 'text', 'data']
    const step = await stage.run(scripts.lockRenew, {
      locks: names,
      ttlMs: 30_000,
      owners: names.map(() => OWNER),
    })
    expect(step).toEqual({
      reply: { results: [1, 1, 1, -1, 0, -1, -1] },
      keys: {
        ...Object.fromEntries(held.map((name) => [name, hash({ [OWNER]: '1' }, 30_000)])),
        taken: hash({ [OTHER]: '1' }, 20_000),
        text: text('a value', 'none'),
        data: hash({ name: 'Ada' }, 'none'),
      },
      messages: [],
    })
  })

  test('each key goes with its own owner', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ lock: 'a', owner: OWNER, leaseMs: 20_000 }))
    await stage.run(scripts.lockAcquire, locks.acquire({ lock: 'b', owner: OTHER, leaseMs: 20_000 }))
    const renew = (owners: string[]): Promise<unknown> =>
      stage.run(scripts.lockRenew, { locks: ['a', 'b'], ttlMs: 30_000, owners })
    expect(await renew([OTHER, OWNER])).toMatchObject({ reply: { results: [-1, -1] } })
    expect(await renew([OWNER, OTHER])).toMatchObject({
      reply: { results: [1, 1] },
      keys: { a: { ttl: 30_000 }, b: { ttl: 30_000 } },
    })
  })

  test('never shortens a TTL, and gives one to a hold that lost it', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 60_000 }))
    await stage.raw.command('HSET', 'bare', OWNER, '1')
    const args = { locks: [lock, 'bare'], ttlMs: 30_000, owners: [OWNER, OWNER] }
    const step = await stage.run(scripts.lockRenew, args)
    expect(step.reply).toEqual({ results: [1, 1] })
    expect(step.keys).toEqual({
      [lock]: hash({ [OWNER]: '1' }, 60_000),
      bare: hash({ [OWNER]: '1' }, 30_000),
    })
  })
})

describe('lock/inspect', () => {
  test('held: the rest of the TTL, then owners and counts', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 30_000 }))
    await stage.run(scripts.lockAcquire, locks.acquire({ count: 2, leaseMs: 30_000 }))
    const { reply, keys } = await stage.run(scripts.lockInspect, { lock })
    expect(reply).toEqual({ outcome: 'held', ttlMs: expect.any(Number) as number, holders: [OWNER, '2'] })
    expect(keys).toEqual({ [lock]: hash({ [OWNER]: '2' }, 30_000) })
    await stage.raw.command('HSET', lock, OTHER, '7')
    await stage.raw.command('PERSIST', lock)
    const both = await stage.run(scripts.lockInspect, { lock })
    expect(both.reply).toEqual({ outcome: 'held', ttlMs: -1, holders: [OWNER, '2', OTHER, '7'] })
  })

  test('free, and foreign', async () => {
    expect(await stage.run(scripts.lockInspect, { lock })).toEqual({
      reply: { outcome: 'free' },
      keys: {},
      messages: [],
    })
    await stage.raw.command('HSET', lock, 'name', 'Ada')
    const { reply } = await stage.run(scripts.lockInspect, { lock })
    expect(reply).toEqual({ outcome: 'foreign' })
  })
})

describe('lock/force', () => {
  test('freed: removes the owners that were seen and sends one message', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire())
    const step = await stage.run(scripts.lockForce, locks.force([OTHER, OWNER]))
    expect(step).toEqual({ reply: { outcome: 'freed' }, keys: {}, messages: [unlocked] })
  })

  test('none: an owner that came later keeps its hold, and nobody is woken', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ owner: OTHER, leaseMs: 30_000 }))
    for (const owners of [[OWNER], []]) {
      expect(await stage.run(scripts.lockForce, locks.force(owners))).toEqual({
        reply: { outcome: 'none' },
        keys: { [lock]: hash({ [OTHER]: '1' }, 30_000) },
        messages: [],
      })
    }
  })

  test('removes only the seen one of two owners', async () => {
    await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 30_000 }))
    await stage.raw.command('HSET', lock, OTHER, '1')
    const step = await stage.run(scripts.lockForce, locks.force([OWNER]))
    expect(step.reply).toEqual({ outcome: 'freed' })
    expect(step.keys).toEqual({ [lock]: hash({ [OTHER]: '1' }, 30_000) })
  })
})
