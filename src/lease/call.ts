import { setMaxListeners } from 'node:events'
import type { Clock } from '../clock.js'
import type { ResolvedAcquireOptions } from '../options.js'
import { Interrupt } from './interrupt.js'
import type { Target } from './target.js'

/** The lock was still busy at the end: what `tryAcquire` turns into null and `acquire` into an error. */
export class Busy {
  readonly seen: { readonly holder: string; readonly ttlMs: number } | undefined

  constructor(seen: { readonly holder: string; readonly ttlMs: number } | undefined) {
    this.seen = seen
  }
}

/** A first attempt may take this long even if `waitTime` is shorter, so that a healthy server can answer it. */
const FIRST_ATTEMPT_MS = 100

/** One call of `acquire` or one of its kin, until it has a lease or not. */
export class Call extends Interrupt {
  readonly target: Target
  readonly options: ResolvedAcquireOptions
  readonly startedMs: number
  /** When waiting is over. */
  readonly deadlineMs: number
  /** The owner of all attempts of this call; a new one after each give-back. */
  owner: string
  /** It enters a lease that is held: closing does not end it, as long as that lease goes on. */
  nested = false
  /** That it waits was told. */
  announced = false
  /** A copy of this owner's acquire may have been applied without our knowing, or may be on its way. */
  unsure = false
  /** What the last answered attempt saw. */
  seen: Busy['seen'] = undefined
  readonly #clock: Clock
  readonly #signal: AbortSignal | undefined
  readonly #onAbort: (() => void) | undefined

  constructor(
    target: Target,
    options: ResolvedAcquireOptions,
    setting: { readonly clock: Clock; readonly owner: string },
  ) {
    super()
    this.target = target
    this.options = options
    this.owner = setting.owner
    this.#clock = setting.clock
    this.startedMs = setting.clock.now()
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
