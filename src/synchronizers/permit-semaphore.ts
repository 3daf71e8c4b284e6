import { randomUUID } from 'node:crypto'
import { diagnose } from '../diagnostics.js'
import { newPassage, type Passage } from '../engine/engine.js'
import type { Operation, PermitsSetReply, ReplyOf } from '../engine/operations.js'
import { ClosedError, NotHeldError, WaitTimeoutError } from '../errors.js'
import { acquire } from '../lease/acquire.js'
import { Busy } from '../lease/call.js'
import type { HeldLease } from '../lease/lease.js'
import { wrongType } from '../lease/look.js'
import { newPermits } from '../lease/permit-ids.js'
import { HeldPermitLease, type PermitLease } from '../lease/permit-lease.js'
import type { Runtime } from '../lease/runtime.js'
import type { Target } from '../lease/target.js'
import { runUnder, type TryUsingResult, type UnderLease } from '../locks/holder-lock.js'
import { duration, wholeNumber } from '../option-checks.js'
import { resolveAcquireOptions, type AcquireOptions } from '../options.js'
import { permitId, permitIds, wantedOf, workOf, type Wanted } from './permit-arguments.js'

/** How a permit semaphore is made. */
export interface PermitSemaphoreOptions {
  /** How many permits there are in all, if nobody has set a number before. 1…2^53−1. @defaultValue none: somebody has to `trySet` it */
  readonly permits?: number | undefined
}

/** How to acquire permits. All times are milliseconds; fractions are rounded up. */
export type PermitOptions = Omit<AcquireOptions, 'within' | 'minHold'>

/** What a callback under permits gets, and what may come back. */
export type UnderPermitLease<T> = UnderLease<T, PermitLease>

/**
 * A number of permits, each with an id and a lease: what a crashed process held comes back by itself. On the same keys
 * as Redisson's `RPermitExpirableSemaphore`. Permits taken without `leaseTime` are kept by the watchdog. It does not
 * re-enter: nested use takes another permit.
 */
export interface PermitSemaphore {
  /** The name, as it was given. */
  readonly name: string
  /**
   * Waits for permits, all or none, by default for one and until `signal` aborts. At most 1 000.
   * @throws WaitTimeoutError when `waitTime` is over, NotInitialisedError, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  acquire(permits?: number, options?: PermitOptions): Promise<PermitLease>
  /** The same for one permit. */
  acquire(options: PermitOptions): Promise<PermitLease>
  /**
   * Tries once, or for `waitTime`. Null: too few are available. Trouble and abort reject.
   * @throws NotInitialisedError, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  tryAcquire(permits?: number, options?: PermitOptions): Promise<PermitLease | null>
  /** The same for one permit. */
  tryAcquire(options: PermitOptions): Promise<PermitLease | null>
  /**
   * Acquires, runs the callback, releases. If the lease is lost meanwhile, `lease.signal` aborts and this still
   * waits for the callback; its error always wins.
   * @throws what the callback throws; LeaseLostError with the callback's `value` if the lease was lost; what `acquire` throws
   */
  using<T>(callback: UnderPermitLease<T>): Promise<T>
  /** The same with a number of permits, or with options. */
  using<T>(first: number | PermitOptions, callback: UnderPermitLease<T>): Promise<T>
  /** The same with both. */
  using<T>(permits: number, options: PermitOptions, callback: UnderPermitLease<T>): Promise<T>
  /** `using` if the permits can be had at once, or within `waitTime`. @throws as `using`, but not when too few are available */
  tryUsing<T>(callback: UnderPermitLease<T>): Promise<TryUsingResult<T>>
  /** The same with a number of permits, or with options. */
  tryUsing<T>(first: number | PermitOptions, callback: UnderPermitLease<T>): Promise<TryUsingResult<T>>
  /** The same with both. */
  tryUsing<T>(
    permits: number,
    options: PermitOptions,
    callback: UnderPermitLease<T>,
  ): Promise<TryUsingResult<T>>
  /**
   * Releases a permit by its id: one that another process took, or that was handed over. A lease of this process is
   * better ended by its own `release()`; this way it finds out at its next renewal that it is lost.
   * @throws NotHeldError if it is not out (unknown, released, expired): nothing changes then; UnavailableError, WrongTypeError, ClosedError
   */
  release(id: string): Promise<void>
  /** The same for several, all or none. @throws NotHeldError if one of them is not out, and as `release` */
  releaseAll(ids: readonly string[]): Promise<void>
  /**
   * Releases those of the permits that are out. Resolves to their number; after a break in the link it may count too few.
   * @throws UnavailableError, WrongTypeError, ClosedError
   */
  tryRelease(ids: readonly string[]): Promise<number>
  /**
   * Lets a permit expire in `ms` from now, sooner or later than before; false: it is not out. For permits whose lease
   * is elsewhere: a lease has `extend`. @throws UnavailableError, WrongTypeError, ClosedError; RangeError for `ms` outside 1…2^53−1
   */
  updateLeaseTime(id: string, ms: number): Promise<boolean>
  /** Milliseconds until a permit expires; 0: it is not out, `Infinity`: it never expires. @throws UnavailableError, WrongTypeError, ClosedError */
  remainingTime(id: string): Promise<number>
  /** How many permits can be had now, expired ones included; negative after the total was lowered under them. @throws UnavailableError, WrongTypeError, ClosedError */
  available(): Promise<number>
  /** How many permits are out and not expired. @throws UnavailableError, WrongTypeError, ClosedError */
  acquired(): Promise<number>
  /** How many permits there are in all; 0: nobody has set a number. @throws UnavailableError, WrongTypeError, ClosedError */
  total(): Promise<number>
  /** Sets how many permits there are in all, from 0 on, if nobody has before; resolves to whether it did. @throws UnavailableError, WrongTypeError, ClosedError */
  trySet(permits: number): Promise<boolean>
  /** Sets how many permits there are in all, those that are out included; 0: nobody gets one any more. @throws UnavailableError, WrongTypeError, ClosedError */
  set(permits: number): Promise<void>
  /** Adds to how many permits there are in all, or takes off that. @throws UnavailableError, WrongTypeError, ClosedError */
  add(permits: number): Promise<void>
}

