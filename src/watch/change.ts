/** What can happen to a key: it was written (or made), removed, or ended at the end of its time. */
export type WatchEvent = 'change' | 'delete' | 'expire'

/** What happened to a key, from one look at it to the next. */
export interface Change {
  /** `change` the value is another one, or the key is new; `delete` it was removed, renamed or evicted; `expire` its time was over. */
  readonly event: WatchEvent
  /** The key, as it was given; of a pattern, the one that fits. */
  readonly key: string
  /** A `change` that made the key: it was not there before. */
  readonly created: boolean
  /** What Redis' `TYPE` says: of the value that is there, or of the one that was. Undefined where nobody saw it. */
  readonly type: string | undefined
  /** Milliseconds that the key has to live; `Infinity` without an end, 0 when it is gone. */
  readonly ttl: number
  /** The value is a stream or larger than `exactUpTo`: only a part of it was compared. */
  readonly sampled: boolean
  /** How many earlier changes of the key are merged into this one, since whoever hears them was busy. */
  readonly merged: number
  /** Aborts when the watch ends, and when the lock that it is under is lost. */
  readonly signal: AbortSignal
}

/** Called with every change; may be asynchronous. What it throws goes to `onError`. */
export type WatchCallback = (change: Change) => unknown

/** Called with what a callback threw and the change that it was called with; or, without a change, why the watch cannot look. */
export type WatchErrorCallback = (error: unknown, change: Change | undefined) => unknown
