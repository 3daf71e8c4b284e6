/** Random histories of numbers without owners: semaphores and latches, with requests that come again. */
import fc from 'fast-check'
import type { Round } from '../../src/engine/model/state.js'
import type { Operation } from '../../src/engine/operations.js'
import { GRAIN_MS, NAMES, type Act, type Foreign } from './history.js'
import { LOCKS, written, type Entry, type View } from './sides.js'

/** So few that copies are as frequent as first requests. */
const REQUESTS = [
  '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:1',
  '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:2',
  'c:3',
  'c:4',
]
const MOST = Number.MAX_SAFE_INTEGER

const name = fc.oneof(
  { weight: 4, arbitrary: fc.constant(NAMES[0]) },
  { weight: 1, arbitrary: fc.constant(NAMES[1]) },
)
const request = fc.constantFrom(...REQUESTS)
const requestMs = fc.integer({ min: 1, max: 4 }).map((grains) => grains * GRAIN_MS)
const ttlMs = fc.oneof(
  { weight: 2, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 5 }).map((grains) => grains * GRAIN_MS) },
)
const few = fc.integer({ min: 1, max: 4 })
const huge = fc.constantFrom(MOST, MOST - 1, -MOST)
const op = <const O extends string>(word: O) => fc.constant(word)
const base = { name, request, requestMs }

const semaphoreActs: fc.WeightedArbitrary<Operation>[] = [
  {
    weight: 6,
    arbitrary: fc.record({
      op: op('semaphore.acquire'),
      ...base,
      permits: few,
      initial: fc.constantFrom(-1, -1, 0, 1, 5),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ op: op('semaphore.end'), ...base, permits: fc.constantFrom(0, 0, 1, 2, 3) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: op('semaphore.add'),
      ...base,
      permits: fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(-5, -1, 1, 2, 3) },
        { weight: 1, arbitrary: huge },
      ),
      initial: fc.constantFrom(-1, 0, 5),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ op: op('semaphore.drain'), ...base, initial: fc.constantFrom(0, 0, 5) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: op('semaphore.set'),
      ...base,
      permits: fc.integer({ min: 0, max: 5 }),
      ttlMs,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: op('semaphore.inspect'), name }) },
]

const latchActs: fc.WeightedArbitrary<Operation>[] = [
  {
    weight: 3,
    arbitrary: fc.record({ op: op('latch.set'), ...base, count: fc.integer({ min: 0, max: 3 }) }),
  },
  { weight: 6, arbitrary: fc.record({ op: op('latch.countDown'), ...base }) },
  { weight: 2, arbitrary: fc.record({ op: op('latch.cancel'), ...base }) },
  { weight: 1, arbitrary: fc.record({ op: op('latch.delete'), ...base }) },
  { weight: 1, arbitrary: fc.record({ op: op('latch.inspect'), name }) },
]

const surroundings: fc.WeightedArbitrary<Act>[] = [
  {
    weight: 4,
    arbitrary: fc.integer({ min: 1, max: 2 }).map((grains) => ({ op: 'time', ms: grains * GRAIN_MS })),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: op('other.write'),
      name,
      value: fc.constantFrom<Foreign>('list', 'hash', 'string'),
      ttlMs,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constantFrom('other.delete' as const, 'other.persist' as const), name }),
  },
]

function history(acts: readonly fc.WeightedArbitrary<Act>[]): fc.Arbitrary<Act[]> {
  return fc.array(fc.oneof(...acts, ...surroundings), { minLength: 1, maxLength: 30, size: 'max' })
}

/** Histories of semaphores. */
export const semaphoreHistories = history(semaphoreActs)

/** Histories of latches. */
export const latchHistories = history(latchActs)

/** Histories of one latch that is set, opened and set anew, while count-downs of any round are undone. */
export const roundHistories = fc.array(
  fc.oneof<fc.WeightedArbitrary<Act>[]>(
    {
      weight: 3,
      arbitrary: fc.record({
        op: op('latch.set'),
        ...base,
        name: fc.constant(NAMES[0]),
        request: fc.constantFrom('s:1', 's:2', 's:3', 's:4', 's:5'),
        count: fc.integer({ min: 1, max: 3 }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constantFrom('latch.countDown' as const, 'latch.cancel' as const),
        ...base,
        name: fc.constant(NAMES[0]),
        request: fc.constantFrom('c:6', 'c:7', 'c:8'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: op('latch.delete'),
        ...base,
        name: fc.constant(NAMES[0]),
        request: fc.constantFrom('d:9', 'd:10'),
      }),
    },
    {
      // A peer that sets a count leaves no trace of a round.
      weight: 1,
      arbitrary: fc.record({
        op: op('semaphore.add'),
        ...base,
        name: fc.constant(NAMES[0]),
        request: fc.constantFrom('a:11', 'a:12'),
        permits: fc.constantFrom(1, 3),
        initial: fc.constant(0),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: op('other.delete'), name: fc.constant(NAMES[0]) }) },
  ),
  { minLength: 1, maxLength: 30, size: 'max' },
)

/** Histories in which one name is taken for both, by mistake. */
export const bothHistories = history([...semaphoreActs, ...latchActs])

/** Numbers and the notes of requests beside them. */
export const COUNTS: View = {
  names: LOCKS.names,
  topics: (key) => [
    [{ family: 'semaphore', name: key }, (_, payload) => `redisson_sc:{${key}} ${String(payload)}`],
    [
      { family: 'latch', name: key },
      (_, payload) => `redisson_countdownlatch__channel__{${key}} ${String(payload)}`,
    ],
  ],
  entries: (key, { value, expiresAtMs, requests, round }, nowMs) => {
    const notes: [string, Entry][] = [...(requests ?? [])].map(([id, { note, endMs }]) => [
      `holdfast_request:{${key}}:${id}`,
      { type: 'string', value: note, ttlMs: endMs - nowMs },
    ])
    if (round !== undefined) notes.push([`holdfast_request:{${key}}:round`, writtenRound(round, nowMs)])
    if (value === undefined) return notes
    const ttl = expiresAtMs === Infinity ? -1 : expiresAtMs - nowMs
    return [...notes, [key, { ...written(value), ttlMs: ttl }] as const]
  },
}

function writtenRound({ id, undone, endMs }: Round, nowMs: number): Entry {
  const value = { ...(id === undefined ? {} : { id }), ...(undone === 0 ? {} : { undone: String(undone) }) }
  return { type: 'hash', value, ttlMs: endMs - nowMs }
}
