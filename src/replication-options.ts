import { describe, duration, LONGEST, refuseUnknown, wholeNumber } from './option-checks.js'

/** What a grant waits for where the server has replicas. */
export interface ReplicationOptions {
  /**
   * How many replicas must have a grant before the caller gets it: a number, at least one if there are any (`'any'`),
   * as many as make a majority together with the primary, all that are connected, or 0 for none. With a number, nothing
   * is granted while fewer are there. @defaultValue `'any'`
   */
  readonly acks?: number | 'any' | 'majority' | 'all' | undefined
  /** How long the replicas are waited for, in milliseconds; then the grant is undone and tried again. 1…2^53−1, and less than `commandTimeout`. @defaultValue 1 000, or a third of a `commandTimeout` below 3 000 */
  readonly timeout?: number | undefined
}

/** The same, checked. */
export interface ResolvedReplication {
  readonly acks: number | 'any' | 'majority' | 'all'
  readonly timeoutMs: number
  readonly explicit: boolean
}

const KEYS: ReadonlySet<string> = new Set<keyof ReplicationOptions>(['acks', 'timeout'])
const WORDS: ReadonlySet<unknown> = new Set(['any', 'majority', 'all'])

/** Checks the option and fills in the defaults. @throws TypeError or RangeError naming the option, its bound and the value */
export function resolveReplication(
  given: ReplicationOptions | undefined,
  commandTimeout: number,
): ResolvedReplication {
  const options = given === undefined ? {} : given
  refuseUnknown(options, KEYS, 'replication')
  const timeoutMs =
    duration(options.timeout, 'replication.timeout', { min: 1, max: LONGEST }) ??
    Math.max(1, Math.min(1_000, Math.floor(commandTimeout / 3)))
  if (options.timeout !== undefined && timeoutMs >= commandTimeout)
    throw new RangeError(
      `replication.timeout must be less than commandTimeout (${String(commandTimeout)}), but is ${String(timeoutMs)}`,
    )
  return { acks: acksOf(options.acks), timeoutMs, explicit: options.acks !== undefined }
}

function acksOf(acks: unknown): ResolvedReplication['acks'] {
  if (acks === undefined) return 'any'
  if (WORDS.has(acks)) return acks as 'any' | 'majority' | 'all'
  if (typeof acks === 'number') return wholeNumber(acks, 'replication.acks', 0)
  throw new TypeError(
    `replication.acks must be a number, 'any', 'majority' or 'all', but is ${describe(acks)}`,
  )
}
