/** Random histories: what several owners, other programs and the clock do to two objects. */
import fc from 'fast-check'
import type { Hold, Operation } from '../../src/engine/operations.js'

/** Leases and steps of time are multiples of this, so that the time a test takes does not blur what is due. */
export const GRAIN_MS = 10_000

/** What other programs write under the name of a lock. */
export type Foreign = 'list' | 'hash' | 'string'

/** One step of a history. */
export type Act =
  | Operation
  /** Time goes by. */
  | { readonly op: 'time'; readonly ms: number }
  /** Another program writes; 0: without a TTL. */
  | { readonly op: 'other.write'; readonly name: string; readonly value: Foreign; readonly ttlMs: number }
  | { readonly op: 'other.delete'; readonly name: string }
  | { readonly op: 'other.persist'; readonly name: string }

/** The objects. A renewal may be about both. */
export const NAMES = ['orders:1', 'orders:2'] as const

const CLIENT = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d'
// A program of Redisson's is among them.
const LOCK_OWNERS = [`${CLIENT}:1`, `${CLIENT}:4503599627370497`, `1c6e9b0a-0d7c-4f55-8a56-0f6c1f1f2f3f:57`]
const TOKENS = [`${CLIENT}:11`, `${CLIENT}:12`, 'somebody']

/** An owner names the family that it is of: the tombstones of both would share a name in the model. */
export function isToken(owner: string): boolean {
  return TOKENS.includes(owner)
}

const name = fc.oneof(
  { weight: 3, arbitrary: fc.constant(NAMES[0]) },
  { weight: 1, arbitrary: fc.constant(NAMES[1]) },
)
const ttlMs = fc.integer({ min: 1, max: 5 }).map((grains) => grains * GRAIN_MS)
const ttlMsOrZero = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: ttlMs })
const count = fc.oneof(
  { weight: 3, arbitrary: fc.constant(1) },
  { weight: 2, arbitrary: fc.integer({ min: 2, max: 4 }) },
)

function ownerOf(owners: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(...owners.map((owner, i) => ({ weight: owners.length - i, arbitrary: fc.constant(owner) })))
}

function holds(owner: fc.Arbitrary<string>): fc.Arbitrary<Hold[]> {
  return fc.array(fc.record({ name, owner }), { minLength: 1, maxLength: 3 })
}

