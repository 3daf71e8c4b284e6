import type { CountingLock } from './holder-lock.js'

/**
 * The re-entrant lock: a hash owner → hold count, on the same key as Redisson's `RLock`. Nested use of the same
 * lock inside `using` or `lease.run` enters it once more.
 */
export type Lock = CountingLock

/** How a lock behaves. */
export interface LockOptions {
  /** False: nested use throws `SelfHeldError` instead of entering (Redisson's `getNonReentrantLock`). @defaultValue true */
  readonly reentrant?: boolean | undefined
}
