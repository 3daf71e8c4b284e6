export { ManualClock, type Clock, type Timer } from './clock.js'
export type {
  AcquireAbortedEvent,
  AcquireFailedEvent,
  AcquireGrantedEvent,
  AcquireStartEvent,
  AcquireTimeoutEvent,
  AcquireWaitEvent,
  DiagnosisEvent,
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
  SelfHeldError,
  UnavailableError,
  WaitTimeoutError,
  WrongTypeError,
  type HoldfastErrorCode,
  type LossReason,
  type UnavailableWhy,
} from './errors.js'
export { Holdfast, type CloseOptions, type HoldfastStats } from './holdfast.js'
export type { Lease } from './lease/lease.js'
export type {
  Acquired,
  CountingLock,
  ExclusiveLock,
  NotAcquired,
  TryUsingResult,
  UnderLease,
} from './locks/holder-lock.js'
export type { Lock, LockOptions } from './locks/lock.js'
export type { Mutex } from './locks/mutex.js'
export type { AnyLease, AcquireDefaults, AcquireOptions, HoldfastOptions } from './options.js'
