import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change } from './changed-port.js'
import { fencedHistories, spinHistories, type Act } from './history.js'
import { LOCKS, Model, Sides, type View } from './sides.js'

/** The tokens lie beside the locks, and have no TTL. */
const TOKENS: View = {
  ...LOCKS,
  entries: (name, state, nowMs) => {
    const token = state.token ?? 0
    const key = `redisson_lock_token:{${name}}`
    const entry = { type: 'string', value: String(token), ttlMs: -1 }
    return [...LOCKS.entries(name, state, nowMs), ...(token === 0 ? [] : [[key, entry] as const])]
  },
}

let sides: Sides
beforeAll(async () => {
  sides = await Sides.open()
})
afterAll(() => sides[Symbol.asyncDispose]())

describe('the scripts do what the model says: replies, keys, TTLs and messages, after every step', () => {
  // On failure fast-check prints the seed and the shortest history that it found.
  const agree = (histories: fc.Arbitrary<Act[]>, view: View, numRuns: number) =>
    fc.assert(
      fc.asyncProperty(histories, (history) => sides.run(history, { view })),
      { numRuns },
    )

  test('histories of fenced locks, with their tokens', () => agree(fencedHistories, TOKENS, 400))
  test('histories of spin locks', () => agree(spinHistories, LOCKS, 300))
})

test('whatever happens, no token is given twice, and each is higher than those before it', async () => {
  await fc.assert(
    fc.asyncProperty(fencedHistories, async (history) => {
      const model = new Model(TOKENS)
      const last = new Map<string, number>()
      for (const act of history) {
        const reply = await model.act(act)
        if (act.op === 'fenced.token')
          expect(reply).toEqual({ outcome: 'known', token: last.get(act.name) ?? 0 })
        if (act.op !== 'fenced.acquire' || !granted(reply)) continue
        expect(reply.token).toBeGreaterThan(last.get(act.name) ?? 0)
        last.set(act.name, reply.token)
      }
    }),
    { numRuns: 500 },
  )
})

function granted(reply: unknown): reply is { readonly token: number } {
  return (reply as { readonly outcome: string }).outcome === 'granted'
}

type Breakage = readonly [what: string, change: Change]

const FENCED: readonly Breakage[] = [
  [
    'a nested entry gets no new token',
    {
      script: 'fenced/acquire',
      from: `local token = redis.call('incr', KEYS[3])`,
      to: `local token = held and last or redis.call('incr', KEYS[3])`,
    },
  ],
  [
    'a token is spent on those who find the lock taken',
    {
      script: 'fenced/acquire',
      from: `local holder = firstOwner(lock)`,
      to: `redis.call('incr', KEYS[3]) local holder = firstOwner(lock)`,
    },
  ],
  [
    'the token lives as long as the lock',
    {
      script: 'fenced/acquire',
      from: `return {1, string`,
      to: `redis.call('pexpire', KEYS[3], ARGV[3]) return {1, string`,
    },
  ],
  [
    'acquire ignores the tombstone',
    { script: 'fenced/acquire', from: `redis.call('exists', KEYS[2]) == 1`, to: `false` },
  ],
  [
    'a nested acquire creates the key',
    { script: 'fenced/acquire', from: `not held and count > 1`, to: `false` },
  ],
  [
    'a repeated acquire lowers the count',
    { script: 'fenced/acquire', from: `tonumber(held) < count`, to: `tonumber(held) ~= count` },
  ],
  [
    'a repeated acquire shortens the TTL',
    { script: 'fenced/acquire', from: `redis.call('pttl', lock) < leaseMs`, to: `true` },
  ],
  [
    'acquire enters beside the holder',
    { script: 'fenced/acquire', from: `redis.call('exists', lock) == 1`, to: `false` },
  ],
]

const SPIN: readonly Breakage[] = [
  [
    'release does not look for its owner',
    { script: 'spin/release', from: `redis.call('hdel', lock, owner)`, to: `redis.call('del', lock)` },
  ],
  [
    'release tells',
    {
      script: 'spin/release',
      from: `return redis.call('exists', lock) == 1 and -1 or 0\nend`,
      to: `return redis.call('exists', lock) == 1 and -1 or 0\nend redis.call('publish', 'x', '0')`,
    },
  ],
  [
    'release leaves no tombstone',
    { script: 'spin/release', from: `if ARGV[3] ~= '0' then`, to: `if false then` },
  ],
  [
    'release frees a lock that has to stay shut',
    { script: 'spin/release', from: `redis.call('hset', lock, rest, 1)`, to: `` },
  ],
  [
    'force takes the lock from whoever has it',
    { script: 'spin/force', from: `redis.call('hdel', KEYS[1], owner)`, to: `redis.call('del', KEYS[1])` },
  ],
]

describe('a script that is broken on purpose is found', () => {
  const broken = async (histories: fc.Arbitrary<Act[]>, view: View, change: Change) => {
    const { failed, errorInstance } = await fc.check(
      fc.asyncProperty(histories, (history) => sides.run(history, { view, change })),
      { numRuns: 1_000, seed: 42, endOnFailure: true },
    )
    expect(failed).toBe(true)
    expect(String(errorInstance)).toContain('after step')
  }

  test.for(FENCED)('fenced: %s', ([, change]) => broken(fencedHistories, TOKENS, change))
  test.for(SPIN)('spin: %s', ([, change]) => broken(spinHistories, LOCKS, change))
})
