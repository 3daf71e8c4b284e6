import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change } from './changed-port.js'
import { READ_WRITE as view, readWriteHistories } from './read-write-history.js'
import { Sides } from './sides.js'

/** What is broken, in which script, and how: these words in place of those. */
type Breakage = readonly [what: string, script: string, from: string, to: string]

const BREAKAGES: readonly Breakage[] = [
  ['acquire ignores the tombstone', 'read/acquire', `redis.call('exists', KEYS[2]) == 1`, `false`],
  ['acquire lets readers in beside a writer', 'read/acquire', `mode ~= 'read' and`, `false and`],
  [
    'acquire lets nobody in beside its writer',
    'read/acquire',
    `redis.call('hexists', lock, ARGV[2] .. ':write') == 0`,
    `true`,
  ],
  [
    'acquire believes in a hold that has run out',
    'read/acquire',
    `redis.call('exists', holdKey(lock, owner, 1)) == 0`,
    `false`,
  ],
  ['acquire sets the time of the hash to its own', 'read/acquire', `if left < leaseMs then`, `if true then`],
  ['acquire cuts a hold', 'read/acquire', `redis.call('pttl', key) < leaseMs`, `true`],
  ['a nested acquire leaves the first hold', 'read/acquire', `count > 1 and {1, count} or {1}`, `{count}`],
  ['leave leaves the hold key', 'read/leave', `for i = tonumber(held), count + 1, -1 do`, `for i = 1, 0 do`],
  [
    'release does not look at the other readers',
    'read/release',
    `== 'read' and settle(lock, own)`,
    `== 'read' and redis.call('del', lock) == 1`,
  ],
  [
    'release never frees the lock while a field is left',
    'read/release',
    `seen[1] == 'read' and settle(lock, own)`,
    `redis.call('hlen', lock) == 1 and redis.call('del', lock) == 1`,
  ],
  ["release cuts the writer's time", 'read/release', `seen[1] == 'read' and`, ``],
  ['release tells of every reader', 'read/release', `told = free or`, `told = true or`],
  ['release tells nobody', 'read/release', `told = free or`, `told =`],
  ['renew does not look for the hold key', 'read/renew', `return left ~= -2`, `return true`],
  ['renew shortens', 'read/renew', `left < ttlMs and`, ``],
  [
    'inspect counts who has run out',
    'read/inspect',
    `redis.call('exists', holdKey(lock, field, 1)) == 1 and fields[i + 1] or '0'`,
    `fields[i + 1]`,
  ],
  ['force takes the lock from a writer', 'read/force', `redis.call('hget', lock, 'mode') ~= 'read'`, `false`],
  [
    'write/acquire ignores the tombstone',
    'write/acquire',
    `redis.call('exists', lock, KEYS[2]) == 0`,
    `redis.call('exists', lock) == 0`,
  ],
  ['write/acquire shortens', 'write/acquire', `redis.call('pttl', lock) < leaseMs`, `true`],
  [
    'write/release ends the reads inside',
    'write/release',
    `if redis.call('hlen', lock) == 1 then`,
    `if true then`,
  ],
  [
    'write/release leaves the mode',
    'write/release',
    `redis.call('hset', lock, 'mode', 'read')`,
    `redis.call('exists', lock)`,
  ],
  ['write/release wakes one', 'write/release', `redis.pcall(publish, channel, '1')`, `nil`],
  [
    'write/release tells nobody of a downgrade',
    'write/release',
    `if told == 1 and not tellAll`,
    `if redis.call('exists', lock) == 0 and told == 1 and not tellAll`,
  ],
  ['write/force takes the lock from whoever writes', 'write/force', `if removed == 0 then`, `if false then`],
]

describe('a script of the read/write lock that is broken on purpose is found', () => {
  let sides: Sides
  beforeAll(async () => {
    sides = await Sides.open()
  })
  afterAll(() => sides[Symbol.asyncDispose]())

  test.for(BREAKAGES)('%s', async ([, script, from, to]) => {
    const change: Change = { script, from, to }
    const { failed, errorInstance } = await fc.check(
      fc.asyncProperty(readWriteHistories, (history) => sides.run(history, { change, view })),
      { numRuns: 1_000, seed: 42, endOnFailure: true },
    )
    expect(failed).toBe(true)
    expect(String(errorInstance)).toContain('after step')
  })
})
