import type { CountingLock } from './holder-lock.js'

/**
 * Readers together, writers alone, on the same keys as Redisson's `RReadWriteLock`. Both sides re-enter inside
 * `using` and `lease.run`. A read inside the caller's own write is let in beside it, and goes on when the write is
 * released first (downgrade); a write inside a read throws `UpgradeError` at once, unless a write is around both.
 */
export interface ReadWriteLock {
  /** The name, as it was given. */
  readonly name: string
  /**
   * For those who only look: many hold it at once. A lease of its own `leaseTime` is confirmed by the server every
   * third of the watchdog time-out all the same, since the renewal of another reader may cut the time of all.
   */
  readonly read: CountingLock
  /** For those who change something: one at a time, and no reader. */
  readonly write: CountingLock
}
