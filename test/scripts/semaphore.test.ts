/** The state that each script of the semaphore leaves: keys, values, TTLs, messages, for every outcome that it declares. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import type { ScriptDefinition } from '../../src/engine/redis/script.js'
import { Recorder, text, type Step } from '../peer/snapshot.js'
import { raw, type Raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { evaluate } from './stage.js'

const N = 'downloads'
const CHANNEL = 'redisson_sc:{downloads}'
const NOTE = 'holdfast_request:{downloads}:r1'
const MOST = Number.MAX_SAFE_INTEGER

let server: RedisServer
let link: Raw
let recorder: Recorder

beforeAll(async () => {
  server = await startRedis()
  link = await raw(server.port)
  recorder = await Recorder.on(link)
})
afterAll(async () => {
  recorder.close()
  await link[Symbol.asyncDispose]()
  await server.stop()
})
beforeEach(() => recorder.clear())

function run<Args, R>(definition: ScriptDefinition<Args, R>, args: Args, via: Raw = link): Promise<Step<R>> {
  return recorder.act(async () => definition.decode(await evaluate(via, definition, args)))
}

const on = { semaphore: N, request: NOTE, requestMs: 60_000, channel: CHANNEL, publish: 'PUBLISH' }
const acquire = (permits: number, initial = -1, request = NOTE) =>
  run(scripts.semaphoreAcquire, { ...on, permits, initial, request })
const end = (permits: number, via?: Raw) => run(scripts.semaphoreEnd, { ...on, permits }, via)
const add = (permits: number, initial = 0, via?: Raw) =>
  run(scripts.semaphoreAdd, { ...on, permits, initial }, via)
const drain = (initial = 0) => run(scripts.semaphoreDrain, { ...on, initial })
const set = (permits: number, ttlMs = 0, via?: Raw) =>
  run(scripts.semaphoreSet, { ...on, permits, ttlMs }, via)
const inspect = () => run(scripts.semaphoreInspect, { semaphore: N })

const seed = (value: number | string) => link.command('SET', N, String(value))
// Seen at once, so that its TTL is known exactly.
const seedFor = (value: number, ttlMs: number) =>
  recorder.act(() => link.command('SET', N, value, 'PX', ttlMs))
const told = (payload: number) => [{ channel: CHANNEL, payload: String(payload) }]
const count = (value: number) => text(value, 'none')
const note = (value: number | string) => text(value, 60_000)

describe('acquire', () => {
  test('granted: the number falls, a note says by how much, nothing is told', async () => {
    await seed(3)
    expect(await acquire(2)).toEqual({
      reply: { outcome: 'granted', left: '1' },
      keys: { [N]: count(1), [NOTE]: note(-2) },
      messages: [],
    })
  })

  test('granted again to a copy: nothing falls twice', async () => {
    await seed(3)
    const first = await acquire(2)
    expect(await acquire(2)).toEqual(first)
  })

  test('busy: nothing changes, and there is no note', async () => {
    await seed(1)
    expect(await acquire(2)).toEqual({
      reply: { outcome: 'busy', available: '1' },
      keys: { [N]: count(1) },
      messages: [],
    })
    await seed(-4)
    expect((await acquire(1)).reply).toEqual({ outcome: 'busy', available: '-4' })
  })

  test('a missing number: uninitialised, or begun and the rest told', async () => {
    expect(await acquire(1)).toEqual({ reply: { outcome: 'uninitialised' }, keys: {}, messages: [] })
    expect(await acquire(1, 5)).toEqual({
      reply: { outcome: 'granted', left: '4' },
      keys: { [N]: count(4), [NOTE]: note(-1) },
      messages: told(4),
    })
  })

  test('begun with too few: they are there for others', async () => {
    expect(await acquire(3, 2)).toEqual({
      reply: { outcome: 'busy', available: '2' },
      keys: { [N]: count(2) },
      messages: told(2),
    })
  })

  test('begun and all taken: there is nothing to tell', async () => {
    expect((await acquire(2, 2)).messages).toEqual([])
  })

  test('the number that is there counts, not the initial one', async () => {
    await seed(0)
    expect((await acquire(1, 5)).reply).toEqual({ outcome: 'busy', available: '0' })
  })

  test('dead: a request that was ended takes nothing', async () => {
    await seed(3)
    await end(0)
    expect(await acquire(1)).toMatchObject({ reply: { outcome: 'dead' }, keys: { [N]: count(3) } })
  })

  test('the largest number is read exactly', async () => {
    await seed(String(MOST))
    expect((await acquire(1)).reply).toEqual({ outcome: 'granted', left: String(MOST - 1) })
    expect((await inspect()).reply).toEqual({ outcome: 'counted', count: String(MOST - 1) })
  })
})

describe('end', () => {
  test('released: given back, told, and noted', async () => {
    await seed(3)
    await acquire(2)
    expect(await end(2)).toEqual({
      reply: { outcome: 'released' },
      keys: { [N]: count(3), [NOTE]: note('ended') },
      messages: told(3),
    })
    expect(await end(2)).toMatchObject({
      reply: { outcome: 'released' },
      keys: { [N]: count(3) },
      messages: [],
    })
  })

  test('released although the note of the acquire has expired', async () => {
    await seed(1)
    expect(await end(2)).toMatchObject({ keys: { [N]: count(3) }, messages: told(3) })
  })

  test('gone: a number that is missing is not made', async () => {
    await seed(3)
    await acquire(2)
    await link.command('DEL', N)
    expect(await end(2)).toEqual({ reply: { outcome: 'gone' }, keys: { [NOTE]: note('gone') }, messages: [] })
    await seed(3)
    expect(await end(2)).toMatchObject({ reply: { outcome: 'gone' }, keys: { [N]: count(3) } })
  })

  test('cancelled: undone once if it was applied, else only marked', async () => {
    await seed(3)
    await acquire(2)
    expect(await end(0)).toMatchObject({
      reply: { outcome: 'released' },
      keys: { [N]: count(3) },
      messages: told(3),
    })
    expect(await end(0)).toMatchObject({ keys: { [N]: count(3) }, messages: [] })
    await recorder.clear()
    await seed(3)
    expect(await end(0)).toEqual({
      reply: { outcome: 'marked' },
      keys: { [N]: count(3), [NOTE]: note('ended') },
      messages: [],
    })
  })

  test('undoing what was added takes it off again, and tells nobody', async () => {
    await seed(1)
    await add(5)
    expect(await end(0)).toMatchObject({ keys: { [N]: count(1) }, messages: [] })
  })

  test('a number below zero is told as zero', async () => {
    await seed(-5)
    expect(await end(2)).toMatchObject({ keys: { [N]: count(-3) }, messages: told(0) })
  })

  test('the TTL of the number stays', async () => {
    await seedFor(1, 50_000)
    await acquire(1)
    expect((await end(1)).keys[N]).toEqual(text(1, 50_000))
  })

  test('at the largest number there is no room', async () => {
    await seed(String(MOST))
    expect(await end(1)).toMatchObject({
      reply: { outcome: 'gone' },
      keys: { [N]: text(String(MOST), 'none') },
    })
  })
})

describe('add', () => {
  test('added: the new total is told; a copy adds nothing', async () => {
    await seed(1)
    expect(await add(2)).toEqual({
      reply: { outcome: 'added' },
      keys: { [N]: count(3), [NOTE]: note(2) },
      messages: told(3),
    })
    expect(await add(2)).toMatchObject({ reply: { outcome: 'added' }, keys: { [N]: count(3) }, messages: [] })
  })

  test('made where it was missing, or left missing', async () => {
    expect(await add(2, 5)).toMatchObject({ keys: { [N]: count(7) }, messages: told(7) })
    await recorder.clear()
    expect(await add(2, -1)).toEqual({
      reply: { outcome: 'missing' },
      keys: { [NOTE]: note('missing') },
      messages: [],
    })
    await seed(1)
    expect((await add(2, -1)).reply).toEqual({ outcome: 'missing' })
  })

  test('taken off: below zero it is told as zero, and the TTL stays', async () => {
    await seedFor(1, 50_000)
    expect(await add(-3)).toMatchObject({ keys: { [N]: text(-2, 50_000) }, messages: told(0) })
  })

  test('overflow: nothing changes, now and later', async () => {
    await seed(String(MOST))
    expect(await add(1)).toMatchObject({ reply: { outcome: 'overflow' }, messages: [] })
    await seed(1)
    expect(await add(1)).toMatchObject({ reply: { outcome: 'overflow' }, keys: { [N]: count(1) } })
  })

  test('dead: a request that was ended adds nothing', async () => {
    await seed(1)
    await end(0)
    expect(await add(1)).toMatchObject({ reply: { outcome: 'dead' }, keys: { [N]: count(1) } })
  })
})

describe('drain', () => {
  test('all that is free, once; the TTL stays, and nothing is told', async () => {
    await seedFor(4, 50_000)
    expect(await drain()).toEqual({
      reply: { outcome: 'drained', permits: '4' },
      keys: { [N]: text(0, 50_000), [NOTE]: note(-4) },
      messages: [],
    })
    await link.command('SET', N, 9)
    expect(await drain()).toMatchObject({
      reply: { outcome: 'drained', permits: '4' },
      keys: { [N]: count(9) },
    })
  })

  test('nothing of a missing number, nor of one below zero', async () => {
    expect(await drain()).toEqual({
      reply: { outcome: 'drained', permits: '0' },
      keys: { [NOTE]: note(0) },
      messages: [],
    })
    await recorder.clear()
    await seed(-2)
    expect(await drain()).toMatchObject({ reply: { permits: '0' }, keys: { [N]: count(-2) } })
    expect((await drain()).reply).toEqual({ outcome: 'drained', permits: '0' })
  })

  test('what it would begin with', async () => {
    expect(await drain(5)).toMatchObject({ reply: { permits: '5' }, keys: { [N]: count(0) } })
  })

  test('dead: a request that was ended drains nothing', async () => {
    await end(0)
    expect((await drain()).reply).toEqual({ outcome: 'dead' })
  })
})

describe('set', () => {
  test('set and told; kept where one is; copies answer the same', async () => {
    expect(await set(3)).toEqual({
      reply: { outcome: 'set' },
      keys: { [N]: count(3), [NOTE]: note('set') },
      messages: told(3),
    })
    expect(await set(3)).toMatchObject({ reply: { outcome: 'set' }, messages: [] })
    await link.command('DEL', NOTE)
    expect(await set(9)).toEqual({
      reply: { outcome: 'kept' },
      keys: { [N]: count(3), [NOTE]: note('kept') },
      messages: [],
    })
    await link.command('DEL', N)
    expect(await set(9)).toMatchObject({ reply: { outcome: 'kept' }, keys: { [NOTE]: note('kept') } })
  })

  test('with a TTL', async () => {
    expect((await set(2, 20_000)).keys[N]).toEqual(text(2, 20_000))
  })

  test('dead: a request that was ended sets nothing', async () => {
    await end(0)
    expect(await set(2)).toMatchObject({ reply: { outcome: 'dead' }, messages: [] })
  })
})

describe('in trouble', () => {
  const EACH = [
    ['acquire', () => acquire(1)],
    ['add', () => add(1)],
    ['drain', () => drain()],
    ['set', () => set(1)],
    ['inspect', () => inspect()],
  ] as const

  test.each(EACH)('%s: a string that is no whole number is left alone', async (_, step) => {
    for (const value of ['', 'x', '1.5', '1e3', ' 1', '+1', '01', '-0', '9007199254740992', '12 ']) {
      await recorder.clear()
      await seed(value)
      expect(await step()).toEqual({
        reply: { outcome: 'foreign' },
        keys: { [N]: text(value, 'none') },
        messages: [],
      })
    }
  })

  test.each(EACH)('%s: another type is WRONGTYPE, and untouched', async (_, step) => {
    await link.command('RPUSH', N, 'theirs')
    await expect(step()).rejects.toThrow(/WRONGTYPE/)
    expect((await recorder.act(() => Promise.resolve())).keys).toEqual({
      [N]: { type: 'list', value: ['theirs'], ttl: 'none' },
    })
  })

  test('who may not publish gives back all the same, and is told that nobody was', async () => {
    await link.command('ACL', 'SETUSER', 'quiet', 'on', '>secret', '~*', '+@all', 'resetchannels')
    await using quiet = await raw(server.port)
    await quiet.command('AUTH', 'quiet', 'secret')
    expect(await set(1, 0, quiet)).toMatchObject({
      reply: { outcome: 'unannounced' },
      keys: { [N]: count(1) },
    })
    await link.command('DEL', NOTE)
    expect(await add(2, 0, quiet)).toMatchObject({
      reply: { outcome: 'unannounced' },
      keys: { [N]: count(3) },
    })
    await link.command('DEL', NOTE)
    expect(await end(2, quiet)).toMatchObject({ reply: { outcome: 'unannounced' }, keys: { [N]: count(5) } })
  })

  test('on a full server permits are given back and added', async () => {
    await seed(3)
    await acquire(1)
    await link.command('SET', 'ballast', 'x'.repeat(2_000_000))
    await link.command('CONFIG', 'SET', 'maxmemory', '1mb')
    try {
      expect((await end(1)).reply).toEqual({ outcome: 'released' })
      await link.command('DEL', NOTE)
      expect((await add(1)).reply).toEqual({ outcome: 'added' })
      expect(await link.command('GET', N)).toBe('4')
      await expect(acquire(1, -1, 'holdfast_request:{downloads}:r2')).rejects.toThrow(/OOM/)
      expect(await link.command('GET', N)).toBe('4')
    } finally {
      await link.command('CONFIG', 'SET', 'maxmemory', 0)
    }
  })
})
