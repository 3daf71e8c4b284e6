import type { Wait } from '../lease/call.js'
import type { ResolvedWaitOptions } from '../options.js'

/** The longest pause between two looks where the caller says nothing, so that a lost message costs seconds. */
const CAP_MS = 5_000
/** Pauses without messages grow from the first to the last by half each time. */
const FIRST_MS = 20
const LAST_MS = 500

/** When to look again without a hint. */
export class PollPlan {
  #live = false
  #pauseMs = FIRST_MS
  #plan: { readonly fromMs: number; readonly pauseMs: number } | undefined
  #longestMs = CAP_MS

  /** Whether messages come; if not, pauses are short. */
  live(live: boolean): void {
    if (this.#live && !live) {
      this.#pauseMs = FIRST_MS
      this.#plan = undefined
    }
    this.#live = live
  }

  /** The engine has just answered: what was planned is void. */
  restart(): void {
    this.#plan = undefined
  }

  /** Plans for those who wait, unless that was done before, and tells how long it is until the look. */
  plan(nowMs: number, waiters: Iterable<Wait<ResolvedWaitOptions>>): number {
    this.#longestMs = Infinity
    for (const { options } of waiters) this.#longestMs = Math.min(this.#longestMs, options.pollMs ?? CAP_MS)
    this.#plan ??= { fromMs: nowMs, pauseMs: this.#live ? Infinity : this.#next() }
    return this.restMs(nowMs)
  }

  /** How long it is until the planned look. */
  restMs(nowMs: number): number {
    if (this.#plan === undefined) return Infinity
    const { fromMs, pauseMs } = this.#plan
    return Math.max(0, fromMs + Math.min(pauseMs, this.#longestMs) - nowMs)
  }

  #next(): number {
    const ms = this.#pauseMs
    this.#pauseMs = Math.min(ms * 1.5, LAST_MS)
    return ms * (0.75 + Math.random() / 2)
  }
}
