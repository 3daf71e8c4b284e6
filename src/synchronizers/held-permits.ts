import { diagnose, events, type GiveBackOutcome, type ReleaseEvent } from '../diagnostics.js'
import type { SemaphoreEndReply } from '../engine/operations.js'
import type { Grant } from '../lease/grants.js'
import type { Runtime } from '../lease/runtime.js'
import { Repeated, REQUEST_MS, type Send, type Subject } from './request.js'

/** A return without an answer goes on in the background for so long, unless a copy of it was sent before. */
const PERSIST_MS = 300_000

/** Permits that were taken, until they are given back. They have no lease: if this process dies, they are lost. */
export interface SemaphoreGrant extends AsyncDisposable {
  /** The name of the semaphore, as it was given. */
  readonly semaphore: string
  /** How many they are. */
  readonly permits: number
  /** Whether they were given back, or are about to be. */
  readonly released: boolean
  /** Gives all of them back, once however often it is called. Never rejects. */
  release(): Promise<GiveBackOutcome>
  /** The same as `release()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** Which permits. */
export interface Taken {
  readonly subject: Subject
  /** Under which they were taken; they are given back under the same. */
  readonly request: string
  readonly permits: number
}

/** The handle behind the interface. */
export class HeldPermits implements SemaphoreGrant, Grant {
  readonly permits: number
  readonly request: string
  /** A callback works under it. */
  running = false
  readonly #runtime: Runtime
  readonly #taken: Taken
  readonly #grantedMs: number
  #release: Promise<GiveBackOutcome> | undefined

  constructor(runtime: Runtime, taken: Taken) {
    this.permits = taken.permits
    this.request = taken.request
    this.#runtime = runtime
    this.#taken = taken
    this.#grantedMs = runtime.clock.now()
    runtime.grants.add(this)
  }

  get semaphore(): string {
    return this.#taken.subject.title
  }

  get released(): boolean {
    return this.#release !== undefined
  }

  release(): Promise<GiveBackOutcome> {
    return (this.#release ??= this.#giveBack().then((outcome) => this.#published(outcome)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  #published(outcome: GiveBackOutcome): GiveBackOutcome {
    if (events.release.hasSubscribers) {
      const held = this.#runtime.clock.now() - this.#grantedMs
      const event = { lock: this.semaphore, owner: this.request, outcome, held }
      events.release.publish(event satisfies ReleaseEvent)
    }
    return outcome
  }

  async #giveBack(): Promise<GiveBackOutcome> {
    const runtime = this.#runtime
    const { clock, commands } = runtime
    const repeated = new Repeated(runtime, returning(runtime, this.#taken))
    runtime.beginRelease()
    try {
      return outcomeOf(this.semaphore, await repeated.answer(clock.now() + commands.timeoutMs, true))
    } catch {
      runtime.compensations.background(
        this.semaphore,
        'A return of permits got no answer and is repeated',
        () => repeated.answer(clock.now() + PERSIST_MS, false),
      )
      return 'unknown'
    } finally {
      runtime.endRelease()
      runtime.grants.remove(this)
    }
  }
}

/** Gives permits back; with 0 of them: undoes whatever the request has taken, if anything. */
export function returning(
  { commands }: Runtime,
  { subject: { name }, request, permits }: Taken,
): Send<SemaphoreEndReply> {
  return (passage, terms) =>
    commands.send({ op: 'semaphore.end', name, request, permits, requestMs: REQUEST_MS }, passage, terms)
}

function outcomeOf(title: string, { outcome }: SemaphoreEndReply): GiveBackOutcome {
  if (outcome === 'unannounced')
    diagnose(title, 'unannounced', 'The server refused to publish the release; waiters find out by polling')
  return outcome === 'gone' || outcome === 'foreign' ? 'gone' : 'released'
}
