import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change } from './changed-port.js'
import { lockHistories, mutexHistories, type Act } from './history.js'
import { Sides } from './sides.js'

/** What is broken, and how. */
type Breakage = readonly [what: string, change: Change]

const LOCKS: readonly Breakage[] = [
  [
    'acquire ignores the tombstone',
    {
      script: 'lock/acquire',
      from: `redis.call('exists', lock, KEYS[2]) == 0`,
      to: `redis.call('exists', lock) == 0`,
    },
  ],
  [
    'acquire counts from where it finds the count',
    {
      script: 'lock/acquire',
      from: `redis.call('hset', lock, owner, ARGV[2])`,
      to: `redis.call('hincrby', lock, owner, 1)`,
    },
  ],
  [
    'a repeated acquire lowers the count',
    { script: 'lock/acquire', from: `tonumber(held) < count`, to: `tonumber(held) ~= count` },
  ],
  [
    'a repeated acquire shortens the TTL',
    { script: 'lock/acquire', from: `redis.call('pttl', lock) < leaseMs`, to: `true` },
  ],
  ['a nested acquire creates the key', { script: 'lock/acquire', from: `count == 1 and`, to: '' }],
  [
    'acquire sets no TTL',
    {
      script: 'lock/acquire',
      from: `redis.call('hset', lock, owner, 1)\nredis.call('pexpire', lock, ARGV[3])`,
      to: `redis.call('hset', lock, owner, 1)`,
    },
  ],
  [
    'acquire enters beside the holder',
    { script: 'lock/acquire', from: `local held = redis.call('hget', lock, owner)`, to: `local held = '0'` },
  ],
  [
    'leave resets the TTL',
    {
      script: 'lock/leave',
      from: `redis.call('hset', lock, owner, ARGV[2])`,
      to: `redis.call('hset', lock, owner, ARGV[2]) redis.call('pexpire', lock, 30000)`,
    },
  ],
  [
    'a repeated leave lowers the count again',
    {
      script: 'lock/leave',
      from: `if tonumber(held) > tonumber(ARGV[2]) then`,
      to: `if redis.call('hincrby', lock, owner, -1) < 1 then`,
    },
  ],
  [
    'leave does not look for its owner',
    { script: 'lock/leave', from: `if not held then`, to: `held = held or '9' if false then` },
  ],
  [
    'release does not look for its owner',
    { script: 'lock/release', from: `redis.call('hdel', lock, owner)`, to: `redis.call('del', lock)` },
  ],
  [
    'release lowers the count only',
    {
      script: 'lock/release',
      from: `found = redis.call('hdel', lock, owner)`,
      to: `found = redis.call('hexists', lock, owner) if found == 1 and redis.call('hincrby', lock, owner, -1) == 0 then redis.call('del', lock) end`,
    },
  ],
  ['release tells nobody', { script: 'lock/release', from: `if told == 1 then`, to: `if false then` }],
  [
    'a repeated release tells once more that the lock stays shut',
    {
      script: 'lock/release',
      from: `found = redis.call('hexists', lock, rest)`,
      to: `found = redis.call('hexists', lock, rest) told = found`,
    },
  ],
  [
    'release shuts the lock of somebody else',
    { script: 'lock/release', from: `if keepMs > 0 and found == 1 then`, to: `if keepMs > 0 then` },
  ],
  [
    'a late copy of a release sets the rest again',
    {
      script: 'lock/release',
      from: `found = redis.call('hexists', lock, rest)`,
      to: `found = redis.call('hexists', lock, rest) if found == 1 then redis.call('pexpire', lock, ARGV[4]) end`,
    },
  ],
  [
    'the rest of a minimum hold can be renewed',
    { script: 'lock/release', from: `local rest = owner .. ':0'`, to: `local rest = owner` },
  ],
  [
    'release leaves a tombstone only for an owner that was there',
    { script: 'lock/release', from: `if ARGV[5] ~= '0' then`, to: `if ARGV[5] ~= '0' and found == 1 then` },
  ],
  [
    'renew does not look for its owner',
    { script: 'lock/renew', from: `if held == 1 then`, to: `if true then` },
  ],
  ['renew shortens the TTL', { script: 'lock/renew', from: `redis.call('pttl', lock) < ttlMs`, to: `true` }],
  [
    'renew takes the lock again',
    {
      script: 'lock/renew',
      from: `results[i] = 0`,
      to: `redis.call('hset', lock, ARGV[i + 1], 1) redis.call('pexpire', lock, ARGV[1]) results[i] = 1`,
    },
  ],
  [
    'inspect takes any hash for a lock',
    { script: 'lock/inspect', from: `if not firstOwner(lock) then`, to: `if false then` },
  ],
  [
    'force takes the lock from whoever has it',
    { script: 'lock/force', from: `redis.call('hdel', KEYS[1], ARGV[i])`, to: `redis.call('del', KEYS[1])` },
  ],
]

