/** Random histories of fair locks: owners that come, leave, die; time; and others who touch what they should not. */
import fc from 'fast-check'
import type { Operation } from '../../src/engine/operations.js'
import { GRAIN_MS } from './history.js'

/** One step of a history. */
export type FairAct =
  | Operation
  | { readonly op: 'time'; readonly ms: number }
  /** The key of the lock goes. */
  | { readonly op: 'other.delete' | 'other.persist' }
  /** Somebody's data stands under the lock's name. */
  | { readonly op: 'other.write'; readonly type: 'list' | 'hash' }
  /** One of the two keys of the queue goes. */
  | { readonly op: 'queue.delete' | 'deadlines.delete' }
  /** An owner is written to one of them. */
  | { readonly op: 'queue.push'; readonly owner: string }
  | { readonly op: 'deadlines.add'; readonly owner: string; readonly atMs: number }

/** The one lock that the histories are about. */
export const FAIR_NAME = 'orders:1'
/** Owners with the wait that each of them uses in all its calls. */
export const FAIR_OWNERS = [1, 2, 3, 4].map((i) => `9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:${i}`)
/** Where the clients' clock begins. */
export const WALL_MS = 1_000_000

const op = <const O extends string>(word: O) => fc.constant(word)
const name = op(FAIR_NAME)
const owner = fc.constantFrom(...FAIR_OWNERS)
const grains = (min: number, max: number) => fc.integer({ min, max }).map((count) => count * GRAIN_MS)
const leaseMs = grains(1, 4)
const orZero = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: leaseMs })
/** Not on a grain: what real time takes of a TTL must not decide who is told. */
const lookMs = fc.constantFrom(5_000, 15_000)

/** Real time may move it a little in both directions. */
const offGrain = grains(100, 112).map((ms) => ms - 2_000)

/** Each owner has a wait of its own. */
function waitOf(who: string): number {
  return (2 + (FAIR_OWNERS.indexOf(who) % 3) * 3) * GRAIN_MS
}

const acquire = fc
  .record({ op: op('fair.acquire'), name, owner, leaseMs, join: fc.boolean(), lookMs })
  .map((act) => ({ ...act, waitMs: waitOf(act.owner) }))

const abandon = fc
  .record({ op: op('fair.abandon'), name, owner, entombMs: orZero, lookMs })
  .map((act) => ({ ...act, waitMs: waitOf(act.owner) }))

const own: fc.WeightedArbitrary<FairAct>[] = [
  { weight: 14, arbitrary: acquire },
  { weight: 4, arbitrary: abandon },
  {
    weight: 5,
    arbitrary: fc.record({ op: op('fair.release'), name, owner, keepMs: orZero, entombMs: orZero }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: op('fair.force'), name, owners: fc.subarray(FAIR_OWNERS, { minLength: 1 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: op('lock.acquire'),
      name,
      owner,
      count: fc.integer({ min: 1, max: 3 }),
      leaseMs,
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: op('lock.leave'), name, owner, count: fc.constant(1) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: op('lock.renew'),
      ttlMs: leaseMs,
      holds: fc.tuple(fc.record({ name, owner })),
    }),
  },
  { weight: 5, arbitrary: fc.record({ op: op('time'), ms: grains(1, 2) }) },
]

const others: fc.WeightedArbitrary<FairAct>[] = [
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('other.delete', 'other.persist') }) },
  { weight: 1, arbitrary: fc.record({ op: op('other.write'), type: fc.constantFrom('list', 'hash') }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('queue.delete', 'deadlines.delete') }) },
  { weight: 1, arbitrary: fc.record({ op: op('queue.push'), owner }) },
  { weight: 1, arbitrary: fc.record({ op: op('deadlines.add'), owner, atMs: offGrain }) },
]

function history(acts: readonly fc.WeightedArbitrary<FairAct>[]): fc.Arbitrary<FairAct[]> {
  return fc.array(fc.oneof(...acts), { minLength: 1, maxLength: 40, size: 'max' })
}

/** Nobody but the lock's own users touches its keys. */
export const fairHistories = history(own)
/** Others do, too. */
export const touchedHistories = history([...own, ...others])
