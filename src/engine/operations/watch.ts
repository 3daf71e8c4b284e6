/** Watching data: keys of any type, whoever writes them. */

/** Asks whether the engine tells of writes. */
export interface WatchNotices {
  readonly op: 'watch.notices'
}

/** `all`: of every write and expiry; `some`: of some kinds; `unknown`: it does not say; `none`: of nothing. */
export interface WatchNoticesReply {
  readonly notices: 'all' | 'some' | 'unknown' | 'none'
}

/** Looks at keys. */
export interface WatchLook {
  readonly op: 'watch.look'
  /** Of one batch, see `Engine.batchKey`. */
  readonly keys: readonly string[]
  /** Values up to this size are read whole. */
  readonly exactBytes: number
}

/** A key at one moment. */
export interface Look {
  /** The type; undefined: there is no such key. */
  readonly type: string | undefined
  /** Equal for equal values. */
  readonly mark: string
  /** The whole value stands behind the mark; otherwise a sample. */
  readonly exact: boolean
  /** The rest of the key's life; -1: without end. */
  readonly ttlMs: number
}

/** One look for each key in turn; fewer, but at least one, where the values were large: ask again for the rest. */
export interface WatchLookReply {
  readonly looks: readonly Look[]
}

/** Takes a step through all keys. */
export interface WatchScan {
  readonly op: 'watch.scan'
  /** In Redis' glob syntax. */
  readonly pattern: string
  /** `0` begins. */
  readonly cursor: string
}

/** Keys that fit; cursor `0`: that was all. A key may come twice. */
export interface WatchScanReply {
  readonly cursor: string
  readonly keys: readonly string[]
}

/** Reads what was handled. */
export interface WatchMarks {
  readonly op: 'watch.marks'
  readonly name: string
}

/** What was handled: a text for each field. */
export interface WatchMarksReply {
  readonly outcome: 'read'
  readonly marks: ReadonlyMap<string, string>
}

/** Notes what was handled. */
export interface WatchMark {
  readonly op: 'watch.mark'
  readonly name: string
  /** How long the notes live from now on, at least. */
  readonly ttlMs: number
  /** Field and text in turn; an empty text removes the field. */
  readonly notes: readonly string[]
}

/** What `watch.mark` answers. */
export interface WatchMarkReply {
  readonly outcome: 'marked'
}

/** There is something else under the key of the notes. */
export interface WatchForeignReply {
  readonly outcome: 'foreign'
  readonly key: string
}

/** The operations of watching. */
export type WatchOperation = WatchNotices | WatchLook | WatchScan | WatchMarks | WatchMark

/** Their replies. */
export interface WatchReplies {
  'watch.notices': WatchNoticesReply
  'watch.look': WatchLookReply
  'watch.scan': WatchScanReply
  'watch.marks': WatchMarksReply | WatchForeignReply
  'watch.mark': WatchMarkReply | WatchForeignReply
}
