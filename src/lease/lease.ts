import { AsyncResource } from 'node:async_hooks'
import { events, type ReleaseEvent, type ReleaseOutcome } from '../diagnostics.js'
import { newPassage } from '../engine/engine.js'
import { LeaseLostError, NotHeldError, type LossReason } from '../errors.js'
import { duration } from '../option-checks.js'
import { nextPause, unavailable, worthRetrying } from './commands.js'
import { endTenure, leaveTenure } from './release.js'
import type { Runtime } from './runtime.js'
import { kindOf, type Target } from './target.js'
import { wallOffset, type Tenure, type TenureMember } from './tenure.js'
import { Turnstile } from './turnstile.js'

/**
 * One successful acquisition. `held` and `signal` tell the truth about it at any time: a lease ends for its
 * holder before the server can give the lock to anybody else.
 */
export interface Lease extends AsyncDisposable {
  /** The name of the lock, as it was given. */
  readonly lock: string
  /** The owner in Redis: `<client uuid>:<number>`. */
  readonly owner: string
  /** Whether the lock is ours right now. No I/O: judged by the local deadline. */
  readonly held: boolean
  /** Milliseconds until the local deadline (a watchdog moves it on); 0 when not held. */
  readonly remaining: number
  /** How many leases of this owner hold the lock (nested uses included). */
  readonly holdCount: number
  /** Aborts when the lease is lost, with a `LeaseLostError` as reason. A normal release does not abort it. */
  readonly signal: AbortSignal
  /** Does nothing while held. @throws LeaseLostError when lost, NotHeldError when released */
  assertHeld(): void
  /**
   * Makes the lease last at least `ms` from now and ends its watchdog. Never shortens.
   * @throws LeaseLostError, NotHeldError, UnavailableError; RangeError for `ms` outside 1…2^53−1
   */
  extend(ms: number): Promise<void>
  /** Runs a callback in the scope of this lease: the same lock re-enters there. @throws LeaseLostError or NotHeldError if it cannot be entered */
  run<T>(callback: () => T | PromiseLike<T>): Promise<T>
  /** Ends the lease. Idempotent, never rejects, never touches somebody else's lock. */
  release(): Promise<ReleaseOutcome>
}

/** What a lease begins with. */
export interface LeaseTerms {
  readonly target: Target
  readonly tenure: Tenure
  /** Kept alive by the watchdog. */
  readonly watched: boolean
  readonly maxHoldMs: number
  /** Told when the lease is over; lets the next sibling in. */
  readonly onEnd?: (() => void) | undefined
}

const EXTEND_RANGE = { min: 1, max: Number.MAX_SAFE_INTEGER }

/** The lease that users hold. */
export class HeldLease implements Lease, TenureMember {
  readonly tenure: Tenure
  readonly maxHoldAtMs: number
  /** Whoever waits for the work is told of a loss by a rejection. */
  reported = false
  readonly #runtime: Runtime
  readonly #target: Target
  readonly #grantedAtMs: number
  #onEnd: (() => void) | undefined
  #lost: LossReason | undefined
  #watched: boolean
  #controller: AbortController | undefined
  #context: AsyncResource | undefined
  #turnstile: Turnstile | undefined
  #observed = false
  #running = 0
  #released: Promise<ReleaseOutcome> | undefined
  #whenLost: ((reason: LossReason) => void) | undefined

  constructor(runtime: Runtime, terms: LeaseTerms) {
    const { tenure, target } = terms
    this.#runtime = runtime
    this.#target = target
    this.tenure = tenure
    this.#watched = terms.watched
    this.#onEnd = terms.onEnd
    this.#grantedAtMs = runtime.clock.now()
    this.maxHoldAtMs = this.#grantedAtMs + terms.maxHoldMs
    tenure.join(this)
    if (terms.watched) tenure.watched += 1
    runtime.watchdog.watch(tenure)
  }

  get lock(): string {
    return this.#target.title
  }

  get owner(): string {
    return this.tenure.shown
  }

