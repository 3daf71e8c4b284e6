/** Several re-entrant locks at once, where all of their keys share a slot. */
import type { ReleaseReply } from './common.js'

/** Takes all of the locks for a new owner, or none. */
export interface MultiAcquire {
  readonly op: 'multi.acquire'
  readonly names: readonly string[]
  readonly owner: string
  readonly leaseMs: number
}

/** Ends one owner of several locks at once. */
export interface MultiRelease {
  readonly op: 'multi.release'
  readonly names: readonly string[]
  readonly owner: string
  /** Leave a tombstone for this time beside each lock; 0: none. */
  readonly entombMs: number
}

/** The operations on several re-entrant locks. */
export type MultiOperation = MultiAcquire | MultiRelease

/** What taking several locks answers. Only `granted` has changed anything. */
export type MultiAcquireReply =
  | { readonly outcome: 'granted' }
  /** Somebody else holds the lock at this place; a TTL of -1 means that its key has none. */
  | { readonly outcome: 'busy'; readonly index: number; readonly ttlMs: number; readonly holder: string }
  /** A tombstone lies beside the lock at this place: this owner was ended before. */
  | { readonly outcome: 'dead'; readonly index: number }
  /** Another kind of value, or somebody's data, is under the name at this place. */
  | { readonly outcome: 'foreign'; readonly index: number }

/** What ending one owner of several locks answers, in the order of the names. */
export interface MultiReleaseReply {
  readonly results: readonly ReleaseReply['outcome'][]
}

/** Their replies. */
export interface MultiReplies {
  'multi.acquire': MultiAcquireReply
  'multi.release': MultiReleaseReply
}
