import type { Clock, Timer } from '../clock.js'

/** A command that waits for its reply. */
export interface Waiting {
  readonly deadlineMs: number
  /** Whether waiting for it keeps the process alive. */
  readonly keepAlive: boolean
  /** Its neighbours in the list; written by {@link Deadlines} only. */
  before: Waiting | undefined
  after: Waiting | undefined
  /** Called once, when the deadline has passed. */
  onDeadline(): void
}

/**
 * Deadlines that come in the order in which they are added, as those of commands with one time-out do: a list
 * with one timer, so that a command costs neither a timer nor a place in a heap.
 */
export class Deadlines {
  readonly #clock: Clock
  #first: Waiting | undefined
  #last: Waiting | undefined
  #keepingAlive = 0
  #timer: Timer | undefined
  #timerAtMs = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether a deadline may be added: it is not earlier than those that are there. */
  fits(deadlineMs: number): boolean {
    return this.#last === undefined || this.#last.deadlineMs <= deadlineMs
  }

  /** Adds one at the end. */
  add(waiting: Waiting): void {
    waiting.before = this.#last
    if (this.#last === undefined) this.#first = waiting
    else this.#last.after = waiting
    this.#last = waiting
    if (waiting.keepAlive) this.#count(1)
    if (this.#timer === undefined || waiting.deadlineMs < this.#timerAtMs) this.#arm(waiting)
  }

  /** Takes one out. */
  remove(waiting: Waiting): void {
    const { before, after } = waiting
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    waiting.before = undefined
    waiting.after = undefined
    if (waiting.keepAlive) this.#count(-1)
  }

  // The timer stays when its command is done: it fires once in a time-out's length, finds nothing, and rests.
  #arm(first: Waiting): void {
    const delayMs = Math.max(0, first.deadlineMs - this.#clock.now())
    this.#timer?.cancel()
    this.#timerAtMs = first.deadlineMs
    this.#timer = this.#clock.setTimer(
      () => {
        this.#timer = undefined
        this.#expire()
      },
      delayMs,
      this.#keepingAlive > 0,
    )
  }

  #expire(): void {
    const nowMs = this.#clock.now()
    for (let first = this.#first; first !== undefined && first.deadlineMs <= nowMs; first = this.#first) {
      first.onDeadline()
      // A command that does not take itself out would keep the loop from ending.
      if (this.#first === first) this.remove(first)
    }
    if (this.#first !== undefined && this.#timer === undefined) this.#arm(this.#first)
  }

  #count(change: 1 | -1): void {
    const before = this.#keepingAlive
    this.#keepingAlive += change
    if (before === 0 || this.#keepingAlive === 0) this.#timer?.keepAlive(this.#keepingAlive > 0)
  }
}
