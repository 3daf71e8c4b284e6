/** One scene of the story: who does what, and who is inside with whom. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from './page.js'

const DID_WIDTH = 42
const NEVER = new AbortController().signal

/** What may be in the lock's place: taken before going inside, given back after coming out. */
export interface StoryLock {
  /** The actor. */
  readonly who: string
  /** Waits until the lock is this actor's. */
  take(): Promise<void>
  /** Frees it; takes that pause where a pause does the most harm. */
  give(pause?: () => Promise<void>): Promise<void>
  /** Aborts when the lock is lost, for locks that can tell. */
  readonly lost?: AbortSignal | undefined
}

/** Ends early, by rejecting, when the signal aborts. */
type Work = (signal: AbortSignal) => Promise<void>

export class Scene {
  /** Aborts when the demo is stopped or an actor has failed. */
  readonly stop: AbortSignal
  readonly #failed = new AbortController()
  readonly #page: Page
  readonly #startedAt = performance.now()
  readonly #inside = new Set<string>()
  readonly #met = new Set<string>()
  readonly #changes = new EventTarget()
  #togetherSince: number | undefined
  #togetherMs = 0

  constructor(page: Page, title: string, stop: AbortSignal) {
    this.stop = AbortSignal.any([stop, this.#failed.signal])
    this.#page = page
    page.line()
    page.line(`  ${page.paint('bold', title)}`)
  }

  /** Lets the actors act at once. When one fails the others stop. */
  async play(...acts: readonly (() => Promise<void>)[]): Promise<void> {
    const ends = acts.map(async (act) => {
      await act().catch((error: unknown) => {
        this.#failed.abort(error)
      })
    })
    await Promise.all(ends)
    this.stop.throwIfAborted()
  }

  /** A line: what an actor did, and what came of it. */
  tell(who: string, did: string, outcome = ''): void {
    if (this.stop.aborted) return
    const ms = Math.round(performance.now() - this.#startedAt).toString()
    const row = outcome === '' ? did : `${did.padEnd(DID_WIDTH)}  ${outcome}`
    this.#page.line(`${ms.padStart(7)}  ${this.#page.worker(who)}  ${row}`)
  }

  async pause(ms: number, signal = this.stop): Promise<void> {
    await sleep(ms, undefined, { signal })
  }

  /** Takes the lock, works inside, and gives it back. */
  async use(lock: StoryLock, work: Work): Promise<void> {
    await lock.take()
    try {
      await this.visit(lock, work)
    } finally {
      await lock.give()
    }
  }

  /** Goes inside, works until the work is done or the lock is lost, and comes out. */
  async visit({ who, lost = NEVER }: StoryLock, work: Work): Promise<void> {
    this.#enter(who)
    await work(AbortSignal.any([this.stop, lost])).catch((error: unknown) => {
      if (!lost.aborted) throw error
      this.tell(who, 'stops working: the lock is lost')
    })
    this.#leave(who)
  }

  #enter(who: string): void {
    this.#count(() => this.#inside.add(who))
    const others = [...this.#inside].filter((other) => other !== who)
    this.tell(who, others.length === 0 ? 'goes inside' : `goes inside, where ${others.join(' and ')} is`)
  }

  #leave(who: string): void {
    this.#count(() => this.#inside.delete(who))
    this.tell(who, 'comes out')
  }

  isInside(who: string): boolean {
    return this.#inside.has(who)
  }

  /** Who met inside, and for how long. */
  get together(): { readonly who: string; readonly ms: number } | undefined {
    if (this.#met.size === 0) return undefined
    return { who: [...this.#met].sort().join(' and '), ms: this.#togetherMs }
  }

  /** Resolves when the condition holds, which is looked at whenever somebody goes inside or comes out. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await once(this.#changes, 'change', { signal: this.stop })
  }

  #count(change: () => void): void {
    const nowMs = performance.now()
    if (this.#togetherSince !== undefined) this.#togetherMs += nowMs - this.#togetherSince
    change()
    const crowded = this.#inside.size > 1
    this.#togetherSince = crowded ? nowMs : undefined
    if (crowded) for (const who of this.#inside) this.#met.add(who)
    this.#changes.dispatchEvent(new Event('change'))
  }
}
