/**
 * The client port: the narrow waist between the Redis engine and the client library a user brings.
 *
 * An adapter (one file per client library) implements {@link ClientPort}; nothing above this folder
 * knows which library is in use. A new method needs a reason.
 */

/** A Lua script as it is sent: by its digest, and by its text where the server does not know the digest. */
export interface Script {
  /** For messages and events, e.g. `lock/acquire`. */
  readonly name: string
  readonly source: string
  /** SHA-1 of `source`, lower-case hex. */
  readonly sha: string
}

/** One run of a script. The first key decides the slot; there is always at least one. */
export interface ScriptCall {
  readonly script: Script
  readonly keys: readonly string[]
  readonly args: readonly string[]
}

/**
 * A reply in one form for all clients: integers are numbers, bulk and simple strings are strings (UTF-8),
 * whatever the client's own settings (RESP3, Buffers, bigints, integers as strings) make of them.
 */
export type RawReply = null | number | string | readonly RawReply[]

/**
 * What became of one call on its way: the port writes how often and over which link it was sent, the
 * engine writes that nobody waits for it any more.
 */
export interface Passage {
  /** Set by the engine. From then on the port never hands this call to the client (again). */
  abandoned: boolean
  /** How often the call was handed to the client. */
  sends: number
  /** Monotonic milliseconds right before the first and before the last hand-over; 0 before any. */
  firstSentAtMs: number
  lastSentAtMs: number
  /**
   * True only if it is certain that the server got this call at most once: handed over once, over one
   * link that was not re-established between the hand-over and the reply. `false` also means "cannot tell".
   */
  once: boolean
}

/** Which node has what, as a client knows. */
export interface Places {
  /** The address of the primary that has a key's or a channel's slot; empty: not known, or there is only one. */
  addressOf(key: string): string
  /** An address turned out to be wrong, or does not answer. */
  refresh(): void
}

/** How many replicas a write is waited for, and how long. */
export interface Demand {
  readonly acks: number
  /** For WAIT itself. */
  readonly timeoutMs: number
  /** After this time without any answer the connection counts as broken. */
  readonly limitMs: number
}

/** A script's reply, and how many replicas had confirmed it when WAIT was over. */
export interface WaitedReply {
  readonly reply: RawReply
  readonly acks: number
  /** Why nothing is known of replicas. */
  readonly trouble?: PortError
}

/** Why a call failed, in the terms that the engine acts on. */
export type PortErrorKind =
  /** The key holds another type (WRONGTYPE). */
  | 'wrong-type'
  /** The server cannot serve this now (LOADING, BUSY, READONLY, MASTERDOWN, OOM, MISCONF, CLUSTERDOWN, TRYAGAIN, NOAUTH …): worth another try. */
  | 'unavailable'
  /** The server refuses and will refuse again (NOPERM, unknown command, an error inside the script, a reply out of a transaction). */
  | 'refused'
  /** The link broke or the client gave the command up. */
  | 'connection'
  /** The user's client is closed. */
  | 'closed'
  /** Not sent, because the engine had abandoned the call. */
  | 'abandoned'

/** What is known about a failed call. */
export interface PortTrouble {
  readonly kind: PortErrorKind
  readonly outcome: 'not-applied' | 'unknown'
  readonly cause?: unknown
}

/** A failed call: the kind, whether the server may have executed it, and the client's own error as `cause`. */
export class PortError extends Error {
  override readonly name: string = 'PortError'
  readonly kind: PortErrorKind
  /** `not-applied`: the server surely did not execute it. `unknown`: it may have, or may still. */
  readonly outcome: 'not-applied' | 'unknown'

  constructor(message: string, { kind, outcome, cause }: PortTrouble) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.outcome = outcome
  }
}

/**
 * Whether a command can be sent right now.
 *
 * - `ready`: yes.
 * - `waiting`: connecting or reconnecting; {@link ClientPort.onceReady} tells when that is over.
 * - `closed`: the user closed the client (or never opened it, where the library leaves that to the user).
 * - `subscriber`: the user's connection is in subscriber mode and takes no commands.
 */
export type Readiness = 'ready' | 'waiting' | 'closed' | 'subscriber'

/** What a subscriber link reports. */
export interface SubscriberEvents {
  /** A message on a subscribed channel, or on one that fits a subscribed pattern. */
  onMessage(channel: string, payload: string, pattern?: string): void
  /** The link was re-established and every channel, or these, subscribed again: messages may have been missed. */
  onResync(channels?: readonly string[]): void
  /** The link is down or a channel could not be subscribed; waiters, or those of these channels, must rely on polling until `onResync`. */
  onDown(cause: unknown, channels?: readonly string[]): void
}

/** What is subscribed: one channel, all whose names fit a glob pattern, or a channel of the slot that its name falls into. */
export type ChannelKind = 'channel' | 'pattern' | 'shard'

/** A connection of our own that only subscribes. */
export interface SubscriberPort {
  /**
   * Resolves when the server has confirmed; rejects when it refused (ACL) or the link failed. After a
   * failed link the channel stays wanted until {@link unsubscribe}: the next `onResync` includes it.
   */
  subscribe(channel: string, kind?: ChannelKind): Promise<void>
  /** Best effort; never rejects. */
  unsubscribe(channel: string, kind?: ChannelKind): Promise<void>
  /** Closes the connection, if it is ours. Never rejects. */
  close(): Promise<void>
}

/** A Redis client, reduced to what locks need. */
export interface ClientPort {
  /** For messages: `ioredis`, `node-redis`. */
  readonly client: string
  readonly cluster: boolean
  /**
   * The key prefix of the user's client, to be put before *base names* by the engine. The port itself
   * sends keys as they are given (over a connection without the prefix, where the client has one).
   */
  readonly keyPrefix: string
  /** The number of the database, as far as the client tells: it is part of the channels on which the server tells of writes. */
  readonly database: number
  /** The current state, without I/O. Cheap: asked before every command. */
  readonly readiness: Readiness
  /** Calls back once, when the state has left `waiting`. Returns a function that withdraws the listener. */
  onceReady(listener: () => void): () => void
  /**
   * Sends EVALSHA, and EVAL on the same node upon NOSCRIPT. Only to be called when `readiness` is
   * `ready`, so that nothing is left in a client's offline queue. Rejects with {@link PortError} only.
   * It has no time-out of its own: the engine stops waiting and sets `passage.abandoned`.
   */
  run(call: ScriptCall, passage: Passage): Promise<RawReply>
  /**
   * Sends the script over a connection of our own to the primary of its first key, and WAIT behind it. Scripts that come
   * while WAIT holds the connection share the next one. Otherwise like {@link ClientPort.run}.
   */
  runAndWait(call: ScriptCall, passage: Passage, demand: Demand): Promise<WaitedReply>
  /** Which primary has a key: equal for equal ones. */
  placeOf(key: string): string
  /**
   * Asks a primary what no script may ask, e.g. CONFIG GET: the one that has `key`, or any. Only to be called when
   * `readiness` is `ready`. Rejects with {@link PortError} only; `refused` is usual where servers are rented.
   */
  ask(command: readonly string[], key?: string): Promise<RawReply>
  /**
   * Opens a subscriber connection with the user's client settings (lazily connected, its idle socket does not keep the process
   * alive). `sharded`: for channels of kind `shard` and no others, one connection for each node of a cluster.
   */
  subscriber(events: SubscriberEvents, sharded: boolean): SubscriberPort
  /** Closes the connections that the port itself opened. Never the user's client. Never rejects. */
  close(): Promise<void>
}
