/** The codes of all errors that Holdfast itself raises. Test `code` rather than the class: two copies of a package break `instanceof`. */
export type HoldfastErrorCode =
  | 'HOLDFAST_WAIT_TIMEOUT'
  | 'HOLDFAST_UNAVAILABLE'
  | 'HOLDFAST_LEASE_LOST'
  | 'HOLDFAST_NOT_HELD'
  | 'HOLDFAST_NOT_INITIALISED'
  | 'HOLDFAST_SELF_HELD'
  | 'HOLDFAST_UPGRADE'
  | 'HOLDFAST_WRONG_TYPE'
  | 'HOLDFAST_STALE_TOKEN'
  | 'HOLDFAST_QUORUM'
  | 'HOLDFAST_REPLICATION'
  | 'HOLDFAST_CLOSED'

/** Base of all errors that Holdfast raises. Bad arguments are plain `TypeError` or `RangeError` instead. */
export abstract class HoldfastError extends Error {
  /** Says which kind of error this is. */
  abstract readonly code: HoldfastErrorCode
  /** The name of the lock, as the caller gave it; undefined where no single lock is meant. */
  readonly lock: string | undefined

  /** Made by Holdfast only. */
  constructor(message: string, lock: string | undefined, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.lock = lock
  }

  /** The name of the class. */
  override get name(): string {
    return this.constructor.name
  }
}

/** The lock was still held by somebody else, or what was waited for had not come, when `waitTime` was over. */
export class WaitTimeoutError extends HoldfastError {
  readonly code = 'HOLDFAST_WAIT_TIMEOUT'
  /** The owner that was seen last, if one was seen. */
  readonly holder: string | undefined
  /** The TTL of that holder in milliseconds when it was seen; -1: the key had none. */
  readonly holderTtl: number | undefined

  /** Made by Holdfast only. */
  constructor(
    lock: string,
    waitTime: number,
    seen: { readonly holder: string; readonly ttlMs: number } | string | undefined,
  ) {
    const holder = typeof seen === 'object' ? seen : undefined
    const who = holder === undefined ? '' : ` by ${holder.holder} (TTL ${String(holder.ttlMs)} ms)`
    const what = typeof seen === 'string' ? seen : `Lock '${lock}' is still held${who}`
    super(`${what} after waiting ${String(waitTime)} ms`, lock)
    this.holder = holder?.holder
    this.holderTtl = holder?.ttlMs
  }
}

/** What is known about a command without a reply. */
export interface UnavailableWhy {
  /** Whether it may have been executed. */
  readonly outcome: 'unknown' | 'not-applied'
  /** The client's or server's own error. */
  readonly cause?: unknown
}

/** Holdfast could not talk to the engine, or the engine could not serve. The client's or server's own error is the `cause`. */
export class UnavailableError extends HoldfastError {
  readonly code = 'HOLDFAST_UNAVAILABLE'
  /** `not-applied`: surely nothing was changed. `unknown`: the command may have been executed, or may be later; Holdfast undoes it in the background. */
  readonly outcome: 'unknown' | 'not-applied'

  /** Made by Holdfast only. */
  constructor(message: string, lock: string | undefined, why: UnavailableWhy) {
    super(message, lock, why.cause)
    this.outcome = why.outcome
  }
}

/**
 * Why a lease ended without `release()`:
 * `expired` its time ran out; `stolen` the server says that it is somebody else's or was removed;
 * `max-hold` it was held for `maxHold`; `closed` the `Holdfast` was closed under it;
 * `unknown` it cannot be told.
 */
export type LossReason = 'expired' | 'stolen' | 'max-hold' | 'closed' | 'unknown'

/** The lease is lost: somebody else may hold the lock by now. Also the reason of `lease.signal`. */
export class LeaseLostError extends HoldfastError {
  readonly code = 'HOLDFAST_LEASE_LOST'
  /** Why. */
  readonly reason: LossReason
  /** What the callback of `using` returned, if it ended normally although the lease was lost. */
  readonly value: unknown

  /** Made by Holdfast only. */
  constructor(lock: string, reason: LossReason, value?: unknown) {
    super(`The lease of '${lock}' is lost: ${LOSS_TEXT[reason]}`, lock)
    this.reason = reason
    this.value = value
  }
}

const LOSS_TEXT: Readonly<Record<LossReason, string>> = {
  expired: 'its time ran out before it was renewed or released',
  stolen: 'the key was removed or belongs to somebody else',
  'max-hold': 'it was held for the whole of maxHold',
  closed: 'the Holdfast was closed',
  unknown: 'it cannot be told whether it is still held',
}

/** The lease was released before: there is nothing to assert, extend or enter. Or a permit is not out that was to be given back. */
export class NotHeldError extends HoldfastError {
  readonly code = 'HOLDFAST_NOT_HELD'

