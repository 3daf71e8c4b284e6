/**
 * The fair lock: the re-entrant lock with a queue of its waiters beside it. Entering once more, leaving, renewing and
 * looking are the lock's. Its deadlines are wall-clock time, which the engine adds.
 */
import type { AcquireReply, Force, ForceReply, Release, ReleaseReply } from './common.js'

/** Takes a fair lock for a new owner, or puts it into the queue, or repeats either. */
export interface FairAcquire {
  readonly op: 'fair.acquire'
  readonly name: string
  readonly owner: string
  readonly leaseMs: number
  /** How long the place in the queue is kept beyond the time at which the owner can come to it; the same for all attempts of an owner. */
  readonly waitMs: number
  /** Stand in the queue if the lock cannot be had at once. */
  readonly join: boolean
  /** Waiters look by themselves after this time at the latest: a new head that should look earlier is told. */
  readonly lookMs: number
}

/** Ends an owner that was handed to nobody, with what it may have: its place in the queue, or the lock itself. */
export interface FairAbandon {
  readonly op: 'fair.abandon'
  readonly name: string
  readonly owner: string
  /** As in its acquires. */
  readonly waitMs: number
  readonly entombMs: number
  readonly lookMs: number
}

/** The owner stands in the queue. */
export interface QueuedReply {
  readonly outcome: 'queued'
  /** When the owner might come to it, as Redisson tells: after the last one before it, or after the holder. */
  readonly untilMs: number
  /** Of the lock; -1: it has none, -2: it is free, and the head has not come for it yet. */
  readonly ttlMs: number
  /** Empty: the lock is free. */
  readonly holder: string
  /** The first of the queue. */
  readonly head: string
  /** How long the head's place is kept. */
  readonly headMs: number
}

/** What a fair acquire answers. A lock that is kept for the head of its queue is busy with an empty holder and a TTL of -2. */
export type FairAcquireReply = AcquireReply | QueuedReply

/** What abandoning an owner answers. */
export type FairAbandonReply =
  | { readonly outcome: 'left' }
  /** Left, but the message to the next one was refused; it finds out by polling. */
  | { readonly outcome: 'unannounced' }
  | { readonly outcome: 'none' }

/** The operations of the fair lock that are not the lock's. */
export type FairOperation = FairAcquire | FairAbandon | Release<'fair.release'> | Force<'fair.force'>

/** Their replies. */
export interface FairReplies {
  'fair.acquire': FairAcquireReply
  'fair.abandon': FairAbandonReply
  'fair.release': ReleaseReply
  'fair.force': ForceReply
}
