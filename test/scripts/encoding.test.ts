/** Arguments in, outcomes out: what goes over the wire and what is made of the reply. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RawReply } from '../../src/engine/redis/clients/port.js'
import * as scripts from '../../src/engine/redis/scripts.js'
import { startRedis } from '../support/server.js'
import { locks, mutexes } from './words.js'

const all = Object.values(scripts)

describe('the scripts', () => {
  test('each one is known to a server under its own digest', async () => {
    await using server = await startRedis()
    for (const { script } of all) {
      expect(script.sha).toBe(createHash('sha1').update(script.source).digest('hex'))
      expect(await server.send('SCRIPT', 'LOAD', script.source)).toBe(script.sha)
    }
  })

  test('no two have the same name', () => {
    expect(new Set(all.map(({ script }) => script.name)).size).toBe(all.length)
  })
})

describe('encode', () => {
  test('keys and arguments in the order of the header', () => {
    expect(scripts.lockRelease.encode(locks.release({ keepMs: 7, entombMs: 60_000 }))).toEqual({
      keys: ['orders:42', locks.release().tombstone],
      args: [locks.release().owner, 'redisson_lock__channel:{orders:42}', 'PUBLISH', '7', '60000'],
    })
    expect(scripts.lockRenew.encode({ locks: ['a', 'b'], ttlMs: 5, owners: ['x', 'y'] })).toEqual({
      keys: ['a', 'b'],
      args: ['5', 'x', 'y'],
    })
    expect(scripts.lockForce.encode(locks.force(['x', 'y'])).args).toEqual([
      'redisson_lock__channel:{orders:42}',
      'PUBLISH',
      'x',
      'y',
    ])
  })

  test('every safe integer comes out in plain decimal digits', () => {
    const plain = (leaseMs: number): void => {
      const [, digits = ''] = scripts.mutexAcquire.encode(mutexes.acquire({ leaseMs })).args
      expect(digits).toMatch(/^\d+$/)
      expect(Number(digits)).toBe(leaseMs)
    }
    plain(Number.MAX_SAFE_INTEGER)
    fc.assert(fc.property(fc.maxSafeNat(), plain))
  })
})

describe('decode', () => {
  const { decode } = scripts.lockAcquire

  test('an outcome without fields is one frozen object, for all replies and scripts', () => {
    expect(decode(1)).toBe(decode(1))
    expect(decode(1)).toBe(scripts.mutexAcquire.decode(1))
    expect(Object.isFrozen(decode(1))).toBe(true)
    expect([1, -1, -2, -3].map((status) => decode(status).outcome)).toEqual([
      'granted',
      'lost',
      'dead',
      'foreign',
    ])
  })

  test('fields go by their names', () => {
    expect(decode([0, 1234, 'a:1'])).toEqual({ outcome: 'busy', ttlMs: 1234, holder: 'a:1' })
    expect(scripts.lockInspect.decode([1, -1])).toEqual({ outcome: 'held', ttlMs: -1, holders: [] })
    expect(scripts.lockInspect.decode([1, 5, 'a:1', '2'])).toEqual({
      outcome: 'held',
      ttlMs: 5,
      holders: ['a:1', '2'],
    })
    expect(scripts.lockRenew.decode([])).toEqual({ results: [] })
    expect(scripts.lockRenew.decode([1, 0, -1])).toEqual({ results: [1, 0, -1] })
  })

  test.each<RawReply>([
    null,
    '1',
    'OK',
    2,
    0,
    [],
    [1],
    [0],
    [0, 1234],
    [0, '1234', 'a:1'],
    [0, 1234, 5],
    [0, 1234, null],
    [0, 1234, 'a:1', 'more'],
    ['0', 1234, 'a:1'],
    [[0, 1234, 'a:1']],
  ])('%j is none of the declared replies: the error names the script and the reply', (reply) => {
    expect(() => decode(reply)).toThrow(
      `The script lock/acquire gave a reply that it does not declare: ${JSON.stringify(reply)}`,
    )
  })

  test('the same for lists', () => {
    for (const reply of [null, 1, 'OK', ['1'], [1, null]]) {
      expect(() => scripts.lockRenew.decode(reply)).toThrow(/lock\/renew/)
    }
    for (const reply of [1, [1], [1, 5, 'a:1', 2], [1, 'a:1', '2']]) {
      expect(() => scripts.lockInspect.decode(reply)).toThrow(/lock\/inspect/)
    }
  })
})
