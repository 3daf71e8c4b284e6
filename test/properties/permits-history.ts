/** Random histories of permits: what several owners, other programs and clocks do to one semaphore. */
import fc from 'fast-check'
import type { PermitsOperation } from '../../src/engine/operations.js'

/** Leases and steps of time are multiples of this, so that the time a test takes does not blur what is due. */
export const GRAIN_MS = 10_000

/** The semaphore. */
export const NAME = 'downloads'

/** One step of a history. */
export type PermitAct =
  | PermitsOperation
  /** Time goes by. */
  | { readonly op: 'time'; readonly ms: number }
  /** The client's clock is so far ahead of the server's from now on. */
  | { readonly op: 'skew'; readonly ms: number }
  /** Another program writes a list or a text in the place of the number. */
  | { readonly op: 'other.write'; readonly value: (typeof OTHERS)[number] }
  | { readonly op: 'other.delete'; readonly key: 'count' | 'leases' }

const MOST = '9007199254740991'
/** A list, texts that are no numbers, numbers that are written oddly or cannot be counted exactly, and good ones. */
const OTHERS = ['list', 'somebody', '007', '-0', '9007199254740992', '-3', '2', MOST, `-${MOST}`] as const

const IDS = [
  '00000d0a0a0dff00ff2525255d5b5c00',
  'ff0102030405060708090a0b0c0d0e0f',
  '0000000000000000000000000000000c',
  'd0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0',
  'e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1',
  'f2f2f2f2f2f2f2f2f2f2f2f2f2f2f2f2',
] as const
/** The permits of one acquire each. */
const OWNERS = [IDS[0], IDS[1], `${IDS[2]},${IDS[3]}`, `${IDS[4]},${IDS[5]}`] as const

const op = <const O extends string>(word: O) => fc.constant(word)
const name = fc.constant(NAME)
const owner = fc.constantFrom(...OWNERS)
const id = fc.constantFrom(...IDS)
const leaseMs = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 4 }).map((grains) => grains * GRAIN_MS) },
  { weight: 1, arbitrary: fc.constant(Number.MAX_SAFE_INTEGER) },
)
const total = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined, freq: 2 })
const request = fc.constantFrom('request:1', 'request:2', 'request:3')
const holds = fc.array(fc.record({ name, owner }), { minLength: 1, maxLength: 3 })
const ids = fc.uniqueArray(id, { minLength: 1, maxLength: 4 })
const permits = fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 0, max: 5 }) }, fc.constant(Number(MOST)))

const acts: fc.WeightedArbitrary<PermitAct>[] = [
  { weight: 12, arbitrary: fc.record({ op: op('permits.acquire'), name, owner, total, leaseMs }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: op('permits.release'),
      name,
      owner,
      keepMs: fc.constant(0),
      entombMs: fc.constantFrom(0, 0, 2 * GRAIN_MS),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: op('permits.renew'), ttlMs: leaseMs, holds }) },
  { weight: 3, arbitrary: fc.record({ op: op('permits.give'), name, ids, all: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ op: op('permits.update'), name, id, leaseMs, request }) },
  { weight: 1, arbitrary: fc.record({ op: op('permits.rest'), name, id }) },
  { weight: 3, arbitrary: fc.record({ op: op('permits.count'), name }) },
  { weight: 1, arbitrary: fc.record({ op: op('permits.set'), name, permits, request }) },
  { weight: 2, arbitrary: fc.record({ op: op('permits.try-set'), name, permits, request }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: op('permits.add'),
      name,
      permits: fc.constantFrom(-2, -1, 1, 3, Number(MOST), -Number(MOST)),
      total,
      request,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.integer({ min: 1, max: 2 }).map((grains) => ({ op: 'time', ms: grains * GRAIN_MS })),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: op('skew'), ms: fc.constantFrom(-2, 0, 2).map((g) => g * GRAIN_MS) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: op('other.write'),
      value: fc.constantFrom(...OTHERS),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: op('other.delete'),
      key: fc.constantFrom('count' as const, 'leases' as const),
    }),
  },
]

/** Histories of a semaphore with leases. */
export const permitHistories: fc.Arbitrary<PermitAct[]> = fc.array(fc.oneof(...acts), {
  minLength: 1,
  maxLength: 30,
  size: 'max',
})
