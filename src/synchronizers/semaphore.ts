import { diagnose } from '../diagnostics.js'
import { WaitTimeoutError } from '../errors.js'
import type { Runtime } from '../lease/runtime.js'
import type { TryUsingResult } from '../locks/holder-lock.js'
import { duration, refuseUnknown, wholeNumber } from '../option-checks.js'
import { resolveWaitOptions, type WaitOptions } from '../options.js'
import { returning, type HeldPermits, type SemaphoreGrant } from './held-permits.js'
import { acquirePermits, TooFew } from './permit-acquire.js'
import { ask, change, REQUEST_MS, type Send, type Subject } from './request.js'
import { wantedOf, workOf, type Wanted } from './semaphore-arguments.js'

/** How a semaphore begins. */
export interface SemaphoreOptions {
  /**
   * With how many permits it begins where nobody has set a number yet, and the most that this object takes in one
   * call. 1…2^53−1. @defaultValue none: acquiring fails until `trySet` was called
   */
  readonly permits?: number | undefined
}

/** How a number of permits is set. */
export interface TrySetOptions {
  /** After this time in milliseconds the server forgets the number. 1…2^53−1. @defaultValue never */
  readonly ttl?: number | undefined
}

/** What runs under permits. */
export type UnderPermits<T> = (grant: SemaphoreGrant) => T | PromiseLike<T>

/**
 * A number of permits that all processes share, on the same key as Redisson's `RSemaphore`. It is a bare number
 * without owners or leases: **permits of a process that dies are lost** until somebody adds them again. Where that
 * matters, use a permit semaphore.
 *
 * Numbers of permits are whole, from 1 to 2^53−1; others are a `RangeError` or `TypeError` before any I/O. So are more
 * permits in one call than the option `permits`: they would be waited for without end. Where `add` has raised the
 * number, give the highest one as `permits`, or leave the option out; without it, too many are waited for.
 *
 * A change that rejects with `outcome: 'unknown'` is undone in the background, if it was made; but not `trySet`.
 */
export interface Semaphore {
  /** The name, as it was given. */
  readonly name: string
  /**
   * Takes permits (one by default), all or none, and waits for them, by default until `signal` aborts.
   * @throws WaitTimeoutError when `waitTime` is over, NotInitialisedError, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  acquire(permits?: number, options?: WaitOptions): Promise<SemaphoreGrant>
  /** The same for one permit. */
  acquire(options: WaitOptions): Promise<SemaphoreGrant>
  /**
   * Takes permits if they are free at once, or within `waitTime`. Null: they were not.
   * @throws NotInitialisedError, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  tryAcquire(permits?: number, options?: WaitOptions): Promise<SemaphoreGrant | null>
  /** The same for one permit. */
  tryAcquire(options: WaitOptions): Promise<SemaphoreGrant | null>
  /** Takes one permit, runs the callback, gives it back. @throws what the callback throws, or what `acquire` throws */
  using<T>(callback: UnderPermits<T>): Promise<T>
  /** The same with several permits, or with options. */
  using<T>(first: number | WaitOptions, callback: UnderPermits<T>): Promise<T>
  /** The same with both. */
  using<T>(permits: number, options: WaitOptions, callback: UnderPermits<T>): Promise<T>
  /** `using` if the permit can be had at once, or within `waitTime`. @throws as `using`, but not when there are too few */
  tryUsing<T>(callback: UnderPermits<T>): Promise<TryUsingResult<T>>
  /** The same with several permits, or with options. */
  tryUsing<T>(first: number | WaitOptions, callback: UnderPermits<T>): Promise<TryUsingResult<T>>
  /** The same with both. */
  tryUsing<T>(permits: number, options: WaitOptions, callback: UnderPermits<T>): Promise<TryUsingResult<T>>
  /**
   * Gives permits back by number, whoever took them: for permits that Java took, or that came from `drain`. What was
   * acquired here is given back by its handle. A semaphore without a number gets this one, unless it has the option
   * `permits`: then there was nothing to give back. @throws UnavailableError, WrongTypeError, ClosedError; RangeError above 2^53−1
   */
  release(permits?: number): Promise<void>
  /** The same, but never makes a number where there is none; resolves to whether there was one. @throws as `release` */
  releaseIfExists(permits?: number): Promise<boolean>
  /** Takes all permits that are free, and resolves to how many. The TTL stays. @throws UnavailableError, WrongTypeError, ClosedError */
  drain(): Promise<number>
  /** How many permits are free; negative after more were taken off with `add` than were free. @throws UnavailableError, WrongTypeError, ClosedError */
  available(): Promise<number>
  /**
   * Sets the number (from 0 on) if there is none yet; resolves to whether it did. With `outcome: 'unknown'` it may have:
   * others may count on the number already, so it stays. Do it again; false means that there is a number, too.
   * @throws UnavailableError, WrongTypeError, ClosedError
   */
  trySet(permits: number, options?: TrySetOptions): Promise<boolean>
  /** Changes the number by so many permits, which may be negative and does not wait then. The TTL stays. @throws UnavailableError, WrongTypeError, ClosedError; RangeError beyond 2^53−1 */
  add(permits: number): Promise<void>
}

