/**
 * The semaphore whose permits have ids and leases. Its owners are the permits of one acquire: their ids, 32 hex
 * characters each, joined by commas. The engine adds its own time: an expiry counts from the later of the client's
 * clock and the server's, and what has expired is judged by the earlier of the two.
 */
import type { ForeignReply, Release, ReleaseReply, Renew, RenewReply } from './common.js'

/** Takes one permit for each id of the owner, all or none. */
export interface PermitsAcquire {
  readonly op: 'permits.acquire'
  readonly name: string
  readonly owner: string
  /** How many permits there are in all, if nobody has said so before; undefined: then the acquire is refused. */
  readonly total: number | undefined
  readonly leaseMs: number
}

/** Gives permits back by their ids, whoever took them. */
export interface PermitsGive {
  readonly op: 'permits.give'
  readonly name: string
  readonly ids: readonly string[]
  /** True: nothing happens unless all are out. False: those that are out are given back. */
  readonly all: boolean
}

/** Lets a permit expire in `leaseMs` from now, sooner or later than before. A request is applied once. */
export interface PermitsUpdate {
  readonly op: 'permits.update'
  readonly name: string
  readonly id: string
  readonly leaseMs: number
  readonly request: string
}

/** Asks how long a permit is still out. */
export interface PermitsRest {
  readonly op: 'permits.rest'
  readonly name: string
  readonly id: string
}

/** Counts the permits. */
export interface PermitsCount {
  readonly op: 'permits.count'
  readonly name: string
}

/** Sets how many permits there are in all; `try-set`: only if nobody has said so before. A request is applied once. */
export interface PermitsSet<Op extends 'permits.set' | 'permits.try-set'> {
  readonly op: Op
  readonly name: string
  readonly permits: number
  readonly request: string
}

/** Changes by how many permits there are in all. A request is applied once. */
export interface PermitsAdd {
  readonly op: 'permits.add'
  readonly name: string
  /** May be negative. */
  readonly permits: number
  /** What the change starts from if nobody has set a number before. */
  readonly total: number | undefined
  readonly request: string
}

/** What taking permits answers. `ttlMs`: when the next permit expires; `Infinity`: none does. */
export type PermitsAcquireReply =
  /** All are ours. `left`: how many are still available; where there are some, `ttlMs` says nothing. */
  | { readonly outcome: 'granted'; readonly left: number; readonly ttlMs: number }
  /** Too few are available, of those that there are in all. */
  | { readonly outcome: 'busy'; readonly available: number; readonly total: number; readonly ttlMs: number }
  /** A tombstone lies there: this owner was ended before. */
  | { readonly outcome: 'dead' }
  /** Nobody has said how many permits there are. */
  | { readonly outcome: 'uninitialised' }
  | ForeignReply

/** What giving back by ids answers. */
export type PermitsGiveReply =
  | { readonly outcome: 'released'; readonly number: number }
  | { readonly outcome: 'unannounced'; readonly number: number }
  | { readonly outcome: 'none' }
  | ForeignReply

/** What a change of a permit's expiry answers. */
export type PermitsUpdateReply = { readonly outcome: 'updated' } | { readonly outcome: 'gone' } | ForeignReply

/** How long a permit is still out; `Infinity`: it never expires. */
export type PermitsRestReply =
  { readonly outcome: 'held'; readonly ttlMs: number } | { readonly outcome: 'gone' } | ForeignReply

/** What counting answers. Expired permits count as available, even if nobody has taken them back yet. */
export type PermitsCountReply =
  | { readonly outcome: 'counted'; readonly available: number; readonly acquired: number }
  | { readonly outcome: 'uninitialised'; readonly acquired: number }
  | ForeignReply

/** What setting the number of permits answers. */
export type PermitsSetReply =
  | { readonly outcome: 'set' }
  | { readonly outcome: 'unannounced' }
  /** There is a number already. */
  | { readonly outcome: 'exists' }
  | ForeignReply

/** What changing the number answers. */
export type PermitsAddReply =
  | Exclude<PermitsSetReply, { readonly outcome: 'exists' }>
  /** Not done: in all, or of those that are available, there would be more or fewer than ±(2^53−1). */
  | { readonly outcome: 'overflow' }

/** The operations of the semaphore with leases. */
export type PermitsOperation =
  | PermitsAcquire
  | Release<'permits.release'>
  | Renew<'permits.renew'>
  | PermitsGive
  | PermitsUpdate
  | PermitsRest
  | PermitsCount
  | PermitsSet<'permits.set'>
  | PermitsSet<'permits.try-set'>
  | PermitsAdd

/** Their replies. */
export interface PermitsReplies {
  'permits.acquire': PermitsAcquireReply
  'permits.release': ReleaseReply
  'permits.renew': RenewReply
  'permits.give': PermitsGiveReply
  'permits.update': PermitsUpdateReply
  'permits.rest': PermitsRestReply
  'permits.count': PermitsCountReply
  'permits.set': PermitsSetReply
  'permits.try-set': PermitsSetReply
  'permits.add': PermitsAddReply
}
