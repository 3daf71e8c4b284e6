import { channel, type Channel } from 'node:diagnostics_channel'
import type { LossReason } from './errors.js'

/** What every event tells. */
export interface NamedEvent {
  /** The name of the lock, as the caller gave it. */
  readonly lock: string
}

/** What events about one holder tell. */
export interface LockEvent extends NamedEvent {
  /** The owner in Redis; of a semaphore, the request under which the permits were taken; of a latch, empty. */
  readonly owner: string
}

/** What events about the end of a call tell. */
export interface WaitedEvent extends NamedEvent {
  /** From the call to this event, in milliseconds. */
  readonly waited: number
}

/** `holdfast:acquire:start`: a call begins. */
export interface AcquireStartEvent extends NamedEvent {
  /** What the call is ready to wait, in milliseconds; `Infinity`: until it is aborted. */
  readonly waitTime: number
}

/** `holdfast:acquire:wait`: the lock is busy and the call begins to wait. */
export interface AcquireWaitEvent extends NamedEvent {
  /** The holder that was seen; undefined for one who joined a queue in its own process. */
  readonly holder: string | undefined
  /** The holder's TTL in milliseconds; -1: its key has none. */
  readonly holderTtl: number | undefined
}

/** `holdfast:acquire:granted`. */
export interface AcquireGrantedEvent extends LockEvent, WaitedEvent {
  /** How often the owner has entered now; of a semaphore, how many permits were taken; of a latch, 0. */
  readonly holdCount: number
}

/** `holdfast:acquire:timeout`: `waitTime` is over. */
export type AcquireTimeoutEvent = WaitedEvent

/** `holdfast:acquire:aborted`: the caller's signal, or closing, ended the waiting. */
export interface AcquireAbortedEvent extends WaitedEvent {
  /** What the call rejects with. */
  readonly reason: unknown
}

/** `holdfast:acquire:failed`: the engine did not serve, or other data is under the name. */
export interface AcquireFailedEvent extends WaitedEvent {
  /** What the call rejects with. */
  readonly error: unknown
}

/** `holdfast:renew:ok`. */
export interface RenewOkEvent extends LockEvent {
  /** How much of the lease was left when the renewal was confirmed, in milliseconds: the early warning. */
  readonly slack: number
}

/** `holdfast:renew:failed`: a renewal got no answer; it is tried again until the lease ends. */
export interface RenewFailedEvent extends LockEvent {
  /** How much of the lease is left, in milliseconds. */
  readonly slack: number
  /** Why. */
  readonly error: unknown
}

/** `holdfast:lost`: a lease ended without `release()`. */
export interface LostEvent extends LockEvent {
  /** Why. */
  readonly reason: LossReason
}

/** `holdfast:release`: a release is over. */
export interface ReleaseEvent extends LockEvent {
  /** What `release()` tells; of a semaphore's handle, what that tells. */
  readonly outcome: ReleaseOutcome | GiveBackOutcome
  /** From the grant to the end of the release, in milliseconds. */
  readonly held: number
}

/** What `release()` tells. */
export type ReleaseOutcome =
  /** The lock was ours and is free now (or will be when `minHold` is over). */
  | 'released'
  /** This hold is over; other holds of the same owner keep the lock. */
  | 'still-held'
  /** The lease had run out before; somebody else may have the lock by now. */
  | 'expired'
  /** The lock had been removed, or somebody else has it. Nothing of theirs was touched. */
  | 'stolen'
  /** It cannot be told: no answer in time, or more than one copy of the release may have arrived. */
  | 'unknown'

/** What giving bare permits back comes to. */
export type GiveBackOutcome =
  /** They are free again. */
  | 'released'
  /** The semaphore is not there any more: it was removed, its TTL is over, or other data is in its place. */
  | 'gone'
  /** No answer in time; it goes on in the background. */
  | 'unknown'