const LEASE_RANGE = { min: 1, max: Number.MAX_SAFE_INTEGER }

/** The permit semaphore behind the interface. Cheap: no I/O and no registration until used. */
export class LeasedSemaphore implements PermitSemaphore {
  readonly #runtime: Runtime
  readonly #target: Target

  constructor(runtime: Runtime, target: Target) {
    this.#runtime = runtime
    this.#target = target
  }

  get name(): string {
    return this.#target.title
  }

  async acquire(first?: number | PermitOptions, second?: PermitOptions): Promise<PermitLease> {
    return this.#acquire(wantedOf(first, second))
  }

  async tryAcquire(first?: number | PermitOptions, second?: PermitOptions): Promise<PermitLease | null> {
    return this.#tryAcquire(wantedOf(first, second))
  }

  async using<T>(...given: readonly unknown[]): Promise<T> {
    const work = workOf<T>(given)
    const lease = await this.#acquire(work)
    return runUnder(lease, lease, work.callback)
  }

  async tryUsing<T>(...given: readonly unknown[]): Promise<TryUsingResult<T>> {
    const work = workOf<T>(given)
    const lease = await this.#tryAcquire(work)
    if (lease === null) return { acquired: false }
    return { acquired: true, value: await runUnder(lease, lease, work.callback) }
  }

  async release(id: string): Promise<void> {
    await this.#giveAll([permitId(id)])
  }

  async releaseAll(ids: readonly string[]): Promise<void> {
    await this.#giveAll(permitIds(ids))
  }

  async tryRelease(ids: readonly string[]): Promise<number> {
    const { name } = this.#target
    const reply = await this.#ask({ op: 'permits.give', name, ids: permitIds(ids), all: false })
    return reply.outcome === 'none' ? 0 : reply.number
  }

  async updateLeaseTime(id: string, ms: number): Promise<boolean> {
    const { name } = this.#target
    const leaseMs = duration(ms, 'ms', LEASE_RANGE)
    if (leaseMs === undefined) throw new TypeError('ms must be a number, but is undefined')
    const { outcome } = await this.#ask({ op: 'permits.update', name, id: permitId(id), leaseMs })
    return outcome === 'updated'
  }

  async remainingTime(id: string): Promise<number> {
    const reply = await this.#ask({ op: 'permits.rest', name: this.#target.name, id: permitId(id) })
    return reply.outcome === 'held' ? reply.ttlMs : 0
  }

  async available(): Promise<number> {
    const reply = await this.#count()
    if (reply.outcome === 'counted') return reply.available
    const { total } = this.#target
    return total === undefined ? 0 : total - reply.acquired
  }