/** Who was seen before a forced release; a mutex has one holder at a time. */
function seen(owner: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string[]> {
  return fc.array(owner, { minLength: 1, maxLength })
}

function lockActs(owner: fc.Arbitrary<string>): fc.WeightedArbitrary<Operation>[] {
  const op = <const O extends string>(word: O) => fc.constant(word)
  return [
    {
      weight: 6,
      arbitrary: fc.record({ op: op('lock.acquire'), name, owner, count, leaseMs: ttlMs }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ op: op('lock.leave'), name, owner, count: fc.integer({ min: 1, max: 3 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        op: op('lock.release'),
        name,
        owner,
        keepMs: ttlMsOrZero,
        entombMs: ttlMsOrZero,
      }),
    },
    { weight: 2, arbitrary: fc.record({ op: op('lock.renew'), ttlMs, holds: holds(owner) }) },
    { weight: 1, arbitrary: fc.record({ op: op('lock.inspect'), name }) },
    {
      weight: 1,
      arbitrary: fc.record({ op: op('lock.force'), name, owners: seen(owner, 3) }),
    },
  ]
}

/** The fenced lock and the plain one are one lock; only what the former takes has tokens. */
function fencedActs(owner: fc.Arbitrary<string>): fc.WeightedArbitrary<Operation>[] {
  const op = <const O extends string>(word: O) => fc.constant(word)
  return [
    ...lockActs(owner),
    { weight: 12, arbitrary: fc.record({ op: op('fenced.acquire'), name, owner, count, leaseMs: ttlMs }) },
    { weight: 1, arbitrary: fc.record({ op: op('fenced.token'), name }) },
  ]
}

/** The spin lock and the plain one are one lock; they differ in whom they tell of its end. */
function spinActs(owner: fc.Arbitrary<string>): fc.WeightedArbitrary<Operation>[] {
  const op = <const O extends string>(word: O) => fc.constant(word)
  const keepMs = ttlMsOrZero
  const entombMs = ttlMsOrZero
  return [
    ...lockActs(owner),
    { weight: 4, arbitrary: fc.record({ op: op('spin.release'), name, owner, keepMs, entombMs }) },
    { weight: 2, arbitrary: fc.record({ op: op('spin.force'), name, owners: seen(owner, 3) }) },
  ]
}

function multiActs(owner: fc.Arbitrary<string>): fc.WeightedArbitrary<Operation>[] {
  const names = fc.constantFrom([...NAMES], [...NAMES].reverse(), [NAMES[0]])
  const op = <const O extends string>(word: O) => fc.constant(word)
  return [
    { weight: 8, arbitrary: fc.record({ op: op('multi.acquire'), names, owner, leaseMs: ttlMs }) },
    { weight: 5, arbitrary: fc.record({ op: op('multi.release'), names, owner, entombMs: ttlMsOrZero }) },
  ]
}

function mutexActs(owner: fc.Arbitrary<string>): fc.WeightedArbitrary<Operation>[] {
  const op = <const O extends string>(word: O) => fc.constant(word)
  return [
    { weight: 6, arbitrary: fc.record({ op: op('mutex.acquire'), name, owner, leaseMs: ttlMs }) },
    {
      weight: 4,
      arbitrary: fc.record({
        op: op('mutex.release'),
        name,
        owner,
        keepMs: ttlMsOrZero,
        entombMs: ttlMsOrZero,
      }),
    },
    { weight: 2, arbitrary: fc.record({ op: op('mutex.renew'), ttlMs, holds: holds(owner) }) },
    { weight: 1, arbitrary: fc.record({ op: op('mutex.inspect'), name }) },
    {
      weight: 1,
      arbitrary: fc.record({ op: op('mutex.force'), name, owners: seen(owner, 1) }),
    },
  ]
}

const time: fc.WeightedArbitrary<Act> = {
  weight: 4,
  arbitrary: fc.integer({ min: 1, max: 2 }).map((grains) => ({ op: 'time', ms: grains * GRAIN_MS })),
}

const others: fc.WeightedArbitrary<Act>[] = [
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('other.write' as const),
      name,
      value: fc.constantFrom<Foreign>('list', 'hash', 'string'),
      ttlMs: ttlMsOrZero,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom('other.delete' as const, 'other.persist' as const),
      name,
    }),
  },
]

function history(acts: readonly fc.WeightedArbitrary<Act>[]): fc.Arbitrary<Act[]> {
  return fc.array(fc.oneof(...acts, time, ...others), { minLength: 1, maxLength: 30, size: 'max' })
}

/** Histories of re-entrant locks. */
export const lockHistories = history(lockActs(ownerOf(LOCK_OWNERS)))

/** Histories of several re-entrant locks taken as one, and of single ones under the same names. */
export const multiHistories = history([...lockActs(ownerOf(LOCK_OWNERS)), ...multiActs(ownerOf(LOCK_OWNERS))])

/** Histories of fenced locks, and of plain ones under the same names. */
export const fencedHistories = history(fencedActs(ownerOf(LOCK_OWNERS)))

/** Histories of spin locks, and of plain ones under the same names. */
export const spinHistories = history(spinActs(ownerOf(LOCK_OWNERS)))

/** Histories of plain locks. */
export const mutexHistories = history(mutexActs(ownerOf(TOKENS)))

/** Histories in which both kinds of lock are taken for one name, by mistake. */
export const mixedHistories = history([
  ...lockActs(ownerOf(LOCK_OWNERS.slice(0, 2))),
  ...mutexActs(ownerOf(TOKENS.slice(0, 2))),
])
