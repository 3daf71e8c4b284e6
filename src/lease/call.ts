import { setMaxListeners } from 'node:events'
import type { Clock } from '../clock.js'
import type { Shortfall } from '../engine/engine.js'
import type { ResolvedAcquireOptions } from '../options.js'
import type { Pauses } from './backoff.js'
import { Interrupt } from './interrupt.js'
import type { Target } from './target.js'

/** When a waiter that nobody wakes looks again. */
export interface Rhythm {
  /** Until something is due; -1: nothing that is known of. */
  readonly untilMs: number
  /** The shortest pause before that; it grows while what was due does not come. */
  readonly floorMs: number
  /** The longest pause, unless the caller wants another. */
  readonly capMs: number
  /** The caller can only shorten it. */
  readonly strict?: true
}

/** The lock was still busy at the end: what `tryAcquire` turns into null and `acquire` into an error. */
export class Busy {
  readonly seen: { readonly holder: string; readonly ttlMs: number } | undefined
  /** When to look again; undefined: at the end of the TTL that was seen. */
  readonly rhythm: Rhythm | undefined

  constructor(seen: { readonly holder: string; readonly ttlMs: number } | undefined, rhythm?: Rhythm) {
    this.seen = seen
    this.rhythm = rhythm
  }
}

/** A first attempt may take this long even if `waitTime` is shorter, so that a healthy server can answer it. */
const FIRST_ATTEMPT_MS = 100

/** How long a call is ready to wait, and what ends it before. */
export interface WaitTerms {
  readonly waitTimeMs: number
  readonly signal: AbortSignal | undefined
}

/** One call that may wait, whatever for: its deadline, and its ends by signal and by closing. */
export class Wait<O extends WaitTerms = WaitTerms> extends Interrupt {
  /** The name of the object, as the caller gave it. */
  readonly title: string
  readonly options: O
  readonly startedMs: number
  /** When waiting is over. */
  readonly deadlineMs: number
  /** It enters a lease that is held: closing does not end it, as long as that lease goes on. */
  nested = false
  /** That it waits was told. */
  announced = false
  /** The call that this one is a part of, and which tells and counts for both. */
  whole: Wait | undefined = undefined
  readonly #clock: Clock
  readonly #signal: AbortSignal | undefined
  readonly #onAbort: (() => void) | undefined

  constructor(title: string, options: O, clock: Clock) {
    super()
    this.title = title
    this.options = options
    this.#clock = clock
    this.startedMs = clock.now()
    this.deadlineMs = this.startedMs + options.waitTimeMs
    this.#signal = options.signal
    if (options.signal !== undefined) {
      const { signal } = options
      this.#onAbort = () => {
        this.fire(signal.reason)
      }
      // One signal for all calls of a program is usual, and its listeners are no leak: each goes with its call.
      if (signal instanceof EventTarget) setMaxListeners(0, signal)
      signal.addEventListener('abort', this.#onAbort, { once: true })
    }
  }

  /** Milliseconds since the call. */
  get waitedMs(): number {
    return this.#clock.now() - this.startedMs
  }

  /** Whether waiting is over. */
  get overdue(): boolean {
    return this.#clock.now() >= this.deadlineMs
  }

  /** Until when an attempt begun now may take. */
  attemptDeadline(commandTimeoutMs: number): number {
    const { waitTimeMs } = this.options
    const longest = this.#clock.now() + commandTimeoutMs
    if (waitTimeMs === 0) return this.startedMs + commandTimeoutMs
    return Math.min(
      longest,
      this.startedMs + Math.max(waitTimeMs, Math.min(commandTimeoutMs, FIRST_ATTEMPT_MS)),
    )
  }

  /** Stops listening to the caller's signal. */
  end(): void {
    if (this.#onAbort !== undefined) this.#signal?.removeEventListener('abort', this.#onAbort)
  }
}

/** The permits of an object that several can hold, as an answer told of them. */
export interface Room {
  /** How many are free. */
  readonly free: number
  /** How many there are in all; undefined: that was not told. */
  readonly total: number | undefined
  /** When the next one expires, `Infinity`: none does; undefined: that was not told. */
  readonly nextMs: number | undefined
}

/** One call of `acquire` or one of its kin, until it has a lease or not. */
export class Call extends Wait<ResolvedAcquireOptions> {
  readonly target: Target
  /** The owner of all attempts of this call; a new one after each give-back. */
  owner: string
  /** A copy of this owner's acquire may have been applied without our knowing, or may be on its way. */
  unsure = false
  /** The owner has a place in a queue of the engine. */
  queued = false
  /** Too few replicas had confirmed the last answered attempt. */
  shortfall: Shortfall | undefined = undefined
  /** What the last answered attempt saw. */
  seen: Busy['seen'] = undefined
  /** How many permits it wants, where there are some. */
  permits = 1
  /** What the last answer told of them. */
  room: Room | undefined = undefined
  /** The owner that writes and lets this reader in beside itself; empty: none. */
  writer = ''
  /** Somebody of this process was let in, and lets this call in with it. */
  letIn = false
  /** Told when the call is over, whatever came of it. */
  onEnd: (() => void) | undefined = undefined
  /** When to try again, where nobody tells of a release. */
  pauses: Pauses | undefined = undefined

  constructor(
    target: Target,
    options: ResolvedAcquireOptions,
    setting: { readonly clock: Clock; readonly owner: string },
  ) {
    super(target.title, options, setting.clock)
    this.target = target
    this.owner = setting.owner
  }

  override end(): void {
    super.end()
    this.onEnd?.()
    this.onEnd = undefined
  }
}
