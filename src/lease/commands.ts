import type { Clock, Timer } from '../clock.js'
import { abandon, EngineError, newPassage, type Engine, type Passage } from '../engine/engine.js'
import type { Operation, ReplyOf } from '../engine/operations.js'
import { ReplicationError, UnavailableError } from '../errors.js'
import { Deadlines, type Waiting } from './deadlines.js'
import type { Interrupt } from './interrupt.js'

/** How long, and for whom, a command may run. */
export interface CommandTerms {
  /** Monotonic time at which the caller stops waiting. */
  readonly deadlineMs: number
  /** Whether waiting for the reply keeps the process alive. */
  readonly keepAlive: boolean
  /** Ends the waiting early. */
  readonly interrupt?: Interrupt | undefined
}

const RETRY_MS = 50
const MAX_RETRY_MS = 1_000

/** Sends operations, each with a deadline of our own: the client's settings are not relied on. */
export class Commands {
  readonly engine: Engine
  readonly clock: Clock
  readonly timeoutMs: number
  /** Of the commands under way; those with a deadline out of order have a timer of their own. */
  readonly deadlines: Deadlines

  constructor(engine: Engine, clock: Clock, timeoutMs: number) {
    this.engine = engine
    this.clock = clock
    this.timeoutMs = timeoutMs
    this.deadlines = new Deadlines(clock)
  }

  /**
   * Sends one operation once. At the deadline, or when interrupted, the operation is abandoned: whether it
   * was sent stands in `passage`.
   */
  send<O extends Operation>(operation: O, passage: Passage, terms: CommandTerms): Promise<ReplyOf<O>> {
    return new Promise<ReplyOf<O>>((resolve, reject) => {
      const command = new Command<ReplyOf<O>>(this, { passage, terms, resolve, reject })
      // An interrupt that was there before is told at once.
      if (passage.abandoned) return
      this.engine.execute(operation, passage).then(
        (reply) => {
          command.answered(reply)
        },
        (error: unknown) => {
          command.failed(error)
        },
      )
    })
  }

  /**
   * Sends an operation that may be repeated freely until it is answered, within one command time-out. `passage`: of
   * all repetitions together, for those who have to know whether there were some.
   * @throws UnavailableError
   */
  async ask<O extends Operation>(operation: O, lock: string, passage?: Passage): Promise<ReplyOf<O>> {
    const deadlineMs = this.clock.now() + this.timeoutMs
    for (let pauseMs = RETRY_MS; ; pauseMs = nextPause(pauseMs)) {
      try {
        return await this.send(operation, passage ?? newPassage(), { deadlineMs, keepAlive: true })
      } catch (error) {
        if (!worthRetrying(error) || this.clock.now() + pauseMs >= deadlineMs) throw unavailable(error, lock)
      }
      await this.pause(pauseMs, true)
    }
  }

  /** Waits. */
  pause(ms: number, keepAlive: boolean): Promise<void> {
    return new Promise((resolve) => {
      this.clock.setTimer(resolve, ms, keepAlive)
    })
  }
}

interface CommandSetting<R> {
  readonly passage: Passage
  readonly terms: CommandTerms
  resolve(reply: R): void
  reject(error: Error): void
}

/** A command under way: it ends with the reply, at its deadline, or when it is interrupted. */
class Command<R> implements Waiting {
  before: Waiting | undefined = undefined
  after: Waiting | undefined = undefined
  readonly #setting: CommandSetting<R>
  readonly #deadlines: Deadlines
  readonly #timer: Timer | undefined
  #open = true

  constructor({ clock, deadlines }: Commands, setting: CommandSetting<R>) {
    const { deadlineMs, keepAlive, interrupt } = setting.terms
    this.#setting = setting
    this.#deadlines = deadlines
    if (deadlines.fits(deadlineMs)) deadlines.add(this)
    else
      this.#timer = clock.setTimer(
        () => {
          this.onDeadline()
        },
        deadlineMs - clock.now(),
        keepAlive,
      )
    interrupt?.listen((reason) => {
      this.#giveUp(asError(reason))
    })
  }

  get deadlineMs(): number {
    return this.#setting.terms.deadlineMs
  }

  get keepAlive(): boolean {
    return this.#setting.terms.keepAlive
  }

  answered(reply: R): void {
    if (this.#close()) this.#setting.resolve(reply)
  }

  failed(error: unknown): void {
    if (this.#close()) this.#setting.reject(asError(error))
  }

  onDeadline(): void {
    this.#giveUp(noAnswer(this.#setting.passage))
  }

  #giveUp(error: Error): void {
    if (!this.#close()) return
    abandon(this.#setting.passage)
    this.#setting.reject(error)
  }

  #close(): boolean {
    if (!this.#open) return false
    this.#open = false
    this.#setting.terms.interrupt?.listen(undefined)
    if (this.#timer !== undefined) this.#timer.cancel()
    else this.#deadlines.remove(this)
    return true
  }
}

/** The pause after this one: doubled up to a second. */
export function nextPause(ms: number): number {
  return Math.min(ms * 2, MAX_RETRY_MS)
}

/** Whether another attempt may succeed. */
export function worthRetrying(error: unknown): boolean {
  return error instanceof EngineError && error.kind === 'unavailable'
}

/** Whether the operation may have been executed although it failed. */
export function maybeApplied(error: unknown): boolean {
  return !(error instanceof EngineError) || error.outcome === 'unknown'
}

/** The error that a caller sees when the engine did not serve. */
export function unavailable(
  error: unknown,
  lock: string,
  what = 'Lock',
): UnavailableError | ReplicationError {
  if (error instanceof EngineError && error.shortfall !== undefined)
    return new ReplicationError(lock, error.shortfall, error.cause)
  const outcome = maybeApplied(error) ? 'unknown' : 'not-applied'
  const why = error instanceof Error ? error.message : String(error)
  return new UnavailableError(`${what} '${lock}': ${why}`, lock, { outcome, cause: causeOf(error) })
}

function causeOf(error: unknown): unknown {
  return error instanceof EngineError ? (error.cause ?? error) : error
}

/** A caller's abort reason may be anything; the call itself rejects with it unchanged. */
function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('interrupted', { cause: error })
}

function noAnswer(passage: Passage): EngineError {
  return passage.sends > 0
    ? new EngineError('No answer in time', { kind: 'unavailable', outcome: 'unknown' })
    : new EngineError('No connection in time', { kind: 'unavailable', outcome: 'not-applied' })
}
