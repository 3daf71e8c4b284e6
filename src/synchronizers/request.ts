import { EngineError, newPassage, type Passage } from '../engine/engine.js'
import { ClosedError, WrongTypeError } from '../errors.js'
import { maybeApplied, nextPause, unavailable, worthRetrying, type CommandTerms } from '../lease/commands.js'
import type { Runtime } from '../lease/runtime.js'

/** How long the server keeps the note of a request. */
export const REQUEST_MS = 60_000
/** How long after its first sending a request may be sent again: the note of the first copy is surely there. */
export const RESEND_MS = 30_000

const RETRY_MS = 50
/** An undoing is tried for so long: clients may send what was in flight once more after a break. */
const UNDO_MS = 300_000

/** The object that a request is about. */
export interface Subject {
  /** For messages. */
  readonly what: 'Semaphore' | 'Latch'
  /** The base name in the engine. */
  readonly name: string
  /** The name as the caller gave it. */
  readonly title: string
  /** What is expected under the name, for messages. @defaultValue a whole number */
  readonly expected?: string
}

/** One sending of a request. */
export type Send<R> = (passage: Passage, terms: CommandTerms) => Promise<R>

/** A request that is sent again until it is answered, as long as that is safe. */
export class Repeated<R> {
  /** A copy may have been applied without our knowing. */
  unsure = false
  readonly #runtime: Runtime
  readonly #send: Send<R>
  readonly #always: boolean
  #limitMs = Infinity

  /** `always`: copies do no harm at any time, not only as long as the note of the first one lasts. */
  constructor(runtime: Runtime, send: Send<R>, always = false) {
    this.#runtime = runtime
    this.#send = send
    this.#always = always
  }

  /** Sends until there is an answer, or until then. @throws EngineError */
  async answer(untilMs: number, keepAlive: boolean): Promise<R> {
    const { clock, commands } = this.#runtime
    for (let pauseMs = RETRY_MS; ; pauseMs = nextPause(pauseMs)) {
      const passage = newPassage()
      if (clock.now() >= this.#limitMs)
        throw new EngineError('No answer for too long to try again', { kind: 'refused', outcome: 'unknown' })
      try {
        const deadlineMs = Math.min(untilMs, this.#limitMs, clock.now() + commands.timeoutMs)
        return await this.#send(passage, { deadlineMs, keepAlive })
      } catch (reason) {
        const error = trouble(reason)
        this.#noAnswer(passage, error)
        const over = this.#runtime.closed || clock.now() + pauseMs >= Math.min(untilMs, this.#limitMs)
        if (over || !worthRetrying(error)) throw error
      }
      await commands.pause(pauseMs, keepAlive)
    }
  }

  #noAnswer(passage: Passage, error: unknown): void {
    if (passage.sends === 0 || !maybeApplied(error)) return
    this.unsure = true
    if (this.#limitMs === Infinity && !this.#always) this.#limitMs = passage.firstSentAtMs + RESEND_MS
  }
}

/** What kept an operation from being answered; a reply that no script gives is one, too. */
export function trouble(error: unknown): EngineError {
  if (error instanceof EngineError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new EngineError(message, { kind: 'refused', outcome: 'unknown', cause: error })
}

/**
 * Asks for a change that is made at most once. If there is no answer, `undo` goes on in the background: it takes back
 * what can be taken back, and refuses copies that come after it. @throws UnavailableError, WrongTypeError, ClosedError
 */
export async function change<R extends { readonly outcome: string }>(
  runtime: Runtime,
  subject: Subject,
  request: { readonly send: Send<R>; readonly undo: Send<unknown> },
): Promise<Exclude<R, { readonly outcome: 'foreign' | 'dead' }>> {
  const { clock, commands } = runtime
  if (runtime.closed) throw new ClosedError(subject.title)
  const repeated = new Repeated(runtime, request.send)
  runtime.beginRelease()
  try {
    return answered(subject, await repeated.answer(clock.now() + commands.timeoutMs, true))
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    if (repeated.unsure) undo(runtime, subject, request.undo)
    throw failure(subject, error, repeated.unsure)
  } finally {
    runtime.endRelease()
  }
}

/** Takes back in the background what may have been applied, and refuses late copies. */
export function undo(runtime: Runtime, subject: Subject, send: Send<unknown>): void {
  runtime.compensations.background(subject.title, 'A request has an unknown outcome and is undone', () =>
    new Repeated(runtime, send, true).answer(runtime.clock.now() + UNDO_MS, false),
  )
}

/** Reads something, as often as it takes. @throws UnavailableError, WrongTypeError, ClosedError */
export async function ask<R extends { readonly outcome: string }>(
  runtime: Runtime,
  subject: Subject,
  send: Send<R>,
): Promise<Exclude<R, { readonly outcome: 'foreign' | 'dead' }>> {
  const { clock, commands } = runtime
  if (runtime.closed) throw new ClosedError(subject.title)
  try {
    const repeated = new Repeated(runtime, send, true)
    return answered(subject, await repeated.answer(clock.now() + commands.timeoutMs, true))
  } catch (error) {
    throw error instanceof EngineError ? unavailable(error, subject.title, subject.what) : error
  }
}

/** The error that a caller sees. */
export function failure(subject: Subject, error: EngineError, unsure: boolean): Error {
  const { message, kind, cause, shortfall } = error
  // The last copy may not have been sent; what matters is whether any of them may have been applied.
  const outcome = unsure ? 'unknown' : error.outcome
  return unavailable(
    new EngineError(message, { kind, outcome, cause, shortfall }),
    subject.title,
    subject.what,
  )
}

/** Other data is under the name. */
export function wrongType({ what, name, title, expected }: Subject): WrongTypeError {
  return new WrongTypeError(title, name, expected ?? `a ${what.toLowerCase()} (a whole number)`)
}

function answered<R extends { readonly outcome: string }>(
  subject: Subject,
  reply: R,
): Exclude<R, { readonly outcome: 'foreign' | 'dead' }> {
  if (reply.outcome === 'foreign') throw wrongType(subject)
  if (reply.outcome === 'dead')
    throw new EngineError('The request was ended before', { kind: 'refused', outcome: 'not-applied' })
  return reply as Exclude<R, { readonly outcome: 'foreign' | 'dead' }>
}