const SEMAPHORE_KEYS: ReadonlySet<string> = new Set<keyof SemaphoreOptions>(['permits'])
const SET_KEYS: ReadonlySet<string> = new Set<keyof TrySetOptions>(['ttl'])

/** What every change carries. */
interface Noted {
  readonly name: string
  readonly request: string
  readonly requestMs: number
}

/** The object behind the interface. Cheap: no I/O and no registration until used. */
export class CountedSemaphore implements Semaphore {
  readonly #runtime: Runtime
  readonly #subject: Subject
  readonly #initial: number | undefined

  constructor(
    runtime: Runtime,
    target: { readonly name: string; readonly title: string },
    options: SemaphoreOptions,
  ) {
    refuseUnknown(options, SEMAPHORE_KEYS, 'semaphore options')
    this.#runtime = runtime
    this.#subject = { what: 'Semaphore', ...target }
    this.#initial = options.permits === undefined ? undefined : wholeNumber(options.permits, 'permits')
  }

  get name(): string {
    return this.#subject.title
  }

  async acquire(...given: readonly unknown[]): Promise<SemaphoreGrant> {
    return this.#acquire(wantedOf(given))
  }

  async tryAcquire(...given: readonly unknown[]): Promise<SemaphoreGrant | null> {
    const result = await this.#take(wantedOf(given), true)
    return result instanceof TooFew ? null : result
  }

  async using<T>(...given: readonly unknown[]): Promise<T> {
    const work = workOf<UnderPermits<T>>(given)
    return runUnder(await this.#acquire(work), work.callback)
  }

  async tryUsing<T>(...given: readonly unknown[]): Promise<TryUsingResult<T>> {
    const work = workOf<UnderPermits<T>>(given)
    const result = await this.#take(work, true)
    if (result instanceof TooFew) return { acquired: false }
    return { acquired: true, value: await runUnder(result, work.callback) }
  }

  async release(permits = 1): Promise<void> {
    const back = wholeNumber(permits, 'permits')
    // A number of its own would be taken for the whole of a semaphore that knows how it begins.
    await this.#add(back, this.#initial === undefined ? 0 : -1)
  }

  async releaseIfExists(permits = 1): Promise<boolean> {
    return this.#add(wholeNumber(permits, 'permits'), -1)
  }

  async drain(): Promise<number> {
    const initial = this.#initial ?? 0
    const on = this.#request()
    const { permits } = await this.#change(on, (passage, terms) =>
      this.#runtime.commands.send({ op: 'semaphore.drain', ...on, initial }, passage, terms),
    )
    return permits
  }

