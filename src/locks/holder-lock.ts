import { LeaseLostError, WaitTimeoutError, type LossReason } from '../errors.js'
import { acquire } from '../lease/acquire.js'
import type { BackoffPolicy } from '../lease/backoff.js'
import { Busy } from '../lease/call.js'
import type { HeldLease, Lease } from '../lease/lease.js'
import type { Runtime } from '../lease/runtime.js'
import { forceRelease, look } from '../lease/look.js'
import type { Member } from '../lease/member.js'
import { partOf } from '../lease/part-of.js'
import type { Target } from '../lease/target.js'
import { describe } from '../option-checks.js'
import { resolveAcquireOptions, type AcquireOptions } from '../options.js'

/** What a callback under a lock gets, and what may come back. */
export type UnderLease<T, L extends Lease = Lease> = (lease: L) => T | PromiseLike<T>

/** What `tryUsing` answers. */
export type TryUsingResult<T> = Acquired<T> | NotAcquired

/** The callback ran. */
export interface Acquired<T> {
  /** The lock was ours. */
  readonly acquired: true
  /** What the callback returned. */
  readonly value: T
}

/** Somebody else had the lock; the callback did not run. */
export interface NotAcquired {
  /** The lock was busy. */
  readonly acquired: false
}

/** Acquiring and looking, the same for every lock with one holder at a time. */
export interface ExclusiveLock<L extends Lease = Lease> {
  /** The name, as it was given. */
  readonly name: string
  /**
   * Waits for the lock, by default until `signal` aborts.
   * @throws WaitTimeoutError when `waitTime` is over, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  acquire(options?: AcquireOptions): Promise<L>
  /**
   * Tries once, or for `waitTime`. Null: somebody else has it. Trouble and abort reject.
   * @throws UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  tryAcquire(options?: AcquireOptions): Promise<L | null>
  /**
   * Acquires, runs the callback, releases. If the lease is lost meanwhile, `lease.signal` aborts and this still
   * waits for the callback; its error always wins.
   * @throws what the callback throws; LeaseLostError with the callback's `value` if the lease was lost; what `acquire` throws
   */
  using<T>(callback: UnderLease<T, L>): Promise<T>
  /** The same with options. */
  using<T>(options: AcquireOptions, callback: UnderLease<T, L>): Promise<T>
  /** `using` if the lock can be had at once, or within `waitTime`. @throws as `using`, but not when busy */
  tryUsing<T>(callback: UnderLease<T, L>): Promise<TryUsingResult<T>>
  /** The same with options. */
  tryUsing<T>(options: AcquireOptions, callback: UnderLease<T, L>): Promise<TryUsingResult<T>>
  /** Whether anybody holds the lock. Asks the primary. @throws UnavailableError, WrongTypeError, ClosedError */
  isLocked(): Promise<boolean>
  /** Whether this owner (`lease.owner`) holds the lock. @throws UnavailableError, WrongTypeError, ClosedError */
  isHeldBy(owner: string): Promise<boolean>
  /** Milliseconds until the server would free the lock; 0: it is free, `Infinity`: its key has no TTL. @throws UnavailableError, WrongTypeError, ClosedError */
  remainingTime(): Promise<number>
  /**
   * Takes the lock away from whoever holds it now; they are told at their next renewal. For operators.
   * Resolves to whether there was somebody. @throws UnavailableError, ClosedError, WrongTypeError (data of another kind stays untouched)
   */
  forceRelease(): Promise<boolean>
}

/** Looks of locks that count how often their holder has entered. */
export interface CountingLock<L extends Lease = Lease> extends ExclusiveLock<L> {
  /** How often this owner, or without one whoever holds the lock, has entered; 0: it is free. @throws UnavailableError, WrongTypeError, ClosedError */
  holdCount(owner?: string): Promise<number>
}

type Node = Runtime['scope']['current']

/** How, and from where, a call came. */
interface Caller {
  readonly trying: boolean
  readonly from: Node
  readonly note?: Node
}

/** What makes a lock object what it is. */
export interface LockNature<L extends Lease> {
  readonly target: Target
  readonly reentrant: boolean
  readonly backoff?: BackoffPolicy | undefined
  /** The lease as the callers of this object get it. */
  readonly present: (lease: HeldLease) => L
}

/** The lock objects behind the interfaces. Cheap: no I/O and no registration until used. */
export class LeaseLock<L extends Lease> implements CountingLock<L> {
  readonly #runtime: Runtime
  readonly #nature: LockNature<L>
  readonly #target: Target

  constructor(runtime: Runtime, nature: LockNature<L>) {
    this.#runtime = runtime
    this.#nature = nature
    this.#target = nature.target
  }

  get name(): string {
    return this.#target.title
  }

  /** This lock as one of several that are taken as one. */
  get enrolment(): Member {
    const runtime = this.#runtime
    const { target, reentrant, backoff } = this.#nature
    return {
      runtime,
      target,
      reentrant,
      key: undefined,
      joins: target.family === 'lock',
      enclosed: () => runtime.scope.find(target) !== undefined,
      within: (lease) => partOf(lease, runtime, target),
      acquire: async (options, part) => {
        const from = runtime.scope.current
        const request = { target, options, reentrant, backoff, part, from, note: undefined }
        return acquire<HeldLease | Busy>(runtime, request, identity)
      },
    }
  }

