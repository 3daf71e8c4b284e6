/**
 * What the processes of a safety run write down, and nothing else: the checker sees only this.
 *
 * All times are milliseconds of the machine's monotonic clock, which is the same in every process.
 */

/** What a worker tells about one call of `acquire`, `tryAcquire` or `using`, and the lease that came of it. */
export type CallEvent =
  /** The call is about to be made. `waitMs` null: without end. `parent`: it is made inside that call's lease. */
  | {
      readonly is: 'invoke'
      readonly lock: string
      readonly waitMs: number | null
      readonly abortMs?: number | undefined
      readonly parent?: string | undefined
      /** A release may leave the lock closed for some time. */
      readonly keeps?: true | undefined
      /** The last round, when every worker gets every lock once more. */
      readonly final?: true | undefined
    }
  /** It has a lease. `until`: the local deadline; `ttlMs`: what the server was asked for. */
  | { readonly is: 'granted'; readonly owner: string; readonly until: number; readonly ttlMs: number }
  /** It has none: busy at the end, aborted, or the code of an error. */
  | { readonly is: 'refused'; readonly why: string }
  /** The lease is still held; its local deadline is this now. */
  | { readonly is: 'until'; readonly until: number }
  /** `extend` is about to be called. */
  | { readonly is: 'extend'; readonly ttlMs: number }
  /** The loss signal. */
  | { readonly is: 'lost'; readonly reason: string }
  /** The release is about to be made: from here on the worker does not believe in the lease. */
  | { readonly is: 'release' }
  | { readonly is: 'released'; readonly outcome: string }
  /** The canary was set, between `from` and the time of the event; `found`: the owner who sat there. */
  | { readonly is: 'entered'; readonly from: number; readonly found: string | null }
  /** The canary was taken out; `intact`: it still was this owner's. */
  | { readonly is: 'left'; readonly from: number; readonly intact: boolean }
  /** The shared value was read: the call whose write it is. */
  | { readonly is: 'read'; readonly saw: string }
  /** `assertHeld` has passed, and the write is about to be sent. */
  | { readonly is: 'write' }
  /** The write was acknowledged. */
  | { readonly is: 'wrote' }

/** What a worker tells about itself. */
export type ProcessEvent =
  | { readonly is: 'began'; readonly client: string }
  /** The event loop stood still since `from`: the process was blocked, stopped, or got no processor. */
  | { readonly is: 'stall'; readonly from: number }
  /** It has closed everything and has nothing left to do; `left` counts what should be nothing. */
  | { readonly is: 'ended'; readonly left: number }

/** What the coordinator tells. */
export type WorldEvent =
  /** A fault begins; `on`: the process that it is for, null: everybody. */
  | { readonly is: 'fault'; readonly id: number; readonly fault: string; readonly on: string | null }
  /** It is over. */
  | { readonly is: 'heal'; readonly id: number }
  /** A look at the server, between `from` and the time of the event. */
  | {
      readonly is: 'seen'
      readonly from: number
      readonly lock: string
      readonly owner: string | null
      readonly count: number
    }
  /** A key was removed by force, between `from` and the time of the event. */
  | {
      readonly is: 'forced'
      readonly from: number
      readonly lock: string
      readonly owners: readonly string[]
    }
  /** A process is gone; `killed`: by us. */
  | {
      readonly is: 'gone'
      readonly who: string
      readonly killed: boolean
      readonly how: string
    }
  /** No more faults; every worker finishes, gets every lock once more, and ends. */
  | { readonly is: 'drain'; readonly who: readonly string[] }
  /** What was left on the server at the end. */
  | { readonly is: 'remains'; readonly keys: readonly RemainingKey[]; readonly channels: readonly string[] }

/** A key at the end. */
export interface RemainingKey {
  readonly key: string
  /** -1: none. */
  readonly ttlMs: number
}

/** Who and when. `process` is `world` for the coordinator, else `<place>.<life>`. */
interface Stamp {
  readonly t: number
  readonly process: string
}

/** One line of a history. */
export type Entry = Stamp & ((CallEvent & { readonly call: string }) | ProcessEvent | WorldEvent)

/** A line as it is written: the file says which process it is of. */
export type Line = Entry extends infer E ? (E extends Entry ? Omit<E, 'process'> : never) : never

/** What the run was made with, as far as the checks need it. */
export interface Terms {
  readonly locks: readonly string[]
  /** The longest TTL that any lease may have. */
  readonly longestTtlMs: number
  readonly commandTimeoutMs: number
}
