import type { CountingLock } from './holder-lock.js'

/**
 * The fair lock: on the same keys as Redisson's `RFairLock`. Whoever waits stands in a queue in Redis and gets the lock in
 * the order of coming, across all processes. A waiter that gives up leaves the queue; the place of one that died is kept for
 * its own wait (`waitTime`, or else `fairLockWaitTimeout`), and then given up by whoever looks next.
 */
export type FairLock = CountingLock

/** How a fair lock behaves. */
export interface FairLockOptions {
  /** False: nested use throws `SelfHeldError` instead of entering (Redisson's `getNonReentrantFairLock`). @defaultValue true */
  readonly reentrant?: boolean | undefined
}