  async acquired(): Promise<number> {
    return (await this.#count()).acquired
  }

  async total(): Promise<number> {
    const reply = await this.#count()
    return reply.outcome === 'counted' ? reply.available + reply.acquired : (this.#target.total ?? 0)
  }

  async trySet(permits: number): Promise<boolean> {
    const request = {
      name: this.#target.name,
      permits: wholeNumber(permits, 'permits', 0),
      request: randomUUID(),
    }
    return this.#changed(await this.#ask({ op: 'permits.try-set', ...request }))
  }

  async set(permits: number): Promise<void> {
    const wanted = wholeNumber(permits, 'permits', 0)
    const request = { name: this.#target.name, permits: wanted, request: randomUUID() }
    this.#changed(await this.#ask({ op: 'permits.set', ...request }))
  }

  async add(permits: number): Promise<void> {
    const { name, total } = this.#target
    if (permits === 0) throw new RangeError('permits must be a whole number other than 0, but is 0')
    const change = wholeNumber(permits, 'permits', Number.MIN_SAFE_INTEGER)
    const request = { name, permits: change, total, request: randomUUID() }
    this.#changed(await this.#ask({ op: 'permits.add', ...request }))
  }

  async #acquire(wanted: Wanted): Promise<HeldPermitLease> {
    const result = await this.#take(wanted, false)
    if (result !== null) return result
    const { waitTimeMs } = resolveAcquireOptions(wanted.options, this.#runtime.settings, false)
    const what = `Semaphore '${this.name}' still has fewer than ${String(wanted.permits)} permits available`
    throw new WaitTimeoutError(this.name, waitTimeMs, what)
  }

  #tryAcquire(wanted: Wanted): Promise<HeldPermitLease | null> {
    return this.#take(wanted, true)
  }

  #take({ permits, options }: Wanted, trying: boolean): Promise<HeldPermitLease | null> {
    const request = {
      target: this.#target,
      options: resolveAcquireOptions(options, this.#runtime.settings, trying),
      reentrant: false,
      owner: newPermits(permits),
      from: undefined,
      note: undefined,
    }
    return acquire(this.#runtime, request, presented)
  }

  async #giveAll(ids: readonly string[]): Promise<void> {
    const passage = newPassage()
    const operation = { op: 'permits.give', name: this.#target.name, ids, all: true } as const
    const reply = await this.#ask(operation, passage)
    if (reply.outcome === 'unannounced') this.#unannounced()
    // A copy of the command that was sent before may have been the one that gave them back.
    if (reply.outcome === 'none' && passage.once) throw new NotHeldError(this.name, notOut(ids, this.name))
  }

  #count(): Promise<Exclude<ReplyOf<CountOperation>, { readonly outcome: 'foreign' }>> {
    return this.#ask({ op: 'permits.count', name: this.#target.name })
  }

  #changed({ outcome }: Exclude<PermitsSetReply, { readonly outcome: 'foreign' }>): boolean {
    if (outcome === 'unannounced') this.#unannounced()
    return outcome !== 'exists'
  }

  async #ask<O extends Operation>(
    operation: O,
    passage?: Passage,
  ): Promise<Exclude<ReplyOf<O>, { readonly outcome: 'foreign' }>> {
    if (this.#runtime.closed) throw new ClosedError(this.name)
    const reply = await this.#runtime.commands.ask(operation, this.name, passage)
    if ('outcome' in reply && reply.outcome === 'foreign') throw wrongType(this.#target)
    return reply as Exclude<ReplyOf<O>, { readonly outcome: 'foreign' }>
  }

  #unannounced(): void {
    diagnose(
      this.name,
      'unannounced',
      'The server refused to publish what became free; waiters find out by polling',
    )
  }
}

type CountOperation = Extract<Operation, { readonly op: 'permits.count' }>

function presented(result: HeldLease | Busy): HeldPermitLease | null {
  if (result instanceof HeldPermitLease) return result
  if (result instanceof Busy) return null
  throw new TypeError('The lease is not one of permits')
}

function notOut(ids: readonly string[], name: string): string {
  const [id = ''] = ids
  return ids.length === 1
    ? `Permit ${id} of semaphore '${name}' is not out: it was released, has expired, or never was`
    : `At least one of ${String(ids.length)} permits of semaphore '${name}' is not out; none was released`
}
