import { diagnose } from '../diagnostics.js'
import type { Passage } from '../engine/engine.js'
import type { Operation, PermitsCountReply, ReplyOf } from '../engine/operations.js'
import { NotHeldError, WaitTimeoutError } from '../errors.js'
import { acquire } from '../lease/acquire.js'
import { Busy, type Call } from '../lease/call.js'
import { extendTime, type HeldLease } from '../lease/lease.js'
import { newPermits } from '../lease/permit-ids.js'
import { HeldPermitLease, type PermitLease } from '../lease/permit-lease.js'
import type { Runtime } from '../lease/runtime.js'
import { kindOf, type Target } from '../lease/target.js'
import { runUnder, type TryUsingResult, type UnderLease } from '../locks/holder-lock.js'
import { wholeNumber } from '../option-checks.js'
import { resolveAcquireOptions, type AcquireOptions } from '../options.js'
import { returning } from './held-permits.js'
import { permitId, permitIds, wantedOf, workOf, type Wanted } from './permit-arguments.js'
import { PermitHolders } from './permit-holders.js'
import { takePermits } from './permit-wait.js'
import { ask, change, type Subject } from './request.js'

/** How a permit semaphore is made. */
export interface PermitSemaphoreOptions {
  /**
   * How many permits there are in all, if nobody has set a number before; and a call for more than that is refused
   * while there are not so many. 1…2^53−1. @defaultValue none: somebody has to `trySet` it
   */
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
   * Waits for permits, all or none, by default for one and until `signal` aborts. At most 1 000. More than there are in
   * all are a `RangeError` as soon as the server says so, if they are more than the option `permits`, too: they would
   * be waited for without end. Where `set` or `add` has raised the total, that one counts. Without the option nobody
   * knows what the total may come to, and too many are waited for.
   * @throws RangeError; WaitTimeoutError when `waitTime` is over, NotInitialisedError, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  acquire(permits?: number, options?: PermitOptions): Promise<PermitLease>
  /** The same for one permit. */
  acquire(options: PermitOptions): Promise<PermitLease>
  /**
   * Tries once, or for `waitTime`. Null: too few are available. Trouble and abort reject, and so do more than there are.
   * @throws RangeError as `acquire`; NotInitialisedError, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
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
   * Releases a permit by its id: one that another process took, or that was handed over. It is taken from its holder,
   * whose lease is lost (`stolen`): one of this `Holdfast` at once. **One elsewhere learns it at its next renewal**, and
   * a lease with a `leaseTime`, which is not renewed, at its own end; until then both believe in the permit, and
   * somebody else may have it. A lease at hand is better ended by its own `release()`.
   * @throws NotHeldError if it is not out (unknown, released, expired): nothing changes then; UnavailableError, WrongTypeError, ClosedError
   */
  release(id: string): Promise<void>
  /**
   * The same for several, all or none. While it is asked for, leases of this `Holdfast` that have some are not `held`;
   * they are again if none was released. @throws NotHeldError if one of them is not out, and as `release`
   */
  releaseAll(ids: readonly string[]): Promise<void>
  /**
   * Releases those of the permits that are out, with the same effect on their leases as `release`. Resolves to their
   * number; after a break in the link it may count too few.
   * @throws UnavailableError, WrongTypeError, ClosedError
   */
  tryRelease(ids: readonly string[]): Promise<number>
  /**
   * Lets a permit expire in `ms` from now, sooner or later than before; false: it is not out. For permits without a
   * watchdog whose lease is elsewhere, or that Java took: a lease at hand has `extend`. **A lease elsewhere does not
   * learn of an earlier end**, and believes in the permit until its own; its watchdog, if it has one, renews the permit
   * all the same. A lease of this `Holdfast` follows: it ends with the first of its permits, and its watchdog ends,
   * unless it has several permits and `ms` is not shorter than `lockWatchdogTimeout`. With `outcome: 'unknown'` it may
   * have been done. @throws UnavailableError, WrongTypeError, ClosedError; RangeError for `ms` outside 1…2^53−1
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
  /** Adds to how many permits there are in all, or takes off that. @throws UnavailableError, WrongTypeError, ClosedError; RangeError if more than 2^53−1 came of it */
  add(permits: number): Promise<void>
}

/** The permit semaphore behind the interface. Cheap: no I/O and no registration until used. */
export class LeasedSemaphore implements PermitSemaphore {
  readonly #runtime: Runtime
  readonly #target: Target
  readonly #subject: Subject

