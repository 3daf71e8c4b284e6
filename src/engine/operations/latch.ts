/** The count-down latch, a bare number like the semaphore's; missing and zero are the same: open. */
import type { ForeignReply } from './common.js'
import type { CountReply, DeadReply, Requested, SetReply } from './semaphore.js'

/** Sets the count of a latch that is open. */
export interface LatchSet extends Requested<'latch.set'> {
  readonly count: number
}

/** Lowers the count by one; at zero the latch is gone, and open. */
export type LatchCountDown = Requested<'latch.countDown'>

/** Takes a count-down back, unless it opened the latch or the round is over, and refuses its late copies. */
export type LatchCancel = Requested<'latch.cancel'>

/** Removes the latch, which opens it. */
export type LatchDelete = Requested<'latch.delete'>

/** Reads the count. */
export interface LatchInspect {
  readonly op: 'latch.inspect'
  readonly name: string
}

/** The operations of the latch. */
export type LatchOperation = LatchSet | LatchCountDown | LatchCancel | LatchDelete | LatchInspect

/** What counting down answers. */
export type LatchCountDownReply =
  | { readonly outcome: 'counted'; readonly left: number }
  /** Zero was reached, but the message to the waiters was refused; they find out by polling. */
  | { readonly outcome: 'unannounced' }
  | DeadReply
  | ForeignReply

/** What taking a count-down back answers. */
export type LatchCancelReply = { readonly outcome: 'undone' } | { readonly outcome: 'marked' } | ForeignReply

/** What removing answers. */
export type LatchDeleteReply =
  | { readonly outcome: 'deleted' }
  | { readonly outcome: 'unannounced' }
  | { readonly outcome: 'missing' }
  | DeadReply
  | ForeignReply

/** Their replies. */
export interface LatchReplies {
  'latch.set': SetReply
  'latch.countDown': LatchCountDownReply
  'latch.cancel': LatchCancelReply
  'latch.delete': LatchDeleteReply
  'latch.inspect': CountReply
}
