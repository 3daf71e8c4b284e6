/** The state that each mutex script leaves: keys, values, TTLs, messages, for every outcome that it declares. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { hash, Stage, text } from './stage.js'
import { MUTEX as mutex, MUTEX_DEAD, OTHER, OWNER, dead, mutexUnlocked, mutexes } from './words.js'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.open()
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

describe('mutex/acquire', () => {
  test('granted: a string with the token and the lease as TTL, as SET NX PX leaves it', async () => {
    expect(await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 30_000 }))).toEqual({
      reply: { outcome: 'granted' },
      keys: { [mutex]: text(OWNER, 30_000) },
      messages: [],
    })
  })

  test('granted again to the same token; the TTL is raised, not set', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 30_000 }))
    const shorter = await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 10_000 }))
    expect(shorter.reply).toEqual({ outcome: 'granted' })
    expect(shorter.keys).toEqual({ [mutex]: text(OWNER, 30_000) })
    const longer = await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 60_000 }))
    expect(longer.keys).toEqual({ [mutex]: text(OWNER, 60_000) })
  })

  test('busy: the rest of the TTL and the token of the holder; the hold is untouched', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ owner: OTHER, leaseMs: 30_000 }))
    const step = await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 60_000 }))
    expect(step.reply).toEqual({ outcome: 'busy', ttlMs: expect.any(Number) as number, holder: OTHER })
    expect(step.reply).toHaveProperty(
      'ttlMs',
      expect.toSatisfy((ms) => Number(ms) > 0 && Number(ms) <= 30_000),
    )
    expect(step.keys).toEqual({ [mutex]: text(OTHER, 30_000) })
  })

  test("busy on another library's lock without a TTL: says -1 and gives it none; its own gets one", async () => {
    await stage.raw.command('SET', mutex, OTHER)
    const busy = await stage.run(scripts.mutexAcquire, mutexes.acquire())
    expect(busy.reply).toEqual({ outcome: 'busy', ttlMs: -1, holder: OTHER })
    expect(busy.keys).toEqual({ [mutex]: text(OTHER, 'none') })
    await stage.raw.command('SET', mutex, OWNER)
    const own = await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 20_000 }))
    expect(own.keys).toEqual({ [mutex]: text(OWNER, 20_000) })
  })

  test('busy on an empty value', async () => {
    await stage.raw.command('SET', mutex, '')
    const { reply } = await stage.run(scripts.mutexAcquire, mutexes.acquire())
    expect(reply).toEqual({ outcome: 'busy', ttlMs: -1, holder: '' })
  })

  test('dead: an entombed token does not take a free mutex, nor look at a held one', async () => {
    await stage.raw.command('SET', MUTEX_DEAD, '1', 'PX', 60_000)
    const free = await stage.run(scripts.mutexAcquire, mutexes.acquire())
    expect(free.reply).toEqual({ outcome: 'dead' })
    expect(free.keys).not.toHaveProperty([mutex])
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ owner: OTHER, leaseMs: 30_000 }))
    const held = await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 60_000 }))
    expect(held.reply).toEqual({ outcome: 'dead' })
    expect(held.keys[mutex]).toEqual(text(OTHER, 30_000))
  })
})

describe('mutex/release', () => {
  test('released: the key is gone and one message 0 is sent', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire())
    expect(await stage.run(scripts.mutexRelease, mutexes.release())).toEqual({
      reply: { outcome: 'released' },
      keys: {},
      messages: [mutexUnlocked],
    })
  })

  test.each([
    ['shorter', 60_000, 5_000],
    ['longer', 5_000, 60_000],
  ])('released with a minimum hold: the rest is the TTL, also where it is %s', async (_, leaseMs, keepMs) => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs }))
    const step = await stage.run(scripts.mutexRelease, mutexes.release({ keepMs }), { mayShorten: true })
    expect(step).toEqual({
      reply: { outcome: 'released' },
      keys: { [mutex]: text(`${OWNER}:0`, keepMs) },
      messages: [mutexUnlocked],
    })
  })

  test.each([0, 5_000])('gone: no key, no message (keepMs %i)', async (keepMs) => {
    const step = await stage.run(scripts.mutexRelease, mutexes.release({ keepMs }))
    expect(step).toEqual({ reply: { outcome: 'gone' }, keys: {}, messages: [] })
  })

  test.each([0, 5_000])(
    "taken: another token's hold stays, without a message (keepMs %i)",
    async (keepMs) => {
      await stage.run(scripts.mutexAcquire, mutexes.acquire({ owner: OTHER, leaseMs: 30_000 }))
      const step = await stage.run(scripts.mutexRelease, mutexes.release({ keepMs }))
      expect(step).toEqual({
        reply: { outcome: 'taken' },
        keys: { [mutex]: text(OTHER, 30_000) },
        messages: [],
      })
    },
  )

  test('the entombing release frees what is held, and marks the token', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire())
    const step = await stage.run(scripts.mutexRelease, mutexes.release({ entombMs: 60_000 }))
    expect(step).toEqual({
      reply: { outcome: 'released' },
      keys: { [MUTEX_DEAD]: dead },
      messages: [mutexUnlocked],
    })
  })

  test('the entombing release marks the token where nothing is held, or somebody else holds', async () => {
    const gone = await stage.run(scripts.mutexRelease, mutexes.release({ entombMs: 60_000 }))
    expect(gone).toEqual({ reply: { outcome: 'gone' }, keys: { [MUTEX_DEAD]: dead }, messages: [] })
    await stage.clear()
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ owner: OTHER, leaseMs: 30_000 }))
    const taken = await stage.run(scripts.mutexRelease, mutexes.release({ entombMs: 60_000 }))
    expect(taken).toEqual({
      reply: { outcome: 'taken' },
      keys: { [MUTEX_DEAD]: dead, [mutex]: text(OTHER, 30_000) },
      messages: [],
    })
  })
})

describe('mutex/renew', () => {
  test('raises what is held, tells what is gone or taken, and creates nothing', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ mutex: 'short', leaseMs: 20_000 }))
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ mutex: 'long', leaseMs: 60_000 }))
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ mutex: 'taken', owner: OTHER, leaseMs: 20_000 }))
    await stage.raw.command('SET', 'bare', OWNER)
    await stage.raw.command('HSET', 'data', 'name', 'Ada')
    const names = ['short', 'long', 'taken', 'gone', 'bare', 'data']
    const step = await stage.run(scripts.mutexRenew, {
      mutexes: names,
      ttlMs: 30_000,
      owners: names.map(() => OWNER),
    })
    expect(step).toEqual({
      reply: { results: [1, 1, -1, 0, 1, -1] },
      keys: {
        short: text(OWNER, 30_000),
        long: text(OWNER, 60_000),
        taken: text(OTHER, 20_000),
        bare: text(OWNER, 30_000),
        data: hash({ name: 'Ada' }, 'none'),
      },
      messages: [],
    })
  })

  test('each key goes with its own token', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ mutex: 'a', owner: OWNER, leaseMs: 20_000 }))
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ mutex: 'b', owner: OTHER, leaseMs: 20_000 }))
    const renew = (owners: string[]): Promise<unknown> =>
      stage.run(scripts.mutexRenew, { mutexes: ['a', 'b'], ttlMs: 30_000, owners })
    expect(await renew([OTHER, OWNER])).toMatchObject({ reply: { results: [-1, -1] } })
    expect(await renew([OWNER, OTHER])).toMatchObject({
      reply: { results: [1, 1] },
      keys: { a: { ttl: 30_000 }, b: { ttl: 30_000 } },
    })
  })
})

describe('mutex/inspect', () => {
  test('held: the rest of the TTL and the token; free: nothing', async () => {
    expect((await stage.run(scripts.mutexInspect, { mutex })).reply).toEqual({ outcome: 'free' })
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ leaseMs: 30_000 }))
    const { reply, keys } = await stage.run(scripts.mutexInspect, { mutex })
    expect(reply).toEqual({ outcome: 'held', ttlMs: expect.any(Number) as number, holder: OWNER })
    expect(reply).toHaveProperty(
      'ttlMs',
      expect.toSatisfy((ms) => Number(ms) > 0 && Number(ms) <= 30_000),
    )
    expect(keys).toEqual({ [mutex]: text(OWNER, 30_000) })
    await stage.raw.command('PERSIST', mutex)
    const bare = await stage.run(scripts.mutexInspect, { mutex })
    expect(bare.reply).toEqual({ outcome: 'held', ttlMs: -1, holder: OWNER })
  })
})

describe('mutex/force', () => {
  test('freed: removes the token that was seen and sends one message', async () => {
    await stage.run(scripts.mutexAcquire, mutexes.acquire())
    const step = await stage.run(scripts.mutexForce, mutexes.force(OWNER))
    expect(step).toEqual({ reply: { outcome: 'freed' }, keys: {}, messages: [mutexUnlocked] })
  })

  test('none: a token that came later keeps its hold, and nobody is woken', async () => {
    const free = await stage.run(scripts.mutexForce, mutexes.force(OWNER))
    expect(free).toEqual({ reply: { outcome: 'none' }, keys: {}, messages: [] })
    await stage.run(scripts.mutexAcquire, mutexes.acquire({ owner: OTHER, leaseMs: 30_000 }))
    expect(await stage.run(scripts.mutexForce, mutexes.force(OWNER))).toEqual({
      reply: { outcome: 'none' },
      keys: { [mutex]: text(OTHER, 30_000) },
      messages: [],
    })
  })
})