  constructor(runtime: Runtime, target: Target) {
    const { name, title } = target
    this.#runtime = runtime
    this.#target = target
    this.#subject = { what: 'Semaphore', name, title, expected: kindOf(target).what }
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
    return (await this.#give(permitIds(ids), false)).number
  }

  async updateLeaseTime(id: string, ms: number): Promise<boolean> {
    const leaseMs = extendTime(ms)
    const permit = permitId(id)
    const holders = new PermitHolders(this.#runtime, this.#target, [permit])
    holders.shorten(leaseMs)
    const { outcome } = await this.#change({ op: 'permits.update', ...this.#noted(), id: permit, leaseMs })
    if (outcome === 'updated') holders.updated(leaseMs)
    else holders.lose()
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
    const number = wholeNumber(permits, 'permits', 0)
    const reply = await this.#change({ op: 'permits.try-set', ...this.#noted(), permits: number })
    return this.#told(reply).outcome !== 'exists'
  }

  async set(permits: number): Promise<void> {
    const number = wholeNumber(permits, 'permits', 0)
    this.#told(await this.#change({ op: 'permits.set', ...this.#noted(), permits: number }))
  }

  async add(permits: number): Promise<void> {
    if (permits === 0) throw new RangeError('permits must be a whole number other than 0, but is 0')
    const { total } = this.#target
    const number = wholeNumber(permits, 'permits', Number.MIN_SAFE_INTEGER)
    const reply = await this.#change({ op: 'permits.add', ...this.#noted(), permits: number, total })
    const { outcome } = this.#told(reply)
    if (outcome === 'overflow')
      throw new RangeError(
        `permits must not bring semaphore '${this.name}' beyond ±${String(Number.MAX_SAFE_INTEGER)}, but is ${String(permits)}`,
      )
  }

  async #acquire(wanted: Wanted): Promise<HeldPermitLease> {
    const result = await this.#take(wanted, false)
    if (result !== null) return result
    const { waitTimeMs } = resolveAcquireOptions(wanted.options, this.#runtime.settings, false)
    const few = wanted.permits === 1 ? 'no permit' : `fewer than ${String(wanted.permits)} permits`
    const what = `Semaphore '${this.name}' still has ${few} available`
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
      compete: (runtime: Runtime, call: Call) => {
        call.permits = permits
        return takePermits(runtime, call)
      },
      from: undefined,
      note: undefined,
    }
    return acquire(this.#runtime, request, presented)
  }

  async #giveAll(ids: readonly string[]): Promise<void> {
    const { number, once } = await this.#give(ids, true)
    // A copy of the command that was sent before may have been the one that gave them back.
    if (number === 0 && once) throw new NotHeldError(this.name, notOut(ids, this.name))
  }

  async #give(
    ids: readonly string[],
    all: boolean,
  ): Promise<{ readonly number: number; readonly once: boolean }> {
    const holders = new PermitHolders(this.#runtime, this.#target, ids)
    const passages: Passage[] = []
    holders.doubt()
    try {
      const reply = await ask(this.#runtime, this.#subject, (passage, terms) => {
        passages.push(passage)
        const operation = { op: 'permits.give', name: this.#target.name, ids, all } as const
        return this.#runtime.commands.send(operation, passage, terms)
      })
      const none = this.#told(reply).outcome === 'none'
      // Of a list that was left alone, some may be out.
      if (!none || !all || ids.length === 1) holders.lose()
      return { number: reply.outcome === 'none' ? 0 : reply.number, once: sentOnce(passages) }
    } finally {
      holders.askAgain()
    }
  }

  #count(): Promise<Exclude<PermitsCountReply, { readonly outcome: 'foreign' }>> {
    return this.#ask({ op: 'permits.count', name: this.#target.name })
  }

  #ask<O extends Asking>(
    operation: O,
  ): Promise<Exclude<ReplyOf<O>, { readonly outcome: 'foreign' | 'dead' }>> {
    return ask(this.#runtime, this.#subject, (passage, terms) =>
      this.#runtime.commands.send(operation, passage, terms),
    )
  }

  /** Makes a change once; if there is no answer, a copy of it that comes later makes it no more. */
  #change<C extends Change>(
    operation: C,
  ): Promise<Exclude<ReplyOf<C>, { readonly outcome: 'foreign' | 'dead' }>> {
    const { request } = operation
    return change(this.#runtime, this.#subject, {
      send: (passage, terms) => this.#runtime.commands.send(operation, passage, terms),
      undo: returning(this.#runtime, { subject: this.#subject, request, permits: 0 }),
    })
  }

  #noted(): { readonly name: string; readonly request: string } {
    return { name: this.#target.name, request: this.#runtime.newOwner() }
  }

  #told<R extends { readonly outcome: string }>(reply: R): R {
    if (reply.outcome === 'unannounced')
      diagnose(
        this.name,
        'unannounced',
        'The server refused to publish what became free; waiters find out by polling',
      )
    return reply
  }
}

type Asking = Extract<Operation, { readonly op: 'permits.count' | 'permits.rest' }>
type Change = Extract<
  Operation,
  { readonly op: 'permits.set' | 'permits.try-set' | 'permits.add' | 'permits.update' }
>

function presented(result: HeldLease | Busy): HeldPermitLease | null {
  if (result instanceof HeldPermitLease) return result
  if (result instanceof Busy) return null
  throw new TypeError('The lease is not one of permits')
}

function sentOnce(passages: readonly Passage[]): boolean {
  const sent = passages.filter(({ sends }) => sends > 0)
  return sent.length === 1 && sent.every(({ once }) => once)
}

function notOut(ids: readonly string[], name: string): string {
  const [id = ''] = ids
  return ids.length === 1
    ? `Permit ${id} of semaphore '${name}' is not out: it was released, has expired, or never was`
    : `At least one of ${String(ids.length)} permits of semaphore '${name}' is not out; none was released`
}
