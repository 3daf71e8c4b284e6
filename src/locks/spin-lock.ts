import type { BackoffPolicy } from '../lease/backoff.js'
import type { CountingLock } from './holder-lock.js'

/**
 * The re-entrant lock without messages, on the same key as Redisson's spin lock: nothing is published, nobody
 * subscribes, and waiters try again after pauses. Fit for locks that are held for milliseconds, in great number.
 */
export type SpinLock = CountingLock

/** How a spin lock waits. */
export interface SpinLockOptions {
  /** The pauses between attempts. @defaultValue `exponentialBackoff()`: from 1 ms, doubled and a little more, to 128 ms */
  readonly backoff?: BackoffPolicy | undefined
}