/** `holdfast:wakeup`: a waiter is about to try again. */
export interface WakeupEvent extends NamedEvent {
  /** `message` from a release; `expiry` the holder's TTL is over; `poll` by time; `resync` messages may have been missed. */
  readonly cause: 'message' | 'poll' | 'expiry' | 'resync'
}

/** `holdfast:diagnosis`: something that works, but not as it should. */
export interface DiagnosisEvent extends NamedEvent {
  /**
   * `no-ttl` a holder's key has no TTL; `unannounced` the message of a release was refused;
   * `subscribe-failed` waiting by polling; `self-wait` a call waits for a lock that its own async tree
   * holds; `renewal-late` a lease was renewed with less than half of its time left; `compensating` a call
   * of unknown outcome is undone in the background; `members` those of a lock over several servers are not
   * independent, or their number is one that does not pay; `watch-callback` a callback of a watch failed;
   * `watch-trouble` a watch cannot look; `watch-polling` it looks from time to time, as nobody tells it of writes;
   * `watch-missed` it found what it had not been told; `watch-sampled` a value is too large to be compared whole.
   */
  readonly kind:
    | 'no-ttl'
    | 'unannounced'
    | 'subscribe-failed'
    | 'self-wait'
    | 'renewal-late'
    | 'compensating'
    | 'members'
    | 'watch-callback'
    | 'watch-trouble'
    | 'watch-polling'
    | 'watch-missed'
    | 'watch-sampled'
  /** The same in words. */
  readonly message: string
}

/** The payload of each diagnostics channel. */
export interface HoldfastEvents {
  /** A call begins. */
  'holdfast:acquire:start': AcquireStartEvent
  /** It begins to wait. */
  'holdfast:acquire:wait': AcquireWaitEvent
  /** It has the lock. */
  'holdfast:acquire:granted': AcquireGrantedEvent
  /** Its `waitTime` is over. */
  'holdfast:acquire:timeout': AcquireTimeoutEvent
  /** It was aborted. */
  'holdfast:acquire:aborted': AcquireAbortedEvent
  /** It failed. */
  'holdfast:acquire:failed': AcquireFailedEvent
  /** A lease was renewed. */
  'holdfast:renew:ok': RenewOkEvent
  /** A renewal got no answer. */
  'holdfast:renew:failed': RenewFailedEvent
  /** A lease was lost. */
  'holdfast:lost': LostEvent
  /** A release is over. */
  'holdfast:release': ReleaseEvent
  /** A waiter tries again. */
  'holdfast:wakeup': WakeupEvent
  /** Something works, but not as it should. */
  'holdfast:diagnosis': DiagnosisEvent
}

/** The channels by short name. Publish only behind `hasSubscribers`, so that nobody pays for events that nobody hears. */
export const events: Readonly<Record<EventName, Channel>> = {
  start: channel('holdfast:acquire:start'),
  wait: channel('holdfast:acquire:wait'),
  granted: channel('holdfast:acquire:granted'),
  timeout: channel('holdfast:acquire:timeout'),
  aborted: channel('holdfast:acquire:aborted'),
  failed: channel('holdfast:acquire:failed'),
  renewed: channel('holdfast:renew:ok'),
  renewFailed: channel('holdfast:renew:failed'),
  lost: channel('holdfast:lost'),
  release: channel('holdfast:release'),
  wakeup: channel('holdfast:wakeup'),
  diagnosis: channel('holdfast:diagnosis'),
}

type EventName =
  | 'start'
  | 'wait'
  | 'granted'
  | 'timeout'
  | 'aborted'
  | 'failed'
  | 'renewed'
  | 'renewFailed'
  | 'lost'
  | 'release'
  | 'wakeup'
  | 'diagnosis'

/** Publishes a diagnosis, if anybody listens. */
export function diagnose(lock: string, kind: DiagnosisEvent['kind'], message: string): void {
  if (events.diagnosis.hasSubscribers)
    events.diagnosis.publish({ lock, kind, message } satisfies DiagnosisEvent)
}
