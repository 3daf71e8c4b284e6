/**
 * What the processes of a safety run write down, and nothing else: the checker sees only this.
 *
 * All times are milliseconds of the machine's monotonic clock, which is the same in every process.
 */

import type { Thing } from './things.js'

/** What a worker tells about one call of `acquire`, `tryAcquire` or `using`, and the lease that came of it. */
export type CallEvent =
  /**
   * The call is about to be made. `waitMs` null: without end. `parent`: it is made inside that call's lease.
   * `whole`: it is no call of its own, but what that call of a multi-lock does with one member.
   */
  | {
      readonly is: 'invoke'
      readonly lock: string
      readonly waitMs: number | null
      readonly abortMs?: number | undefined
      readonly parent?: string | undefined
      readonly whole?: string | undefined
      /** Of a read/write lock. */
      readonly side?: 'read' | 'write' | undefined
      /** Of a semaphore; undefined: 1. */
      readonly permits?: number | undefined
      /** A release may leave the lock closed for some time. */
      readonly keeps?: true | undefined
      /** The last round, when every worker gets every lock once more. */
      readonly final?: true | undefined
    }
  /** It has a lease. `until`: the local deadline; `ttlMs`: what the server was asked for. */
  | {
      readonly is: 'granted'
      readonly owner: string
      readonly until: number
      readonly ttlMs: number
      /** Of a fenced lock. */
      readonly token?: number | undefined
      /** Of permits. */
      readonly ids?: readonly string[] | undefined
    }
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
  /** The write is about to be sent; `assertHeld` has passed, unless it is one that a fence looks at. */
  | { readonly is: 'write'; readonly fenced?: true | undefined }
  /** The fence has refused the write, or the read before. */
  | { readonly is: 'stale' }
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
  /** A look at the server, between `from` and the time of the event. `queue`: who waits, of a fair lock. */
  | {
      readonly is: 'seen'
      readonly from: number
      readonly lock: string
      readonly holders: readonly Holder[]
      readonly queue?: readonly string[] | undefined
    }
  /** A key was removed by force, between `from` and the time of the event. */
  | {
      readonly is: 'forced'
      readonly from: number
      readonly lock: string
      readonly fields: readonly string[]
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

/** Who has a lock, as the server sees it. */
export interface Holder {
  /** The owner; `<owner>:write` for a writer, one of its ids for an owner of permits. */
  readonly field: string
  /** How often it has entered. */
  readonly count: number
}

/** A key at the end. */
export interface RemainingKey {
  readonly key: string
  /** Of a semaphore's number only. */
  readonly value?: string | undefined
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
  /** Everything that can be held, the members of multi-locks included. */
  readonly locks: readonly Thing[]
  /** The longest TTL that any lease may have. */
  readonly longestTtlMs: number
  readonly commandTimeoutMs: number
}
