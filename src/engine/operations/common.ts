/** What operations and replies of several families look like. */

/** Ends an owner, whatever its count. */
export interface Release<Op extends string> {
  readonly op: Op
  readonly name: string
  readonly owner: string
  /** Instead of freeing at once, let the key expire after this time; 0: free at once. */
  readonly keepMs: number
  /** Leave a tombstone for this time, so that late copies of the owner's acquire are refused; 0: none. */
  readonly entombMs: number
}

/** One owner of one object. */
export interface Hold {
  readonly name: string
  readonly owner: string
}

/** Raises the TTL of many holds to at least `ttlMs`. */
export interface Renew<Op extends string> {
  readonly op: Op
  readonly ttlMs: number
  readonly holds: readonly Hold[]
}

/** Reads the holders. */
export interface Inspect<Op extends string> {
  readonly op: Op
  readonly name: string
}

/** Takes the lock away from the owners that were seen, and from nobody else. */
export interface Force<Op extends string> {
  readonly op: Op
  readonly name: string
  readonly owners: readonly string[]
}

/** Another kind of value, or somebody's data, is under the name; nothing was changed. */
export interface ForeignReply {
  readonly outcome: 'foreign'
}

/** What an acquire answers. */
export type AcquireReply =
  /** The owner holds the lock with the wanted count, and with at least the wanted TTL. */
  | { readonly outcome: 'granted' }
  /** Somebody else holds it; a TTL of -1 means that the key has none. */
  | { readonly outcome: 'busy'; readonly ttlMs: number; readonly holder: string }
  /** A nested acquire whose owner is not there any more. */
  | { readonly outcome: 'lost' }
  /** A tombstone lies there: this owner was ended before. */
  | { readonly outcome: 'dead' }
  | ForeignReply

/** What leaving one of several holds answers. */
export type LeaveReply =
  { readonly outcome: 'kept' } | { readonly outcome: 'gone' } | { readonly outcome: 'taken' } | ForeignReply

/** What ending an owner answers. */
export type ReleaseReply =
  | { readonly outcome: 'released' }
  /** Released, but the message to the waiters was refused; they find out by polling. */
  | { readonly outcome: 'unannounced' }
  /** The owner was not there, and nobody else is. */
  | { readonly outcome: 'gone' }
  /** The owner was not there, but somebody else is. */
  | { readonly outcome: 'taken' }
  | ForeignReply

/** What became of one hold in a renewal. */
export type RenewResult = 'renewed' | 'gone' | 'taken'

/** What a renewal answers, in the order of the holds. */
export interface RenewReply {
  readonly results: readonly RenewResult[]
}

/** What a look at the holders answers. */
export type InspectReply =
  | { readonly outcome: 'free' }
  | { readonly outcome: 'held'; readonly ttlMs: number; readonly holders: ReadonlyMap<string, number> }
  | ForeignReply

/** What a forced release answers. */
export type ForceReply =
  | { readonly outcome: 'freed' }
  | { readonly outcome: 'unannounced' }
  | { readonly outcome: 'none' }
  | ForeignReply
