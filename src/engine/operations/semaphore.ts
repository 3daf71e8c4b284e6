/**
 * The semaphore, a bare number of free permits. It knows no owners, so every operation that changes it names a
 * request, and what became of the request is noted beside the number: a repeated copy answers the same.
 */
import type { ForeignReply } from './common.js'

/** What the operations that change a number have in common. */
export interface Requested<Op extends string> {
  readonly op: Op
  readonly name: string
  /** Never used for anything else. */
  readonly request: string
  /** How long the note of the request is kept. */
  readonly requestMs: number
}

/** Takes permits. */
export interface SemaphoreAcquire extends Requested<'semaphore.acquire'> {
  readonly permits: number
  /** Where the number is missing, it begins with this; -1: it is not begun. */
  readonly initial: number
}

/** Ends an acquire or another change: gives back what it took, once, and refuses its late copies. */
export interface SemaphoreEnd extends Requested<'semaphore.end'> {
  /** How many permits it surely took; 0: as many as its note says, none if there is no note. */
  readonly permits: number
}

/** Adds permits, or takes some off whether they are there or not. */
export interface SemaphoreAdd extends Requested<'semaphore.add'> {
  readonly permits: number
  /** Where the number is missing, it begins with this; -1: it stays missing. */
  readonly initial: number
}

/** Takes all permits that are free. */
export interface SemaphoreDrain extends Requested<'semaphore.drain'> {
  /** Where the number is missing, it begins with this; 0: it stays missing. */
  readonly initial: number
}

/** Sets the number where it is missing. */
export interface SemaphoreSet extends Requested<'semaphore.set'> {
  readonly permits: number
  /** 0: none. */
  readonly ttlMs: number
}

/** Reads the number. */
export interface SemaphoreInspect {
  readonly op: 'semaphore.inspect'
  readonly name: string
}

/** The operations of the semaphore. */
export type SemaphoreOperation =
  SemaphoreAcquire | SemaphoreEnd | SemaphoreAdd | SemaphoreDrain | SemaphoreSet | SemaphoreInspect

/** This request was ended before. */
export interface DeadReply {
  readonly outcome: 'dead'
}

/** What an acquire of permits answers. */
export type SemaphoreAcquireReply =
  | { readonly outcome: 'granted'; readonly left: number }
  | { readonly outcome: 'busy'; readonly available: number }
  /** The number is missing, and the caller knows no initial one. */
  | { readonly outcome: 'uninitialised' }
  | DeadReply
  | ForeignReply

/** What ending a request answers. */
export type SemaphoreEndReply =
  | { readonly outcome: 'released' }
  /** Given back, but the message to the waiters was refused; they find out by polling. */
  | { readonly outcome: 'unannounced' }
  /** The number is missing, or not one that can take the permits back. */
  | { readonly outcome: 'gone' }
  /** It had taken nothing, and will not. */
  | { readonly outcome: 'marked' }
  | ForeignReply

/** What adding answers. */
export type SemaphoreAddReply =
  | { readonly outcome: 'added' }
  | { readonly outcome: 'unannounced' }
  | { readonly outcome: 'missing' }
  /** The number would leave the whole numbers that a double holds exactly. */
  | { readonly outcome: 'overflow' }
  | DeadReply
  | ForeignReply

/** What draining answers. */
export type SemaphoreDrainReply =
  { readonly outcome: 'drained'; readonly permits: number } | DeadReply | ForeignReply

/** What setting answers. */
export type SetReply =
  | { readonly outcome: 'set' }
  | { readonly outcome: 'unannounced' }
  /** It was there before. */
  | { readonly outcome: 'kept' }
  | DeadReply
  | ForeignReply

/** What a look at a number answers. */
export type CountReply =
  { readonly outcome: 'counted'; readonly count: number } | { readonly outcome: 'missing' } | ForeignReply

/** Their replies. */
export interface SemaphoreReplies {
  'semaphore.acquire': SemaphoreAcquireReply
  'semaphore.end': SemaphoreEndReply
  'semaphore.add': SemaphoreAddReply
  'semaphore.drain': SemaphoreDrainReply
  'semaphore.set': SetReply
  'semaphore.inspect': CountReply
}