  /** The lease is handed over to its caller, and lasts so long at least: what is given back before is free at once. */
  handOver(minHoldMs: number): this {
    if (minHoldMs > 0) this.tenure.keepUntil(this.#grantedAtMs + minHoldMs)
    return this
  }

  /** A release within this time from now leaves the key for the rest of it. */
  keepFor(ms: number): void {
    if (ms > 0) this.tenure.keepUntil(this.#runtime.clock.now() + ms)
  }

  /** Ends the renewal on behalf of this lease: the key stays until the release, or the end of its TTL. */
  letExpire(): void {
    if (!this.#watched) return
    this.#unwatch()
    this.#runtime.watchdog.watch(this.tenure)
  }

  /** Tells a loss to the lease of several locks that this one is a part of. */
  watchLoss(listener: (reason: LossReason) => void): void {
    this.#observed = true
    this.#whenLost = listener
    if (this.#lost !== undefined) listener(this.#lost)
  }

  /** Whether the lease was made by this runtime. */
  isOf(runtime: Runtime): boolean {
    return this.#runtime === runtime
  }

  /** Whether the lease was released, lost or not. */
  get released(): boolean {
    return this.#released !== undefined
  }

  /** Whether the lease can be entered: neither released nor lost. */
  get live(): boolean {
    return this.#released === undefined && this.tenure.state === 'held'
  }

  /** Takes turns among the nested holds of this lease. */
  get turnstile(): Turnstile {
    this.#turnstile ??= new Turnstile(this.live)
    return this.#turnstile
  }

  /** Why the lease was lost, if it was. */
  get lossReason(): LossReason | undefined {
    this.#observed = true
    this.#stillHeld()
    return this.#lost
  }

  /** Whether a callback of `using` or `run` has not settled. */
  get running(): boolean {
    return this.#running > 0
  }

  get held(): boolean {
    this.#observed = true
    return this.#released === undefined && this.#stillHeld()
  }

  get remaining(): number {
    return this.held ? this.tenure.remainingMs : 0
  }

  get holdCount(): number {
    return this.held ? this.tenure.members.length : 0
  }

  get signal(): AbortSignal {
    this.#observed = true
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      // Listeners hear of a loss in the context of the code that looks at the signal, not in that of a timer.
      this.#context = new AsyncResource('HoldfastLease')
    }
    if (this.#released === undefined) this.#stillHeld()
    if (this.#lost !== undefined) this.#abort(this.#lost)
    return this.#controller.signal
  }

  assertHeld(): void {
    this.#observed = true
    const trouble = this.#trouble()
    if (trouble !== undefined) throw trouble
    if (!this.#stillHeld()) throw new LeaseLostError(this.lock, this.tenure.lossReason ?? 'unknown')
  }

  async extend(ms: number): Promise<void> {
    const ttlMs = extendTime(ms)
    this.assertLive()
    await this.tenure.serially(() => this.#raise(ttlMs))
    if (this.#watched) this.#unwatch()
    this.#runtime.watchdog.watch(this.tenure)
  }

  async run<T>(callback: () => T | PromiseLike<T>): Promise<T> {
    this.assertLive()
    this.#running += 1
    try {
      return await this.#runtime.scope.enter(this, this.#target, callback)
    } finally {
      this.#running -= 1
    }
  }

  /** What `JSON.stringify` and loggers show. */
  toJSON(): { readonly lock: string; readonly owner: string } {
    return { lock: this.lock, owner: this.owner }
  }

  release(): Promise<ReleaseOutcome> {
    return this.releaseBy(endTenure)
  }

  /** The same, with another way to end the owner if this is its last lease. */
  releaseBy(end: typeof endTenure): Promise<ReleaseOutcome> {
    return (this.#released ??= this.#end(end))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  onLost(reason: LossReason): void {
    this.#lost = reason
    this.#over()
    this.#whenLost?.(reason)
    if (this.#controller !== undefined) this.#abort(reason)
    else if (!this.#observed && !this.reported && reason !== 'closed') warnOfLoss(this.lock, reason)
  }

  /** @throws LeaseLostError or NotHeldError */
  assertLive(): void {
    const trouble = this.#trouble()
    if (trouble !== undefined) throw trouble
  }

  #trouble(): Error | undefined {
    if (this.#released !== undefined) return new NotHeldError(this.lock)
    this.#stillHeld()
    const { lossReason } = this.tenure
    return lossReason === undefined ? undefined : new LeaseLostError(this.lock, lossReason)
  }

  #stillHeld(): boolean {
    const { tenure } = this
    if (tenure.state === 'held' && tenure.doubtful) this.#runtime.watchdog.confirmSoon(tenure)
    return tenure.held
  }

  #abort(reason: LossReason): void {
    this.#context?.runInAsyncScope(() => this.#controller?.abort(new LeaseLostError(this.lock, reason)))
  }

  #unwatch(): void {
    this.#watched = false
    this.tenure.watched -= 1
  }

  async #raise(leastMs: number): Promise<void> {
    const { commands, clock } = this.#runtime
    const { tenure } = this
    const ttlMs = tenure.wantedTtl(leastMs)
    const deadlineMs = Math.min(clock.now() + commands.timeoutMs, tenure.deadlineMs)
    const { target, owner } = tenure
    const operation = kindOf(target).renew([{ name: target.name, owner }], ttlMs)
    for (let pauseMs = 50; ; pauseMs = nextPause(pauseMs)) {
      const passage = newPassage()
      const wallOffsetMs = wallOffset(clock)
      try {
        const { results } = await commands.send(operation, passage, { deadlineMs, keepAlive: true })
        if (results[0] !== 'renewed') tenure.lose(clock.now() < tenure.deadlineMs ? 'stolen' : 'expired')
        else tenure.confirm({ sentAtMs: passage.firstSentAtMs, wallOffsetMs, ttlMs })
        this.assertLive()
        return
      } catch (error) {
        this.assertLive()
        if (!worthRetrying(error) || clock.now() + pauseMs >= deadlineMs)
          throw unavailable(error, this.lock, kindOf(target).noun)
      }
      await commands.pause(pauseMs, true)
    }
  }

  // Everything up to the first command happens in the caller's turn: no renewal and no re-entry after it.
  #end(end: typeof endTenure): Promise<ReleaseOutcome> {
    const { tenure } = this
    const last = tenure.part(this)
    this.#over()
    if (this.#watched) this.#unwatch()
    if (last) tenure.end()
    else this.#runtime.watchdog.watch(tenure)
    const ending = last ? end(this.#runtime, tenure) : leaveTenure(this.#runtime, tenure)
    this.#runtime.beginRelease()
    return ending.then((outcome) => {
      this.#runtime.endRelease()
      return this.#tell(outcome)
    })
  }

  #over(): void {
    this.#turnstile?.close()
    const onEnd = this.#onEnd
    this.#onEnd = undefined
    onEnd?.()
  }

  #tell(outcome: ReleaseOutcome): ReleaseOutcome {
    if (events.release.hasSubscribers) {
      const held = this.#runtime.clock.now() - this.#grantedAtMs
      events.release.publish({ lock: this.lock, owner: this.owner, outcome, held } satisfies ReleaseEvent)
    }
    return outcome
  }
}

/** Checks what `extend` is given. @throws TypeError or RangeError */
export function extendTime(ms: number): number {
  const ttlMs = duration(ms, 'ms', EXTEND_RANGE)
  if (ttlMs === undefined) throw new TypeError('ms must be a number, but is undefined')
  return ttlMs
}

/** Tells of a lost lease that nobody looked at. */
export function warnOfLoss(lock: string, reason: LossReason): void {
  process.emitWarning(
    `The lease of '${lock}' was lost (${reason}) and nobody looked at its signal, held or assertHeld()`,
    { type: 'HoldfastWarning', code: 'HOLDFAST_LEASE_LOST' },
  )
}
