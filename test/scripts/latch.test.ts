/** The state that each script of the latch leaves: keys, values, messages, for every outcome that it declares. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import type { ScriptDefinition } from '../../src/engine/redis/script.js'
import { hash, Recorder, text, type Step } from '../peer/snapshot.js'
import { raw, type Raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { evaluate } from './stage.js'

const N = 'arrivals'
const CHANNEL = 'redisson_countdownlatch__channel__{arrivals}'
const NOTE = 'holdfast_request:{arrivals}:r1'
const OTHER = 'holdfast_request:{arrivals}:r2'
const THIRD = 'holdfast_request:{arrivals}:r3'
const ROUND = 'holdfast_request:{arrivals}:round'

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

const on = { latch: N, request: NOTE, round: ROUND, requestMs: 60_000, channel: CHANNEL, publish: 'PUBLISH' }
const set = (value: number, via?: Raw, request = NOTE) =>
  run(scripts.latchSet, { ...on, request, count: value }, via)
const countDown = (request = NOTE, via?: Raw) => run(scripts.latchCountDown, { ...on, request }, via)
const cancel = (request = NOTE) => run(scripts.latchCancel, { ...on, request })
const remove = (via?: Raw, request = NOTE) => run(scripts.latchDelete, { ...on, request }, via)
const inspect = () => run(scripts.latchInspect, { latch: N })

const seed = (value: number | string) => link.command('SET', N, String(value))
const told = (payload: number) => [{ channel: CHANNEL, payload: String(payload) }]
const count = (value: number) => text(value, 'none')
const note = (value: number | string) => text(value, 60_000)
const round = (value: Record<string, string>) => hash(value, 60_000)

describe('set', () => {
  test('set, and 1 is told; kept where one is; copies answer the same', async () => {
    expect(await set(2)).toEqual({
      reply: { outcome: 'set' },
      keys: { [N]: count(2), [NOTE]: note('set'), [ROUND]: round({ id: 'r1' }) },
      messages: told(1),
    })
    expect(await set(2)).toMatchObject({ reply: { outcome: 'set' }, messages: [] })
    await link.command('DEL', NOTE)
    expect(await set(9)).toMatchObject({ reply: { outcome: 'kept' }, keys: { [N]: count(2) }, messages: [] })
    await link.command('DEL', N)
    expect(await set(9)).toMatchObject({ reply: { outcome: 'kept' }, keys: { [NOTE]: note('kept') } })
  })

  test.each([undefined, 0, -3])(
    'a count of zero leaves no key, and is told to nobody; before: %s',
    async (value) => {
      if (value !== undefined) await seed(value)
      const zero = { reply: { outcome: 'set' }, keys: { [NOTE]: note('set') }, messages: [] }
      expect(await set(0)).toEqual(zero)
      expect(await set(0)).toEqual(zero)
      expect(await set(2, link, OTHER)).toMatchObject({ reply: { outcome: 'set' }, keys: { [N]: count(2) } })
    },
  )

  test('an open one that has a key, as Java may leave it, is set', async () => {
    await seed(-3)
    expect(await set(2)).toMatchObject({
      reply: { outcome: 'set' },
      keys: { [N]: count(2) },
      messages: told(1),
    })
    expect((await set(0, link, OTHER)).reply).toEqual({ outcome: 'kept' })
  })

  test('dead after it was cancelled', async () => {
    await cancel()
    expect(await set(2)).toEqual({
      reply: { outcome: 'dead' },
      keys: { [NOTE]: note('ended') },
      messages: [],
    })
  })
})

describe('count-down', () => {
  test('one less, told to nobody; a copy counts nothing', async () => {
    await seed(3)
    const first = await countDown()
    expect(first).toEqual({
      reply: { outcome: 'counted', left: '2' },
      keys: { [N]: count(2), [NOTE]: note(2) },
      messages: [],
    })
    expect(await countDown()).toEqual(first)
  })

  test('the last one removes the key and tells 0; its copy tells nothing, even if the latch is set anew', async () => {
    await seed(1)
    expect(await countDown()).toEqual({
      reply: { outcome: 'counted', left: '0' },
      keys: { [NOTE]: note('open'), [ROUND]: round({ id: 'r1' }) },
      messages: told(0),
    })
    await seed(1)
    expect(await countDown()).toEqual({
      reply: { outcome: 'counted', left: '0' },
      keys: { [N]: count(1), [NOTE]: note('open'), [ROUND]: round({ id: 'r1' }) },
      messages: [],
    })
  })

  test('the note says which round it was', async () => {
    await set(3, link, OTHER)
    const first = await countDown()
    expect(first).toMatchObject({ reply: { outcome: 'counted', left: '2' }, keys: { [NOTE]: note('2 r2') } })
    expect((await countDown()).reply).toEqual(first.reply)
  })

  test.each([undefined, 0, -3])('at %s there is nothing to count, and nothing to tell', async (value) => {
    if (value !== undefined) await seed(value)
    expect(await countDown()).toEqual({
      reply: { outcome: 'counted', left: '0' },
      keys: { [NOTE]: note('open') },
      messages: [],
    })
  })

  test('dead after it was cancelled', async () => {
    await seed(2)
    await cancel()
    expect(await countDown()).toMatchObject({ reply: { outcome: 'dead' }, keys: { [N]: count(2) } })
  })
})

describe('cancel', () => {
  test('undone once', async () => {
    await seed(3)
    await countDown()
    expect(await cancel()).toEqual({
      reply: { outcome: 'undone' },
      keys: { [N]: count(3), [NOTE]: note('ended'), [ROUND]: round({ undone: '1' }) },
      messages: [],
    })
    expect(await cancel()).toMatchObject({ reply: { outcome: 'marked' }, keys: { [N]: count(3) } })
  })

  test('all of one round are undone', async () => {
    await set(5, link, OTHER)
    await link.command('DEL', OTHER)
    await countDown()
    await countDown(OTHER)
    expect((await cancel()).reply).toEqual({ outcome: 'undone' })
    expect(await cancel(OTHER)).toMatchObject({
      reply: { outcome: 'undone' },
      keys: { [N]: count(5), [ROUND]: round({ id: 'r2', undone: '2' }) },
    })
  })

  test.each([1, 2, 9])('nothing is undone in the next round, set to %i', async (value) => {
    await seed(3)
    await countDown()
    await remove(link, OTHER)
    await seed(value)
    const spared = { reply: { outcome: 'marked' }, keys: { [N]: count(value) } }
    expect(await cancel()).toMatchObject(spared)
    await recorder.clear()
    await set(3, link, OTHER)
    await countDown()
    await link.command('DEL', N)
    await set(value, link, THIRD)
    expect(await cancel()).toMatchObject(spared)
  })

  test('nothing is undone in a round of a peer with a higher count', async () => {
    await seed(3)
    await countDown()
    await seed(3)
    expect(await cancel()).toMatchObject({ reply: { outcome: 'marked' }, keys: { [N]: count(3) } })
  })

  test('what opened the latch is not undone', async () => {
    await seed(2)
    await countDown()
    await countDown(OTHER)
    expect((await cancel()).reply).toEqual({ outcome: 'marked' })
    await recorder.clear()
    await seed(1)
    await countDown()
    await seed(5)
    expect(await cancel()).toMatchObject({ reply: { outcome: 'marked' }, keys: { [N]: count(5) } })
  })
})

describe('delete', () => {
  test('gone, and 0 is told, which wakes; copies answer the same', async () => {
    await seed(3)
    expect(await remove()).toEqual({
      reply: { outcome: 'deleted' },
      keys: { [NOTE]: note('deleted'), [ROUND]: round({ id: 'r1' }) },
      messages: told(0),
    })
    await seed(2)
    expect(await remove()).toMatchObject({
      reply: { outcome: 'deleted' },
      keys: { [N]: count(2) },
      messages: [],
    })
  })

  test('missing: nothing is told', async () => {
    expect(await remove()).toEqual({
      reply: { outcome: 'missing' },
      keys: { [NOTE]: note('missing') },
      messages: [],
    })
    expect((await remove()).reply).toEqual({ outcome: 'missing' })
  })

  test('dead after it was cancelled', async () => {
    await seed(2)
    await cancel()
    expect(await remove()).toMatchObject({ reply: { outcome: 'dead' }, keys: { [N]: count(2) } })
  })
})

describe('in trouble', () => {
  const EACH = [
    ['set', () => set(1)],
    ['count-down', () => countDown()],
    ['delete', () => remove()],
    ['inspect', () => inspect()],
  ] as const

  test.each(EACH)('%s: a string that is no whole number is left alone', async (_, step) => {
    await seed('1.5')
    expect(await step()).toEqual({
      reply: { outcome: 'foreign' },
      keys: { [N]: text('1.5', 'none') },
      messages: [],
    })
  })

  test.each(EACH)('%s: another type is WRONGTYPE, and untouched', async (_, step) => {
    await link.command('HSET', N, 'colour', 'red')
    await expect(step()).rejects.toThrow(/WRONGTYPE/)
    expect(await link.command('HGET', N, 'colour')).toBe('red')
  })

  test('who may not publish counts all the same, and is told that nobody was', async () => {
    await link.command('ACL', 'SETUSER', 'quiet', 'on', '>secret', '~*', '+@all', 'resetchannels')
    await using quiet = await raw(server.port)
    await quiet.command('AUTH', 'quiet', 'secret')
    const refused = { reply: { outcome: 'unannounced' }, messages: [] }
    expect(await set(1, quiet)).toMatchObject(refused)
    expect(await countDown(OTHER, quiet)).toMatchObject(refused)
    expect(await link.command('EXISTS', N)).toBe(0)
    await seed(1)
    await link.command('DEL', NOTE)
    expect(await remove(quiet)).toMatchObject(refused)
  })

  test('on a full server the latch is counted down and deleted', async () => {
    await seed(3)
    await link.command('SET', 'ballast', 'x'.repeat(2_000_000))
    await link.command('CONFIG', 'SET', 'maxmemory', '1mb')
    try {
      expect((await countDown(OTHER)).reply).toEqual({ outcome: 'counted', left: '2' })
      expect((await remove()).reply).toEqual({ outcome: 'deleted' })
    } finally {
      await link.command('CONFIG', 'SET', 'maxmemory', 0)
    }
  })
})
