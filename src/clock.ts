import { uptime } from 'node:os'

/** A pending timer. */
export interface Timer {
  /** Withdraws it; harmless when it has fired. */
  cancel(): void
  /** Whether it keeps the process alive from now on. */
  keepAlive(on: boolean): void
}

/**
 * Where Holdfast takes its time from. Promises about leases rest on the monotonic `now()`; the other
 * two only tell whether the machine slept, because a monotonic clock stands still meanwhile.
 */
export interface Clock {
  /** Monotonic milliseconds from an arbitrary start. */
  now(): number
  /** Wall-clock milliseconds since the epoch. */
  wall(): number
  /** Milliseconds since the machine was booted, its sleep included. */
  uptime(): number
  /** Calls back once after `delayMs` (any length). `keepAlive` false lets the process exit meanwhile. */
  setTimer(callback: () => void, delayMs: number, keepAlive: boolean): Timer
}

/** The longest delay that Node's timers take; longer ones are re-armed in steps. */
const MAX_STEP_MS = 2 ** 31 - 1

class SystemTimer implements Timer {
  #handle: NodeJS.Timeout
  readonly #callback: () => void
  #keepAlive: boolean

  constructor(callback: () => void, delayMs: number, keepAlive: boolean) {
    this.#callback = callback
    this.#keepAlive = keepAlive
    this.#handle = this.#arm(delayMs)
  }

  #arm(delayMs: number): NodeJS.Timeout {
    const handle =
      delayMs <= MAX_STEP_MS
        ? setTimeout(this.#callback, Math.ceil(delayMs))
        : setTimeout(() => {
            this.#handle = this.#arm(delayMs - MAX_STEP_MS)
          }, MAX_STEP_MS)
    if (!this.#keepAlive) handle.unref()
    return handle
  }

  cancel(): void {
    clearTimeout(this.#handle)
  }

  keepAlive(on: boolean): void {
    this.#keepAlive = on
    if (on) this.#handle.ref()
    else this.#handle.unref()
  }
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  uptime: () => uptime() * 1_000,
  setTimer: (callback, delayMs, keepAlive) => new SystemTimer(callback, delayMs, keepAlive),
}

interface ManualTimer extends Timer {
  readonly dueMs: number
  readonly sequence: number
  readonly callback: () => void
}

/**
 * A clock that stands still until a test moves it, for unit tests on the memory engine:
 * `Holdfast.connect('memory:', { clock })`.
 */
export class ManualClock implements Clock {
  #nowMs = 0
  #sleptMs = 0
  #sequence = 0
  readonly #startWallMs: number
  readonly #timers = new Set<ManualTimer>()

  /** `startWallMs` is the wall clock at the start, in epoch milliseconds. */
  constructor(startWallMs = 1_000_000) {
    this.#startWallMs = startWallMs
  }

  /** Monotonic milliseconds since the clock was made. */
  now(): number {
    return this.#nowMs
  }

  /** The start plus all time that has passed, machine sleep included. */
  wall(): number {
    return this.#startWallMs + this.#nowMs + this.#sleptMs
  }

  /** All time that has passed, machine sleep included. */
  uptime(): number {
    return this.#nowMs + this.#sleptMs
  }

  /** How many timers are pending. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /** Registers a timer; it fires during {@link advance}. */
  setTimer(callback: () => void, delayMs: number): Timer {
    const timer: ManualTimer = {
      dueMs: this.#nowMs + Math.max(0, delayMs),
      sequence: this.#sequence++,
      callback,
      cancel: () => this.#timers.delete(timer),
      keepAlive: () => undefined,
    }
    this.#timers.add(timer)
    return timer
  }

  /**
   * Moves time forward by `ms` and fires what is due, in order, letting pending promises settle before
   * and after each timer.
   */
  async advance(ms: number): Promise<void> {
    checkStep(ms)
    const targetMs = this.#nowMs + ms
    await settle()
    for (let timer = this.#next(targetMs); timer !== undefined; timer = this.#next(targetMs)) {
      this.#timers.delete(timer)
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs)
      timer.callback()
      await settle()
    }
    // Another advance, or a block in a timer, may have gone further.
    this.#nowMs = Math.max(this.#nowMs, targetMs)
    await settle()
  }

  /** Jumps over `ms` without firing timers on the way, as a blocked event loop does; what is overdue fires at the next {@link advance}. */
  block(ms: number): void {
    checkStep(ms)
    this.#nowMs += ms
  }

  /** Lets the machine sleep: wall clock and uptime move by `ms`, the monotonic clock stands still. */
  sleepMachine(ms: number): void {
    checkStep(ms)
    this.#sleptMs += ms
  }

  #next(untilMs: number): ManualTimer | undefined {
    let next: ManualTimer | undefined
    for (const timer of this.#timers) {
      if (timer.dueMs > untilMs) continue
      if (
        next === undefined ||
        timer.dueMs < next.dueMs ||
        (timer.dueMs === next.dueMs && timer.sequence < next.sequence)
      )
        next = timer
    }
    return next
  }
}

function checkStep(ms: number): void {
  if (!Number.isFinite(ms) || ms < 0)
    throw new RangeError(`ms must be a number from 0 on, but is ${String(ms)}`)
}

/** Two turns of the event loop: enough for chains of promises of any length. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
