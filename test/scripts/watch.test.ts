/** Looks at real values of every type. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { watchLook, watchMark, watchMarks, watchScan } from '../../src/engine/redis/scripts.js'
import { Stage } from './stage.js'

const BUDGET = 262_144
let stage: Stage
beforeAll(async () => {
  stage = await Stage.open()
})
beforeEach(() => stage.clear())
afterAll(() => stage[Symbol.asyncDispose]())

interface Looked {
  readonly type: string | undefined
  readonly mark: string | undefined
  readonly exact: boolean
  readonly ttl: number
}

async function look(keys: readonly string[], exactBytes = 65_536, budgetBytes = BUDGET): Promise<Looked[]> {
  const { keys: names, args } = watchLook.encode({ keys, exactBytes, budgetBytes })
  const reply = await stage.raw.command('EVAL', watchLook.script.source, names.length, ...names, ...args)
  const { values } = watchLook.decode(reply as string[])
  return values.flatMap((type, i) =>
    i % 4 === 0
      ? [{ type, mark: values[i + 1], exact: values[i + 2] === '1', ttl: Number(values[i + 3]) }]
      : [],
  )
}

/** The words that make a value, that change it, and that make the first value again. */
const TYPES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  string: [
    ['SET', 'k', 'one'],
    ['APPEND', 'k', '!'],
    ['SET', 'k', 'one'],
  ],
  'number as string': [
    ['SET', 'k', '7'],
    ['INCR', 'k'],
    ['DECR', 'k'],
  ],
  bitmap: [
    ['SETBIT', 'k', '7', '1'],
    ['SETBIT', 'k', '6', '1'],
    ['SETBIT', 'k', '6', '0'],
  ],
  list: [
    ['RPUSH', 'k', 'a', 'b', 'c'],
    ['LSET', 'k', '1', 'x'],
    ['LSET', 'k', '1', 'b'],
  ],
  set: [
    ['SADD', 'k', 'a', 'b'],
    ['SREM', 'k', 'a'],
    ['DEL', 'k'],
    ['SADD', 'k', 'a', 'b'],
  ],
  zset: [
    ['ZADD', 'k', '1', 'a', '2', 'b'],
    ['ZINCRBY', 'k', '1', 'a'],
    ['DEL', 'k'],
    ['ZADD', 'k', '1', 'a', '2', 'b'],
  ],
  hash: [
    ['HSET', 'k', 'a', '1', 'b', '2'],
    ['HSET', 'k', 'b', '3'],
    ['HSET', 'k', 'b', '2'],
  ],
}

