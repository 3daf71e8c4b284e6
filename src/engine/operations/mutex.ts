/** The plain lock. */
import type {
  AcquireReply,
  Force,
  ForceReply,
  Inspect,
  InspectReply,
  Release,
  ReleaseReply,
  Renew,
  RenewReply,
} from './common.js'

/** Takes the plain lock. */
export interface MutexAcquire {
  readonly op: 'mutex.acquire'
  readonly name: string
  readonly owner: string
  readonly leaseMs: number
}

/** The operations of the plain lock. */
export type MutexOperation =
  | MutexAcquire
  | Release<'mutex.release'>
  | Renew<'mutex.renew'>
  | Inspect<'mutex.inspect'>
  | Force<'mutex.force'>

/** Their replies. */
export interface MutexReplies {
  'mutex.acquire': AcquireReply
  'mutex.release': ReleaseReply
  'mutex.renew': RenewReply
  'mutex.inspect': InspectReply
  'mutex.force': ForceReply
}
