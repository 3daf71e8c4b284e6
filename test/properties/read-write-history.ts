/** Random histories of read/write locks, and how the model's state of one is written down as keys and messages. */
import fc from 'fast-check'
import type { Operation } from '../../src/engine/operations.js'
import { GRAIN_MS, NAMES, type Act, type Foreign } from './history.js'
import { written, type Entry, type View } from './sides.js'

const CLIENT = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d'
const OWNERS = [`${CLIENT}:1`, `${CLIENT}:2`, `${CLIENT}:3`, '1c6e9b0a-0d7c-4f55-8a56-0f6c1f1f2f3f:57']

const name = fc.oneof(
  { weight: 4, arbitrary: fc.constant(NAMES[0]) },
  { weight: 1, arbitrary: fc.constant(NAMES[1]) },
)
const ttlMs = fc.integer({ min: 1, max: 5 }).map((grains) => grains * GRAIN_MS)
const ttlMsOrZero = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: ttlMs })
const count = fc.oneof(
  { weight: 4, arbitrary: fc.constant(1) },
  { weight: 2, arbitrary: fc.integer({ min: 2, max: 4 }) },
)
const owner = fc.oneof(
  ...OWNERS.map((each, i) => ({ weight: OWNERS.length - i, arbitrary: fc.constant(each) })),
)
const writer = fc.oneof({ weight: 2, arbitrary: fc.constant('') }, { weight: 1, arbitrary: owner })
const holds = fc.array(fc.record({ name, owner }), { minLength: 1, maxLength: 3 })
const lower = fc.integer({ min: 1, max: 3 })

/** Also who is seen of those that have left the rest of a minimum hold. */
const seen = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: owner },
    { weight: 1, arbitrary: owner.map((each) => `${each}:0`) },
    { weight: 1, arbitrary: owner.map((each) => `${each}:00`) },
  ),
  { minLength: 1, maxLength: 3 },
)

function op<const O extends string>(word: O): fc.Arbitrary<O> {
  return fc.constant(word)
}

function side(word: 'read' | 'write'): fc.WeightedArbitrary<Operation>[] {
  const ending = { name, owner, keepMs: ttlMsOrZero, entombMs: ttlMsOrZero }
  return [
    { weight: 2, arbitrary: fc.record({ op: op(`${word}.leave`), name, owner, count: lower }) },
    { weight: 4, arbitrary: fc.record({ op: op(`${word}.release`), ...ending }) },
    { weight: 2, arbitrary: fc.record({ op: op(`${word}.renew`), ttlMs, holds }) },
    { weight: 1, arbitrary: fc.record({ op: op(`${word}.inspect`), name }) },
    { weight: 1, arbitrary: fc.record({ op: op(`${word}.force`), name, owners: seen }) },
  ]
}

/** What a plain lock of the same name does, by mistake. Its owners are others, since each lease has its own. */
function plain(): fc.WeightedArbitrary<Operation>[] {
  const one = fc.constantFrom(`${CLIENT}:4`, `${CLIENT}:5`)
  const ending = { name, owner: one, keepMs: ttlMsOrZero, entombMs: ttlMsOrZero }
  const them = fc.array(fc.record({ name, owner: one }), { minLength: 1, maxLength: 2 })
  const owners = fc.array(one, { minLength: 1, maxLength: 2 })
  return [
    {
      weight: 9,
      arbitrary: fc.record({ op: op('lock.acquire'), name, owner: one, count, leaseMs: ttlMs }),
    },
    { weight: 1, arbitrary: fc.record({ op: op('lock.leave'), name, owner: one, count: lower }) },
    { weight: 5, arbitrary: fc.record({ op: op('lock.release'), ...ending }) },
    { weight: 1, arbitrary: fc.record({ op: op('lock.renew'), ttlMs, holds: them }) },
    { weight: 2, arbitrary: fc.record({ op: op('lock.inspect'), name }) },
    { weight: 2, arbitrary: fc.record({ op: op('lock.force'), name, owners }) },
  ]
}

const acquires: fc.WeightedArbitrary<Operation>[] = [
  {
    weight: 9,
    arbitrary: fc.record({ op: op('read.acquire'), name, owner, writer, count, leaseMs: ttlMs }),
  },
  { weight: 5, arbitrary: fc.record({ op: op('write.acquire'), name, owner, count, leaseMs: ttlMs }) },
  {
    // A read inside the write of the same owner.
    weight: 3,
    arbitrary: fc
      .record({ op: op('read.acquire'), name, owner, count, leaseMs: ttlMs })
      .map((read) => ({ ...read, writer: read.owner })),
  },
]

const others: fc.WeightedArbitrary<Act>[] = [
  {
    weight: 5,
    arbitrary: fc.integer({ min: 1, max: 2 }).map((grains) => ({ op: 'time', ms: grains * GRAIN_MS })),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: op('other.write'),
      name,
      value: fc.constantFrom<Foreign>('list', 'hash', 'string'),
      ttlMs: ttlMsOrZero,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('other.delete', 'other.persist'), name }) },
]

/** Histories of read/write locks. */
export const readWriteHistories: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(...acquires, ...side('read'), ...side('write'), ...others),
  { minLength: 1, maxLength: 35, size: 'max' },
)

/** Histories in which both kinds of lock are taken for one name, by mistake. */
export const readWriteAndLockHistories: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(...acquires, ...side('read'), ...side('write'), ...plain(), ...others),
  { minLength: 1, maxLength: 35, size: 'max' },
)

/** Keys and messages of read/write locks. */
export const READ_WRITE: View = {
  names: NAMES,
  topics: (each) => [
    [{ family: 'lock', name: each }, () => `redisson_lock__channel:{${each}} 0`],
    [
      { family: 'read-write', name: each },
      (hint) =>
        (hint === 'all' ? ['1', '0'] : ['0']).map((payload) => `redisson_rwlock:{${each}} ${payload}`),
    ],
  ],
  entries: (each, { value, expiresAtMs, tombstones, holds = new Map<string, number>() }, nowMs) => {
    const key = (whole: string, endMs: number): readonly [string, Entry] => [
      whole,
      { type: 'string', value: '1', ttlMs: endMs - nowMs },
    ]
    const beside = [
      ...[...tombstones].map(([dead, endMs]) => key(`redisson_unlock_latch:{${each}}:${dead}`, endMs)),
      ...[...holds].map(([hold, endMs]) => key(`{${each}}:${hold}`, endMs)),
    ]
    const ttl = expiresAtMs === Infinity ? -1 : expiresAtMs - nowMs
    return value === undefined ? beside : [...beside, [each, { ...written(value), ttlMs: ttl }] as const]
  },
}