describe('a look', () => {
  test.each(Object.entries(TYPES))('tells a changed %s, and the same one again', async (_type, steps) => {
    const marks: (string | undefined)[] = []
    for (const words of steps) {
      await stage.raw.command(...words)
      const [seen] = await look(['k'])
      expect(seen?.exact).toBe(true)
      expect((await look(['k']))[0]?.mark).toBe(seen?.mark)
      marks.push(seen?.mark)
    }
    expect(marks[1]).not.toBe(marks[0])
    expect(marks.at(-1)).toBe(marks[0])
  })

  test('tells the time to live, which is no part of the fingerprint, and what is not there', async () => {
    await stage.raw.command('SET', 'k', 'one')
    await stage.raw.command('SET', 'l', 'one', 'PX', '90000')
    const [k, l, none] = await look(['k', 'l', 'm'])
    expect(k).toMatchObject({ type: 'string', ttl: -1 })
    expect(l?.mark).toBe(k?.mark)
    expect(l?.ttl).toBeGreaterThan(80_000)
    expect(none).toEqual({ type: 'none', mark: '', exact: true, ttl: -2 })
    await stage.raw.command('RPUSH', 'e', 'one')
    const before = await look(['e'])
    await stage.raw.command('PEXPIRE', 'e', '90000')
    expect((await look(['e']))[0]?.mark).toBe(before[0]?.mark)
  })

  test('changes nothing', async () => {
    await stage.raw.command('SET', 'k', 'one', 'PX', '90000')
    const args = { keys: ['k', 'm'], exactBytes: 65_536, budgetBytes: BUDGET }
    const { keys, messages } = await stage.run(watchLook, args)
    expect(keys).toEqual({ k: { type: 'string', value: 'one', ttl: expect.any(Number) as number } })
    expect(messages).toEqual([])
  })

  test('of large values a sample is taken: the count and both ends', async () => {
    const big = 'x'.repeat(5_000)
    const ends: [change: readonly string[], told: boolean][] = [
      [['SET', 'k', big], true],
      [['SETRANGE', 'k', '2500', 'y'], false],
      [['SETRANGE', 'k', '0', 'y'], true],
      [['SETRANGE', 'k', '4999', 'y'], true],
      [['APPEND', 'k', 'x'], true],
    ]
    let before: string | undefined = 'none'
    for (const [words, told] of ends) {
      await stage.raw.command(...words)
      const [seen] = await look(['k'], 4_999)
      expect(seen).toMatchObject({ type: 'string', exact: false })
      expect(seen?.mark !== before, words.join(' ').slice(0, 40)).toBe(told)
      before = seen?.mark
    }
  })

  const many = Array.from({ length: 3_000 }, (_, i) => `${i}`)
  const pairs = many.flatMap((i) => [i, i])
  test.each([
    [
      'list',
      ['RPUSH', 'k', ...many],
      [
        ['RPUSH', 'k', 'x'],
        ['LPOP', 'k'],
        ['LSET', 'k', '0', 'x'],
        ['LSET', 'k', '-1', 'y'],
      ],
      ['LSET', 'k', '9', 'x'],
    ],
    [
      'set',
      ['SADD', 'k', ...many.map((i) => `m${i}`)],
      [
        ['SADD', 'k', 'x'],
        ['SREM', 'k', 'm1'],
      ],
      undefined,
    ],
    [
      'zset',
      ['ZADD', 'k', ...pairs],
      [
        ['ZADD', 'k', '9999', 'x'],
        ['ZADD', 'k', '-1', '5'],
        ['ZREM', 'k', '9'],
      ],
      ['ZADD', 'k', '7.5', '7'],
    ],
    [
      'hash',
      ['HSET', 'k', ...pairs],
      [
        ['HSET', 'k', 'x', 'y'],
        ['HDEL', 'k', '9'],
      ],
      ['HSET', 'k', '8', 'x'],
    ],
  ] as const)('of a large %s, too', async (type, make, told, untold) => {
    await stage.raw.command(...make)
    const [first] = await look(['k'], 1_000)
    expect(first).toMatchObject({ type, exact: false })
    let before = first?.mark
    for (const words of told) {
      await stage.raw.command(...words)
      const [seen] = await look(['k'], 1_000)
      expect(seen?.mark, words.join(' ')).not.toBe(before)
      before = seen?.mark
    }
    if (untold !== undefined) await stage.raw.command(...untold)
    expect((await look(['k'], 1_000))[0]?.mark).toBe(before)
  })

  test('of a stream its newest entry and its count', async () => {
    await stage.raw.command('XADD', 'k', '1-1', 'a', 'b')
    const [first] = await look(['k'])
    expect(first).toMatchObject({ type: 'stream', exact: false })
    await stage.raw.command('XGROUP', 'CREATE', 'k', 'g', '0')
    await stage.raw.command('XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 'k', '>')
    expect(await look(['k'])).toEqual([first])
    await stage.raw.command('XADD', 'k', '2-1', 'a', 'b')
    const [second] = await look(['k'])
    expect(second?.mark).not.toBe(first?.mark)
    await stage.raw.command('XDEL', 'k', '1-1')
    expect((await look(['k']))[0]?.mark).not.toBe(second?.mark)
  })

  test('stops when much was read, but not before the first key', async () => {
    for (const key of ['a', 'b', 'c']) await stage.raw.command('SET', key, key.repeat(1_000))
    expect(await look(['a', 'b', 'c'], 65_536, 1)).toHaveLength(1)
    expect(await look(['none', 'a', 'b', 'c'], 65_536, 1_500)).toHaveLength(3)
    expect(await look(['a', 'b', 'c'], 65_536, 3_001)).toHaveLength(3)
    expect(await look(['a', 'b', 'c'], 10, 1)).toHaveLength(3)
  })
})

describe('a scan', () => {
  test('goes through all keys that fit', async () => {
    const names = Array.from({ length: 300 }, (_, i) => `in:${String(i)}`)
    for (const name of [...names, 'out:1']) await stage.raw.command('SET', name, '1')
    const found = new Set<string>()
    let cursor = '0'
    do {
      const { reply } = await stage.run(watchScan, { pattern: 'in:*', cursor, count: 100 })
      for (const key of reply.keys) found.add(key)
      cursor = reply.cursor
    } while (cursor !== '0')
    expect([...found].sort()).toEqual(names.sort())
  })
})

describe('notes', () => {
  test('are written, removed and read, and live as long as was last asked for, at least', async () => {
    const write = (ttlMs: number, ...notes: string[]) =>
      stage.run(watchMark, { marks: 'notes', ttlMs, notes })
    const first = await write(60_000, 'a', '1', 'b', '2')
    expect(first.reply).toEqual({ outcome: 'marked' })
    expect(first.keys).toEqual({ notes: { type: 'hash', value: { a: '1', b: '2' }, ttl: 60_000 } })
    await write(60_000, 'a', '', 'b', '3')
    expect((await stage.run(watchMarks, { marks: 'notes' })).reply).toEqual({ marks: ['b', '3'] })
    const longer = await write(90_000)
    expect(longer.keys['notes']?.ttl).toBe(90_000)
    await write(10_000, 'b', '')
    expect((await write(10_000)).keys).toEqual({})
  })
})