  /** Made by Holdfast only. */
  constructor(lock: string, what = `The lease of '${lock}' was released`) {
    super(what, lock)
  }
}

/** Nobody has set how many permits the semaphore has, so waiting for one would never end. Nothing was taken. */
export class NotInitialisedError extends HoldfastError {
  readonly code = 'HOLDFAST_NOT_INITIALISED'

  /** Made by Holdfast only. */
  constructor(lock: string) {
    super(
      `Semaphore '${lock}' has no number of permits: set it with trySet(), or give the option permits`,
      lock,
    )
  }
}

/** The caller's own scope holds the lock, and waiting for it cannot end. */
export class SelfHeldError extends HoldfastError {
  readonly code = 'HOLDFAST_SELF_HELD'

  /** Made by Holdfast only. */
  constructor(lock: string, why: string) {
    super(`Lock '${lock}' is held by the caller's own scope: ${why}`, lock)
  }
}

/** What one member of a lock over several servers answered. */
export interface MemberResult {
  /** Its place in the list that was given. */
  readonly member: number
  /** `granted`: it agreed; `busy`: somebody else holds the lock there; `error`: it could not be asked, or did not answer in time. */
  readonly outcome: 'granted' | 'busy' | 'error'
  /** Who holds the lock there, when it is busy. */
  readonly holder?: string | undefined
  /** Why it did not answer. */
  readonly error?: unknown
}

/** Too few members of a lock over several servers could be reached. What was taken is given back, or lost. */
export class QuorumError extends HoldfastError {
  readonly code = 'HOLDFAST_QUORUM'
  /** What each member answered; `member` is its place in the list that was given. */
  readonly members: readonly MemberResult[]

  /** Made by Holdfast only. */
  constructor(lock: string, quorum: number, members: readonly MemberResult[]) {
    const failed = members.filter((result) => result.outcome === 'error')
    const which = failed.map(({ member, error }) => `member ${String(member)}: ${reasonOf(error)}`)
    super(
      `Lock '${lock}' needs ${String(quorum)} of its members, but too few answered (${which.join('; ')})`,
      lock,
      failed[0]?.error,
    )
    this.members = members
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The server granted, but too few of its replicas confirmed that they have it. What was taken is given back. */
export class ReplicationError extends HoldfastError {
  readonly code = 'HOLDFAST_REPLICATION'
  /** How many replicas confirmed the last attempt in time. */
  readonly acks: number
  /** How many had to. */
  readonly wanted: number

  /** Made by Holdfast only. */
  constructor(
    lock: string,
    { acks, wanted }: { readonly acks: number; readonly wanted: number },
    cause?: unknown,
  ) {
    const counts = `${String(acks)} of the ${String(wanted)} replicas that have to`
    super(`'${lock}' was granted, but only ${counts} confirmed it in time; it was given back`, lock, cause)
    this.acks = acks
    this.wanted = wanted
  }
}

/** The caller's own scope reads, and asks to write: it would wait for itself, and two of its kind for each other. Nothing was sent. */
export class UpgradeError extends HoldfastError {
  readonly code = 'HOLDFAST_UPGRADE'

  /** Made by Holdfast only. */
  constructor(lock: string) {
    super(
      `Lock '${lock}' is held for reading by the caller's own scope, and cannot be taken for writing inside of it: ` +
        'take the write lock first, or end the read',
      lock,
    )
  }
}

/** Another kind of value, or somebody's data, is stored under the lock's name. It was not touched. */
export class WrongTypeError extends HoldfastError {
  readonly code = 'HOLDFAST_WRONG_TYPE'
  /** The Redis key. */
  readonly key: string

  /** Made by Holdfast only. */
  constructor(lock: string, key: string, expected: string) {
    super(`Key '${key}' does not hold ${expected}, but other data; it was not touched`, lock)
    this.key = key
  }
}

/** A guarded store has seen a higher fencing token: the caller's lease is over, whatever it believes. Nothing was changed. */
export class StaleTokenError extends HoldfastError {
  readonly code = 'HOLDFAST_STALE_TOKEN'
  /** What was to be read or written. */
  readonly resource: string
  /** The token that was refused. */
  readonly token: number
  /** The highest token that the store has seen. */
  readonly floor: number

  /** Made by Holdfast only. */
  constructor(resource: string, token: number, floor: number) {
    super(`The token ${String(token)} is stale: '${resource}' has seen ${String(floor)}`, undefined)
    this.resource = resource
    this.token = token
    this.floor = floor
  }
}

/** The `Holdfast` was closed before or during the call. */
export class ClosedError extends HoldfastError {
  readonly code = 'HOLDFAST_CLOSED'

  /** Made by Holdfast only. */
  constructor(lock?: string) {
    super('This Holdfast is closed', lock)
  }
}