  acquire(options?: AcquireOptions): Promise<L> {
    return this.#bare(options, false, (result) => {
      if (result instanceof Busy) throw this.#timeout(result, options)
      return this.#nature.present(result)
    })
  }

  tryAcquire(options?: AcquireOptions): Promise<L | null> {
    return this.#bare(options, true, (result) =>
      result instanceof Busy ? null : this.#nature.present(result),
    )
  }

  using<T>(callback: UnderLease<T, L>): Promise<T>
  using<T>(options: AcquireOptions, callback: UnderLease<T, L>): Promise<T>
  async using<T>(first: AcquireOptions | UnderLease<T, L>, second?: UnderLease<T, L>): Promise<T> {
    const { options, callback } = argumentsOf(first, second)
    const from = this.#runtime.scope.current
    const result = await this.#acquire(options, { trying: false, from }, identity)
    if (result instanceof Busy) throw this.#timeout(result, options)
    return runUnder(result, this.#nature.present(result), callback)
  }

  tryUsing<T>(callback: UnderLease<T, L>): Promise<TryUsingResult<T>>
  tryUsing<T>(options: AcquireOptions, callback: UnderLease<T, L>): Promise<TryUsingResult<T>>
  async tryUsing<T>(
    first: AcquireOptions | UnderLease<T, L>,
    second?: UnderLease<T, L>,
  ): Promise<TryUsingResult<T>> {
    const { options, callback } = argumentsOf(first, second)
    const from = this.#runtime.scope.current
    const result = await this.#acquire(options, { trying: true, from }, identity)
    if (result instanceof Busy) return { acquired: false }
    return { acquired: true, value: await runUnder(result, this.#nature.present(result), callback) }
  }

  async isLocked(): Promise<boolean> {
    return (await look(this.#runtime, this.#target)) !== undefined
  }

  async isHeldBy(owner: string): Promise<boolean> {
    return (await this.holdCount(ownerArgument(owner))) > 0
  }

  async holdCount(owner?: string): Promise<number> {
    if (owner !== undefined) ownerArgument(owner)
    const seen = await look(this.#runtime, this.#target)
    if (seen === undefined) return 0
    return owner === undefined ? Math.max(...seen.holders.values()) : (seen.holders.get(owner) ?? 0)
  }

  async remainingTime(): Promise<number> {
    const seen = await look(this.#runtime, this.#target)
    if (seen === undefined) return 0
    return seen.ttlMs < 0 ? Infinity : seen.ttlMs
  }

  forceRelease(): Promise<boolean> {
    return forceRelease(this.#runtime, this.#target)
  }

  // Not async: the note has to be made in the caller's own turn.
  #bare<R>(
    options: AcquireOptions | undefined,
    trying: boolean,
    convert: (result: HeldLease | Busy) => R,
  ): Promise<R> {
    const { scope, clock } = this.#runtime
    const from = scope.current
    const note = scope.noteBare(this.#target, clock.now())
    const noted = (result: HeldLease | Busy): R => {
      if (note !== undefined) note.lease = result instanceof Busy ? null : result
      return convert(result)
    }
    return this.#acquire(options, { trying, from, note }, noted)
  }

  #acquire<R>(
    options: AcquireOptions | undefined,
    { trying, from, note }: Caller,
    convert: (result: HeldLease | Busy) => R,
  ): Promise<R> {
    try {
      const resolved = resolveAcquireOptions(options, this.#runtime.settings, trying)
      const { reentrant, backoff } = this.#nature
      const request = { target: this.#target, options: resolved, reentrant, backoff, from, note }
      return acquire(this.#runtime, request, convert)
    } catch (error) {
      if (note !== undefined) note.lease = null
      return Promise.resolve().then(() => {
        throw error
      })
    }
  }

  #timeout({ seen }: Busy, options: AcquireOptions | undefined): WaitTimeoutError {
    const { waitTimeMs } = resolveAcquireOptions(options, this.#runtime.settings, false)
    return new WaitTimeoutError(this.name, waitTimeMs, seen)
  }
}

/** A lock object whose leases have nothing special. */
export class HolderLock extends LeaseLock<Lease> {
  constructor(runtime: Runtime, target: Target, reentrant: boolean) {
    super(runtime, { target, reentrant, present: plain })
  }
}

function plain(lease: HeldLease): Lease {
  return lease
}

/** Runs a callback under a lease and releases it; the callback's error wins. @throws what it throws, or LeaseLostError */
export /** A lease that work can run under. */
interface Workplace extends Lease {
  reported: boolean
  readonly lossReason: LossReason | undefined
}

/** Runs the callback under a lease and releases it; see `using`. */
export async function runUnder<T, L extends Lease>(
  lease: Workplace,
  presented: L,
  callback: UnderLease<T, L>,
): Promise<T> {
  let value: T
  lease.reported = true
  try {
    value = await lease.run(() => callback(presented))
  } catch (error) {
    await lease.release()
    throw error
  }
  const reason = lease.lossReason
  const outcome = await lease.release()
  if (reason !== undefined) throw new LeaseLostError(lease.lock, reason, value)
  if (outcome === 'expired' || outcome === 'stolen') throw new LeaseLostError(lease.lock, outcome, value)
  return value
}

/** The arguments of `using`, with or without options. @throws TypeError */
export function argumentsOf<T, L extends Lease>(
  first: AcquireOptions | UnderLease<T, L>,
  second: UnderLease<T, L> | undefined,
): { readonly options: AcquireOptions | undefined; readonly callback: UnderLease<T, L> } {
  if (typeof first === 'function' && second !== undefined)
    throw new TypeError('Options come before the callback: using(options, callback)')
  const [options, callback] = typeof first === 'function' ? [undefined, first] : [first, second]
  if (typeof callback !== 'function')
    throw new TypeError(`The callback must be a function, but is ${describe(callback)}`)
  return { options, callback }
}

/** Checks an owner. @throws TypeError */
export function ownerArgument(owner: unknown): string {
  if (typeof owner === 'string' && owner !== '') return owner
  throw new TypeError(`owner must be a non-empty string, but is ${describe(owner)}`)
}

function identity(result: HeldLease | Busy): HeldLease | Busy {
  return result
}
