import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RedisGuard } from '../../src/index.js'
import {
  IOREDIS_5,
  IOREDIS_6,
  NODE_REDIS_5,
  NODE_REDIS_6,
  open,
  type OpenClient,
} from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { raw, type Raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'

let server: RedisServer
let peer: Raw

beforeAll(async () => {
  server = await startRedis()
  peer = await raw(server.port)
})
afterAll(async () => {
  await peer[Symbol.asyncDispose]()
  await server.stop()
})

let names = 0
const freshKey = () => `guarded:${++names}`

describe.for([IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6])('a guarded value, over $name', (variant) => {
  let client: OpenClient
  let guard: RedisGuard

  beforeAll(async () => {
    client = await open(variant, server.port)
    guard = new RedisGuard(client.raw as object)
  })
  afterAll(async () => {
    await guard.close()
    client.destroy()
  })

  const make = () => {
    const key = freshKey()
    return { key, value: guard.value(key) }
  }
  const stale = (key: string, token: number, floor: number) => ({
    name: 'StaleTokenError',
    code: 'HOLDFAST_STALE_TOKEN',
    resource: key,
    token,
    floor,
  })

  test('is null at first, and what was written last from then on', async () => {
    const { value } = make()
    expect(await value.read(1)).toBeNull()
    await value.write(1, 'one')
    expect(await value.read(1)).toBe('one')
    await value.write(3, '')
    expect(await value.read(3)).toBe('')
    await value.write(3, 'Zürich – 東京 \0 🦊')
    expect(await value.read(4)).toBe('Zürich – 東京 \0 🦊')
  })

  test('refuses lower tokens after a write, for reading, writing and removing, and changes nothing', async () => {
    const { key, value } = make()
    await value.write(5, 'five')
    const before = await peer.command('HGETALL', key)
    await expect(value.read(4)).rejects.toMatchObject(stale(key, 4, 5))
    await expect(value.write(1, 'one')).rejects.toMatchObject(stale(key, 1, 5))
    await expect(value.remove(4)).rejects.toMatchObject(stale(key, 4, 5))
    expect(await peer.command('HGETALL', key)).toEqual(before)
  })

  test('is sealed by a read: who held the lock before can write no more', async () => {
    const { key, value } = make()
    await value.write(1, 'one')
    expect(await value.read(2)).toBe('one')
    await expect(value.write(1, 'late')).rejects.toMatchObject(stale(key, 1, 2))
    expect(await value.read(2)).toBe('one')
  })

  test('is sealed before there is a value, too', async () => {
    const { key, value } = make()
    expect(await value.read(2)).toBeNull()
    await expect(value.write(1, 'late')).rejects.toMatchObject(stale(key, 1, 2))
    expect(await value.read(2)).toBeNull()
  })

  test('is gone when it was removed, but for the floor', async () => {
    const { key, value } = make()
    await value.write(2, 'two')
    await value.remove(3)
    expect(await peer.command('HGETALL', key)).toEqual(['token', '3'])
    await expect(value.write(2, 'late')).rejects.toMatchObject(stale(key, 2, 3))
    expect(await value.read(3)).toBeNull()
  })

  test('tells tokens apart up to 2^53−1', async () => {
    const { key, value } = make()
    const high = Number.MAX_SAFE_INTEGER
    await value.write(high - 1, 'almost')
    await value.write(high, 'highest')
    await expect(value.write(high - 1, 'late')).rejects.toMatchObject(stale(key, high - 1, high))
  })

  test.for([
    ['a string', ['SET'], ['theirs']],
    ['a hash without a token', ['HSET'], ['colour', 'theirs']],
    ['a hash whose token is none', ['HSET'], ['token', 'theirs']],
    ['a hash whose token is no number', ['HSET'], ['token', 'nan']],
    ['a hash whose token is hexadecimal', ['HSET'], ['token', '0x10']],
    ['a hash whose token has an exponent', ['HSET'], ['token', '1e3']],
    ['a hash whose token is negative', ['HSET'], ['token', '-5']],
    ['a hash whose token cannot be told exactly', ['HSET'], ['token', '9007199254740993']],
    ['a hash with a token among other fields', ['HSET'], ['token', '3', 'colour', 'red']],
    ['a hash with a value and no token', ['HSET'], ['value', 'theirs']],
  ] as const)('is not made of %s of somebody else', async ([, [command], words]) => {
    const { key, value } = make()
    await peer.command(command, key, ...words)
    const before = await peer.command('DUMP', key)
    for (const access of [() => value.read(9), () => value.write(9, 'ours'), () => value.remove(9)])
      await expect(access()).rejects.toMatchObject({ code: 'HOLDFAST_WRONG_TYPE', key })
    expect(await peer.command('DUMP', key)).toEqual(before)
  })

  test("goes by the prefix of the user's client", async () => {
    if (variant.library === 'node-redis') return
    const prefixed = await open(variant, server.port, { keyPrefix: 'shop:' })
    const own = new RedisGuard(prefixed.raw as object)
    const key = freshKey()
    await own.value(key).write(1, 'one')
    expect(await peer.command('HGET', `shop:${key}`, 'value')).toBe('one')
    await own.close()
    expect(await prefixed.command('PING')).toBe('PONG')
    prefixed.destroy()
  })

  test('tells by UnavailableError that a server does not answer, and then what is known', async () => {
    const slow = await startRedis()
    const other = await open(variant, slow.port)
    const own = new RedisGuard(other.raw as object, { commandTimeout: 100 })
    const value = own.value('x')
    await value.write(1, 'one')
    slow.pause()
    const unknown = { code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' }
    await expect(value.write(2, 'two')).rejects.toMatchObject(unknown)
    await expect(value.read(2)).rejects.toMatchObject(unknown)
    slow.resume()
    await own.close()
    other.destroy()
    await expect(value.read(3)).rejects.toMatchObject({
      code: 'HOLDFAST_UNAVAILABLE',
      outcome: 'not-applied',
    })
    await slow.stop()
  })

  test('waits within its time for a client that connects, and leaves nothing in its queue', async () => {
    const down = await startRedis()
    const other = await open(variant, down.port)
    const own = new RedisGuard(other.raw as object, { commandTimeout: 200 })
    await down.kill()
    const refused = () =>
      own
        .value('x')
        .write(1, 'lost')
        .then(
          () => 'applied',
          (error: unknown) => error,
        )
    await expect(refused()).resolves.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE' })
    // As soon as the client has noticed.
    const unsent = async () => ((await refused()) as { outcome?: unknown }).outcome === 'not-applied'
    await eventually(unsent, 'a write that was surely not sent')
    await down.start()
    const patient = new RedisGuard(other.raw as object, { commandTimeout: 20_000 })
    expect(await patient.value('x').read(1)).toBeNull()
    await own.close()
    await patient.close()
    other.destroy()
    await down.stop()
  })
})

describe('bad arguments are refused before any I/O', () => {
  // Never connected.
  const client = IOREDIS_6.create(1).raw as object
  const value = new RedisGuard(client).value('x')

  test.for([undefined, null, '1', NaN, 0, -1, 1.5, 2 ** 53, Infinity])('the token %s', async (token) => {
    await expect(value.read(token as number)).rejects.toThrow(/A token must be/)
    await expect(value.write(token as number, 'x')).rejects.toThrow(/A token must be/)
  })

  test('values, names, options and clients', async () => {
    for (const bad of [undefined, null, 5, {}, 'half a \ud83e pair'])
      await expect(value.write(1, bad as string)).rejects.toThrow(/The value must be a valid string/)
    for (const bad of ['', 5, undefined, '\ud83e'])
      expect(() => new RedisGuard(client).value(bad as string)).toThrow(/The name of what is guarded must/)
    expect(() => new RedisGuard(client, { commandTimeOut: 5 } as object)).toThrow(/Unknown key/)
    expect(() => new RedisGuard(client, { commandTimeout: 0 })).toThrow(RangeError)
    expect(() => new RedisGuard({})).toThrow(TypeError)
  })
})
