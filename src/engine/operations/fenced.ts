/** The fenced lock: the re-entrant lock, with a token that grows with every grant. Everything but the acquire is the lock's. */
import type { AcquireReply } from './common.js'

/** Takes a fenced lock: `count` 1 for a new owner, k + 1 for one that holds it k times. */
export interface FencedAcquire {
  readonly op: 'fenced.acquire'
  readonly name: string
  readonly owner: string
  readonly count: number
  readonly leaseMs: number
}

/** Reads the highest token that was given. */
export interface FencedToken {
  readonly op: 'fenced.token'
  readonly name: string
}

/** Under the token's name is something that is not a token, or one that cannot grow; nothing was changed. */
export interface BadTokenReply {
  readonly outcome: 'badToken'
  /** The token's key. */
  readonly key: string
}

/** What a fenced acquire answers. */
export type FencedAcquireReply =
  | Exclude<AcquireReply, { readonly outcome: 'granted' }>
  /** As of a lock; the token is higher than all that were given before, also for a repeated copy of one attempt. */
  | { readonly outcome: 'granted'; readonly token: number }
  | BadTokenReply

/** What a look at the token answers; 0: none was given yet. */
export type FencedTokenReply = { readonly outcome: 'known'; readonly token: number } | BadTokenReply

/** The operations of the fenced lock that are not the lock's. */
export type FencedOperation = FencedAcquire | FencedToken

/** Their replies. */
export interface FencedReplies {
  'fenced.acquire': FencedAcquireReply
  'fenced.token': FencedTokenReply
}
