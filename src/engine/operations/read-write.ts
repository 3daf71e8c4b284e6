/** The read/write lock: one object with two sides, each of which is asked for by itself. */
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
import type { Leave } from './lock.js'

/** Takes the lock for reading: `count` 1 for a new owner, k + 1 for one that holds it k times. */
export interface ReadAcquire {
  readonly op: 'read.acquire'
  readonly name: string
  readonly owner: string
  /** The owner that may hold the lock for writing and lets this reader in beside itself; empty: none. */
  readonly writer: string
  readonly count: number
  readonly leaseMs: number
}

/** Takes the lock for writing. */
export interface WriteAcquire {
  readonly op: 'write.acquire'
  readonly name: string
  readonly owner: string
  readonly count: number
  readonly leaseMs: number
}

/** The operations of the read/write lock. Owners are those of the leases, without what marks a writer in Redis. */
export type ReadWriteOperation =
  | ReadAcquire
  | Leave<'read.leave'>
  | Release<'read.release'>
  | Renew<'read.renew'>
  | Inspect<'read.inspect'>
  | Force<'read.force'>
  | WriteAcquire
  | Leave<'write.leave'>
  | Release<'write.release'>
  | Renew<'write.renew'>
  | Inspect<'write.inspect'>
  | Force<'write.force'>

/** Their replies. */
export interface ReadWriteReplies {
  'read.acquire': AcquireReply
  'read.leave': LeaveReply
  'read.release': ReleaseReply
  'read.renew': RenewReply
  /** A reader whose hold has run out is still there, with a count of 0, until somebody leaves. */
  'read.inspect': InspectReply
  'read.force': ForceReply
  'write.acquire': AcquireReply
  'write.leave': LeaveReply
  'write.release': ReleaseReply
  'write.renew': RenewReply
  'write.inspect': InspectReply
  'write.force': ForceReply
}
