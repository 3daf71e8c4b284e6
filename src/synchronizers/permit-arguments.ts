import { describe, refuseUnknown, wholeNumber } from '../option-checks.js'
import { type AcquireOptions } from '../options.js'
import type { PermitOptions, UnderPermitLease } from './permit-semaphore.js'

/** So many permits can be taken or given back in one call: each is an entry of its own in Redis. */
const MOST_PERMITS = 1_000

const PERMIT_KEYS: ReadonlySet<string> = new Set<keyof PermitOptions>([
  'waitTime',
  'leaseTime',
  'signal',
  'maxHold',
  'pollInterval',
])

/** What a call takes. */
export interface Wanted {
  readonly permits: number
  readonly options: AcquireOptions | undefined
}

/** The arguments of an acquire: a number, options, both or none. @throws TypeError or RangeError */
export function wantedOf(first: unknown, second: unknown): Wanted {
  const optionsFirst = typeof first === 'object' && first !== null && second === undefined
  const options = optionsFirst ? first : second
  if (options !== undefined) refuseUnknown(options as object, PERMIT_KEYS, 'permit options')
  const permits = optionsFirst || first === undefined ? 1 : permitsToTake(first)
  return { permits, options: options as AcquireOptions | undefined }
}

/** The arguments of `using`: those of an acquire before the callback. @throws TypeError or RangeError */
export function workOf<T>(given: readonly unknown[]): Wanted & { readonly callback: UnderPermitLease<T> } {
  const at = given.findIndex((argument) => typeof argument === 'function')
  if (at < 0 || at < given.length - 1)
    throw new TypeError(
      `The callback must be the last argument, and a function, but is ${describe(given.at(-1))}`,
    )
  if (at > 2) throw new TypeError('using takes a number of permits, options and a callback')
  return {
    ...wantedOf(given[0 < at ? 0 : -1], given[1 < at ? 1 : -1]),
    callback: given[at] as UnderPermitLease<T>,
  }
}

function permitsToTake(value: unknown): number {
  const permits = wholeNumber(value, 'permits')
  if (permits <= MOST_PERMITS) return permits
  throw new RangeError(
    `permits must not be more than ${String(MOST_PERMITS)} in one call, but is ${String(permits)}`,
  )
}

/** The id of a permit. @throws TypeError or RangeError */
export function permitId(value: unknown): string {
  if (typeof value !== 'string')
    throw new TypeError(`A permit's id must be a string, but is ${describe(value)}`)
  if (/^[0-9a-f]{32}$/i.test(value)) return value.toLowerCase()
  throw new RangeError(`A permit's id must be 32 hex characters, but is ${JSON.stringify(value)}`)
}

/** The ids of permits. @throws TypeError or RangeError; also for an empty list and for an id that is there twice */
export function permitIds(value: unknown): readonly string[] {
  if (!Array.isArray(value))
    throw new TypeError(`The ids of permits must be an array, but are ${describe(value)}`)
  if (value.length === 0) throw new RangeError('The ids of permits must not be empty')
  if (value.length > MOST_PERMITS)
    throw new RangeError(
      `The ids of permits must not be more than ${String(MOST_PERMITS)}, but are ${String(value.length)}`,
    )
  // Not `map`, which leaves out the holes of a sparse list.
  const ids = Array.from(value as readonly unknown[], permitId)
  const twice = ids.find((id, i) => ids.indexOf(id) !== i)
  if (twice !== undefined) throw new RangeError(`The ids of permits must differ, but ${twice} is there twice`)
  return ids
}
