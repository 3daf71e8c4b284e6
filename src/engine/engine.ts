import type { Operation, ReplyOf } from './operations.js'

/**
 * What became of one operation on its way: the engine writes how often and when it was sent, the caller
 * writes that nobody waits for it any more.
 */
export interface Passage {
  /** Set by the caller. From then on the engine never sends this operation (again). */
  abandoned: boolean
  /** Set by the engine while it waits for a connection; called by whoever abandons, so that nothing is left waiting. */
  onAbandon: (() => void) | undefined
  /** How often it was sent. */
  sends: number
  /** Monotonic milliseconds right before the first and the last sending; 0 before any. */
  firstSentAtMs: number
  lastSentAtMs: number
  /** True only if it is certain that the engine got this operation at most once. */
  once: boolean
}

/** A passage before its first sending. */
export function newPassage(): Passage {
  return { abandoned: false, onAbandon: undefined, sends: 0, firstSentAtMs: 0, lastSentAtMs: 0, once: false }
}

/** Gives an operation up: from now on it is not sent any more. */
export function abandon(passage: Passage): void {
  passage.abandoned = true
  passage.onAbandon?.()
}

/** Why an engine did not answer. */
export type EngineErrorKind =
  /** Not reachable, or not able to serve now: worth another try. */
  | 'unavailable'
  /** It refuses and will refuse again. */
  | 'refused'
  /** The user's client is closed. */
  | 'closed'
  /** Not sent, because the caller had abandoned the operation. */
  | 'abandoned'

/** What is known about an operation without a reply. */
export interface EngineTrouble {
  readonly kind: EngineErrorKind
  /** Whether the operation may have been executed, or may be later. */
  readonly outcome: 'not-applied' | 'unknown'
  readonly cause?: unknown
  /** It was granted, but too few replicas have it. */
  readonly shortfall?: Shortfall | undefined
}

/** How many replicas had confirmed a grant, and how many would have had to. */
export interface Shortfall {
  readonly acks: number
  readonly wanted: number
}

/** An operation without a reply. */
export class EngineError extends Error {
  override readonly name: string = 'EngineError'
  readonly kind: EngineErrorKind
  /** Whether the operation may have been executed, or may be later. */
  readonly outcome: 'not-applied' | 'unknown'
  /** It was granted, but too few replicas have it: it has to be undone. */
  readonly shortfall: Shortfall | undefined

  constructor(message: string, { kind, outcome, cause, shortfall }: EngineTrouble) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.outcome = outcome
    this.shortfall = shortfall
  }
}

/** The object whose waiters a wake-up is meant for; the families are those of the channels. */
export interface Topic {
  readonly family: 'lock' | 'mutex' | 'read-write' | 'semaphore' | 'latch'
  readonly name: string
  /** The waiter, where each has a channel of its own. */
  readonly owner?: string
}

/**
 * A hint that another attempt may succeed. It may be lost, doubled or late.
 * `one`: one waiter; `all`: everybody; `resync`: messages may have been missed;
 * `down`: no messages until the next `resync`.
 */
export type Hint = 'one' | 'all' | 'resync' | 'down'

/** A listener's share of a subscription. */
export interface Subscription {
  /** Settles when the engine has confirmed (true), or could not subscribe (false). Never rejects. */
  readonly live: Promise<boolean>
  /** Gives the share back. */
  close(): void
}

/** Keys whose writes are of interest: one, or all that fit a pattern in Redis' glob syntax. */
export interface DataTopic {
  readonly kind: 'key' | 'pattern'
  /** The full key. */
  readonly name: string
}

/** Something was done to a key: a hint to look at it, that may be lost, doubled or late. */
export interface News {
  readonly key: string
  /** The server's word for it: `set`, `del`, `expired` … */
  readonly event: string
}

/** Hears of writes. `resync`: some may have been missed; `down`: nothing is told until the next `resync`. */
export type DataListener = (news: News | 'resync' | 'down') => void

/** Where the state of locks lives. */
export interface Engine {
  /** For messages, e.g. `memory`, `redis (ioredis)`. */
  readonly name: string
  /** Put before every base name. */
  readonly keyPrefix: string
  /** Atomically executes one operation. Rejects with {@link EngineError} only. No time-out of its own. */
  execute<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>>
  /** Listens for wake-ups. */
  subscribe(topic: Topic, listener: (hint: Hint) => void): Subscription
  /** Listens for writes of data, by whomever. */
  listenTo(topic: DataTopic, listener: DataListener): Subscription
  /** Holds with equal keys may share one renewal. */
  batchKey(name: string): string
  /** Refuses a name that cannot be safe on this engine, by throwing; without I/O. */
  checkName(name: string, family?: Topic['family']): void
  /** Refuses a pattern that cannot be looked for on this engine, by throwing; without I/O. */
  checkPattern(pattern: string): void
  /** Closes what the engine itself opened. Never rejects. */
  close(): Promise<void>
}
