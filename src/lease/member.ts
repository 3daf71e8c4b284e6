import type { LossReason } from '../errors.js'
import type { ResolvedAcquireOptions } from '../options.js'
import type { Part } from './acquire.js'
import type { Busy } from './call.js'
import type { Lease } from './lease.js'
import type { Runtime } from './runtime.js'
import type { Target } from './target.js'

/** A lease as a lease of several locks needs it. */
export interface MemberLease extends Lease {
  /** Neither released nor lost. */
  readonly live: boolean
  /** A release within this time from now leaves the lock closed for the rest of it. */
  keepFor(ms: number): void
  /** Ends the renewal: the lock stays closed until the release, or the end of its TTL. */
  letExpire(): void
  /** Tells a loss, once; one that was before at once. */
  watchLoss(listener: (reason: LossReason) => void): void
}

/** A lock as one of several that are taken as one. */
export interface Member {
  readonly runtime: Runtime
  readonly target: Target
  readonly reentrant: boolean
  /** Tells a lock over several servers from others of its name; undefined: it is a lock on one server. */
  readonly key: string | undefined
  /** It stands for one re-entrant lock of one engine, and may share a script with its like. */
  readonly joins: boolean
  /** Whether the calling code runs inside of it. */
  enclosed(): boolean
  /** The part of such a lease that is one of this lock, if there is one. */
  within(lease: object): object | undefined
  /** Never throws at once. @throws what `acquire` of the lock throws */
  acquire(options: ResolvedAcquireOptions, part: Part): Promise<MemberLease | Busy>
}
