/** The re-entrant lock. */
import type {
  AcquireReply,
  Force,
  ForceReply,
  Inspect,
  InspectReply,
  LeaveReply,
  Release,
  ReleaseReply,
  Renew,
  RenewReply,
} from './common.js'

/** Takes a re-entrant lock: `count` 1 for a new owner, k + 1 for one that holds it k times. */
export interface LockAcquire {
  readonly op: 'lock.acquire'
  readonly name: string
  readonly owner: string
  readonly count: number
  readonly leaseMs: number
}

/** Lowers an owner's hold count to `count` (at least 1). */
export interface Leave<Op extends string> {
  readonly op: Op
  readonly name: string
  readonly owner: string
  readonly count: number
}

/** The operations of the re-entrant lock. */
export type LockOperation =
  | LockAcquire
  | Leave<'lock.leave'>
  | Release<'lock.release'>
  | Renew<'lock.renew'>
  | Inspect<'lock.inspect'>
  | Force<'lock.force'>

/** Their replies. */
export interface LockReplies {
  'lock.acquire': AcquireReply
  'lock.leave': LeaveReply
  'lock.release': ReleaseReply
  'lock.renew': RenewReply
  'lock.inspect': InspectReply
  'lock.force': ForceReply
}
