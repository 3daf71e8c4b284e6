import type { Clock, Timer } from '../clock.js'
import { abandon, EngineError, newPassage, type Engine, type Passage } from '../engine/engine.js'
import type { Operation, ReplyOf } from '../engine/operations.js'
import { UnavailableError } from '../errors.js'
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

  constructor(engine: Engine, clock: Clock, timeoutMs: number) {
    this.engine = engine
    this.clock = clock
    this.timeoutMs = timeoutMs
  }

  /**
   * Sends one operation once. At the deadline, or when interrupted, the operation is abandoned: whether it
   * was sent stands in `passage`.
   */
  send<O extends Operation>(operation: O, passage: Passage, terms: CommandTerms): Promise<ReplyOf<O>> {
    return new Promise((resolve, reject) => {
      const { clock } = this
      const { interrupt } = terms
      let timer: Timer | undefined = undefined
      const giveUp = (error: unknown): void => {
        timer?.cancel()
        abandon(passage)
        reject(asError(error))
      }
      timer = clock.setTimer(
        () => {
          interrupt?.listen(undefined)
          giveUp(noAnswer(passage))
        },
        terms.deadlineMs - clock.now(),
        terms.keepAlive,
      )
      interrupt?.listen(giveUp)
      if (passage.abandoned) return
      this.engine.execute(operation, passage).then(
        (reply) => {
          timer.cancel()
          interrupt?.listen(undefined)
          resolve(reply)
        },
        (error: unknown) => {
          timer.cancel()
          interrupt?.listen(undefined)
          reject(asError(error))
        },
      )
    })
  }

  /**
   * Sends an operation that may be repeated freely until it is answered, within one command time-out.
   * @throws UnavailableError
   */
  async ask<O extends Operation>(operation: O, lock: string): Promise<ReplyOf<O>> {
    const deadlineMs = this.clock.now() + this.timeoutMs
    for (let pauseMs = RETRY_MS; ; pauseMs = nextPause(pauseMs)) {
      try {
        return await this.send(operation, newPassage(), { deadlineMs, keepAlive: true })
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
export function unavailable(error: unknown, lock: string): UnavailableError {
  const outcome = maybeApplied(error) ? 'unknown' : 'not-applied'
  const why = error instanceof Error ? error.message : String(error)
  return new UnavailableError(`Lock '${lock}': ${why}`, lock, { outcome, cause: causeOf(error) })
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
