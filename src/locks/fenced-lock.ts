import { HeldFencedLease, type FencedLease } from '../lease/fenced-lease.js'
import type { HeldLease } from '../lease/lease.js'
import { highestToken } from '../lease/look.js'
import type { Runtime } from '../lease/runtime.js'
import type { Target } from '../lease/target.js'
import { LeaseLock, type CountingLock } from './holder-lock.js'

/**
 * The re-entrant lock with fencing tokens, on the same keys as Redisson's `RFencedLock`. A lock alone cannot keep a
 * holder from writing after its time; a store that refuses lower tokens can, see `RedisGuard` and `SqlGuard`.
 */
export interface FencedLock extends CountingLock<FencedLease> {
  /** The highest token that was given so far, to whomever; 0: none yet. @throws UnavailableError, WrongTypeError, ClosedError */
  token(): Promise<number>
}

/** The object behind the interface. */
export class TokenLock extends LeaseLock<FencedLease> implements FencedLock {
  readonly #runtime: Runtime
  readonly #target: Target

  constructor(runtime: Runtime, target: Target) {
    super(runtime, { target, reentrant: true, present: fenced })
    this.#runtime = runtime
    this.#target = target
  }

  token(): Promise<number> {
    return highestToken(this.#runtime, this.#target)
  }
}

function fenced(lease: HeldLease): FencedLease {
  if (lease instanceof HeldFencedLease) return lease
  throw new TypeError(`The lease of lock '${lease.lock}' has no token`)
}