const MUTEXES: readonly Breakage[] = [
  [
    'acquire ignores the tombstone',
    {
      script: 'mutex/acquire',
      from: `redis.call('exists', mutex, KEYS[2]) == 0`,
      to: `redis.call('exists', mutex) == 0`,
    },
  ],
  [
    'acquire does not look whether it is free',
    {
      script: 'mutex/acquire',
      from: `redis.call('exists', mutex, KEYS[2]) == 0`,
      to: `redis.call('exists', KEYS[2]) == 0`,
    },
  ],
  [
    'a repeated acquire shortens the TTL',
    { script: 'mutex/acquire', from: `redis.call('pttl', mutex) < tonumber(ARGV[2])`, to: `true` },
  ],
  [
    'release does not look for its token',
    {
      script: 'mutex/release',
      from: `local ours = holder == ARGV[1] or holder == rest`,
      to: `local ours = holder`,
    },
  ],
  [
    'release leaves no tombstone',
    { script: 'mutex/release', from: `if ARGV[5] ~= '0' then`, to: `if false then` },
  ],
  ['release tells nobody', { script: 'mutex/release', from: `if told then`, to: `if false then` }],
  [
    'the rest of a minimum hold can be renewed',
    { script: 'mutex/release', from: `local rest = ARGV[1] .. ':0'`, to: `local rest = ARGV[1]` },
  ],
  [
    'renew does not look for its token',
    { script: 'mutex/renew', from: `if holder == ARGV[i + 1] then`, to: `if holder then` },
  ],
  [
    'renew shortens the TTL',
    { script: 'mutex/renew', from: `redis.call('pttl', mutex) < ttlMs`, to: `true` },
  ],
  [
    'force takes the mutex from whoever has it',
    {
      script: 'mutex/force',
      from: `redis.call('get', KEYS[1]) ~= ARGV[1]`,
      to: `redis.call('exists', KEYS[1]) == 0`,
    },
  ],
]

const MANY = 1_000

describe('a script that is broken on purpose is found', () => {
  let sides: Sides
  beforeAll(async () => {
    sides = await Sides.open()
  })
  afterAll(() => sides[Symbol.asyncDispose]())

  const check = (histories: fc.Arbitrary<Act[]>, change: Change, endOnFailure: boolean) =>
    fc.check(
      fc.asyncProperty(histories, (history) => sides.run(history, { change })),
      { numRuns: MANY, seed: 42, endOnFailure },
    )

  test.for(LOCKS)('lock: %s', async ([, change]) => {
    const { failed, errorInstance } = await check(lockHistories, change, true)
    expect(failed).toBe(true)
    expect(String(errorInstance)).toContain('after step')
  })

  test.for(MUTEXES)('mutex: %s', async ([, change]) => {
    const { failed, errorInstance } = await check(mutexHistories, change, true)
    expect(failed).toBe(true)
    expect(String(errorInstance)).toContain('after step')
  })

  test('and shown by a history of the few steps that it takes', async () => {
    const [, ignoresTombstone] = LOCKS[0] ?? []
    if (ignoresTombstone === undefined) throw new Error('there is nothing broken')
    const { counterexample } = await check(lockHistories, ignoresTombstone, false)
    const [history = []] = counterexample ?? []
    expect(history.map(({ op }) => op).slice(0, 2)).toEqual(['lock.release', 'lock.acquire'])
    expect(history.length).toBeLessThan(4)
  })
})
