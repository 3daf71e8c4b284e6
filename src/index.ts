export { ManualClock, type Clock, type Timer } from './clock.js'
export type {
  AcquireAbortedEvent,
  AcquireFailedEvent,
  AcquireGrantedEvent,
  AcquireStartEvent,
  AcquireTimeoutEvent,
  AcquireWaitEvent,
  DiagnosisEvent,
  GiveBackOutcome,
  HoldfastEvents,
  LockEvent,
  LostEvent,
  NamedEvent,
  ReleaseEvent,
  ReleaseOutcome,
  RenewFailedEvent,
  RenewOkEvent,
  WaitedEvent,
  WakeupEvent,
} from './diagnostics.js'
export {
  ClosedError,
  HoldfastError,
  LeaseLostError,
  NotHeldError,
  NotInitialisedError,
  QuorumError,
  ReplicationError,
  SelfHeldError,
  UpgradeError,
  StaleTokenError,
  UnavailableError,
  WaitTimeoutError,
  WrongTypeError,
  type HoldfastErrorCode,
  type LossReason,
  type MemberResult,
  type UnavailableWhy,
} from './errors.js'
export { RedisGuard, type GuardedValue, type RedisGuardOptions } from './guards/redis-guard.js'
export { SqlGuard, type SqlGuardOptions, type SqlQuery, type SqlResult } from './guards/sql-guard.js'
export { TokenFloor } from './guards/token-floor.js'
export { Holdfast, type CloseOptions, type HoldfastStats } from './holdfast.js'
export {
  constantBackoff,
  exponentialBackoff,
  type BackoffPolicy,
  type BackoffSequence,
  type ExponentialBackoffOptions,
} from './lease/backoff.js'
export type { FencedLease } from './lease/fenced-lease.js'
export type { Lease } from './lease/lease.js'
export type { MultiLease } from './lease/multi-lease.js'
export type { FairLock, FairLockOptions } from './locks/fair-lock.js'
export type { FencedLock } from './locks/fenced-lock.js'
export type {
  Acquired,
  CountingLock,
  ExclusiveLock,
  NotAcquired,
  TryUsingResult,
  UnderLease,
} from './locks/holder-lock.js'
export type { Lock, LockOptions } from './locks/lock.js'
export type { MultiLock } from './locks/multi-lock.js'
export type { Mutex } from './locks/mutex.js'
export type { RedLock, RedLockOptions } from './locks/red-lock.js'
export type { ReadWriteLock } from './locks/read-write-lock.js'
export type { SpinLock, SpinLockOptions } from './locks/spin-lock.js'
export type { PermitLease } from './lease/permit-lease.js'
export type { CountDownLatch } from './synchronizers/count-down-latch.js'
export type { SemaphoreGrant } from './synchronizers/held-permits.js'
export type {
  PermitOptions,
  PermitSemaphore,
  PermitSemaphoreOptions,
  UnderPermitLease,
} from './synchronizers/permit-semaphore.js'
export type { Semaphore, SemaphoreOptions, TrySetOptions, UnderPermits } from './synchronizers/semaphore.js'
export type { ReplicationOptions } from './replication-options.js'
export type { AnyLease, AcquireDefaults, AcquireOptions, HoldfastOptions, WaitOptions } from './options.js'
export type { Change, WatchCallback, WatchErrorCallback, WatchEvent } from './watch/change.js'
export type { WatchKeys, WatchOptions, WatchPattern } from './watch/watch-options.js'
export type { Watch, WatchMode } from './watch/watch.js'