  async available(): Promise<number> {
    const { commands } = this.#runtime
    const { name } = this.#subject
    const reply = await ask(this.#runtime, this.#subject, (passage, terms) =>
      commands.send({ op: 'semaphore.inspect', name }, passage, terms),
    )
    return reply.outcome === 'counted' ? reply.count : (this.#initial ?? 0)
  }

  async trySet(permits: number, options: TrySetOptions = {}): Promise<boolean> {
    const count = wholeNumber(permits, 'permits', 0)
    refuseUnknown(options, SET_KEYS, 'trySet options')
    const ttlMs = duration(options.ttl, 'ttl', { min: 1, max: Number.MAX_SAFE_INTEGER }) ?? 0
    const on = this.#request()
    const { outcome } = await this.#change(on, (passage, terms) =>
      this.#runtime.commands.send({ op: 'semaphore.set', ...on, permits: count, ttlMs }, passage, terms),
    )
    this.#told(outcome)
    return outcome !== 'kept'
  }

  async add(permits: number): Promise<void> {
    if (permits === 0) throw new RangeError('permits must be a whole number other than 0, but is 0')
    const change = wholeNumber(permits, 'permits', Number.MIN_SAFE_INTEGER)
    await this.#add(change, this.#initial ?? 0)
  }

  async #acquire({ permits, options }: Wanted): Promise<HeldPermits> {
    const result = await this.#take({ permits, options }, false)
    if (!(result instanceof TooFew)) return result
    const { waitTimeMs } = resolveWaitOptions(options, this.#runtime.settings, false)
    const { available } = result
    const free =
      available === undefined ? '' : `; ${available === 1 ? '1 is' : `${String(available)} are`} free`
    const wanted = permits === 1 ? 'permit' : `${String(permits)} permits`
    const why = `Semaphore '${this.name}' has no ${wanted}${free},`
    throw new WaitTimeoutError(this.name, waitTimeMs, why)
  }

  async #take({ permits, options }: Wanted, trying: boolean): Promise<HeldPermits | TooFew> {
    const initial = this.#initial
    if (initial !== undefined && permits > initial)
      throw new RangeError(
        `permits must not be more than the semaphore's own (${String(initial)}), but is ${String(permits)}`,
      )
    return acquirePermits(this.#runtime, {
      subject: this.#subject,
      permits,
      initial,
      options: resolveWaitOptions(options, this.#runtime.settings, trying),
    })
  }

  /** Resolves to whether there was a number to add to, or is one now. */
  async #add(permits: number, initial: number): Promise<boolean> {
    const on = this.#request()
    const { outcome } = await this.#change(on, (passage, terms) =>
      this.#runtime.commands.send({ op: 'semaphore.add', ...on, permits, initial }, passage, terms),
    )
    this.#told(outcome)
    if (outcome === 'overflow')
      throw new RangeError(
        `Semaphore '${this.name}' cannot hold ${String(permits)} permits more: the number would leave ±(2^53−1)`,
      )
    return outcome !== 'missing'
  }

  #request(): Noted {
    return { name: this.#subject.name, request: this.#runtime.newOwner(), requestMs: REQUEST_MS }
  }

  #change<R extends { readonly outcome: string }>(
    { request }: Noted,
    send: Send<R>,
  ): Promise<Exclude<R, { readonly outcome: 'foreign' | 'dead' }>> {
    const undo = returning(this.#runtime, { subject: this.#subject, request, permits: 0 })
    return change(this.#runtime, this.#subject, { send, undo })
  }

  #told(outcome: string): void {
    if (outcome === 'unannounced')
      diagnose(
        this.name,
        'unannounced',
        'The server refused to publish the permits; waiters find out by polling',
      )
  }
}

async function runUnder<T>(grant: HeldPermits, callback: UnderPermits<T>): Promise<T> {
  grant.running = true
  try {
    return await callback(grant)
  } finally {
    grant.running = false
    await grant.release()
  }
}
