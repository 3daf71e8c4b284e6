import { LeaseLostError, WaitTimeoutError } from '../errors.js'
import { acquire } from '../lease/acquire.js'
import { Busy } from '../lease/call.js'
import type { HeldLease, Lease } from '../lease/lease.js'
import type { Runtime } from '../lease/runtime.js'
import { forceRelease, look } from '../lease/look.js'
import type { Target } from '../lease/target.js'
import { describe, resolveAcquireOptions, type AcquireOptions } from '../options.js'

/** What a callback under a lock gets, and what may come back. */
export type UnderLease<T> = (lease: Lease) => T | PromiseLike<T>

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
export interface ExclusiveLock {
  /** The name, as it was given. */
  readonly name: string
  /**
   * Waits for the lock, by default until `signal` aborts.
   * @throws WaitTimeoutError when `waitTime` is over, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  acquire(options?: AcquireOptions): Promise<Lease>
  /**
   * Tries once, or for `waitTime`. Null: somebody else has it. Trouble and abort reject.
   * @throws UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  tryAcquire(options?: AcquireOptions): Promise<Lease | null>
  /**
   * Acquires, runs the callback, releases. If the lease is lost meanwhile, `lease.signal` aborts and this still
   * waits for the callback; its error always wins.
   * @throws what the callback throws; LeaseLostError with the callback's `value` if the lease was lost; what `acquire` throws
   */
  using<T>(callback: UnderLease<T>): Promise<T>
  /** The same with options. */
  using<T>(options: AcquireOptions, callback: UnderLease<T>): Promise<T>
  /** `using` if the lock can be had at once, or within `waitTime`. @throws as `using`, but not when busy */
  tryUsing<T>(callback: UnderLease<T>): Promise<TryUsingResult<T>>
  /** The same with options. */
  tryUsing<T>(options: AcquireOptions, callback: UnderLease<T>): Promise<TryUsingResult<T>>
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
export interface CountingLock extends ExclusiveLock {
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

/** The lock objects behind the interfaces. Cheap: no I/O and no registration until used. */
export class HolderLock implements CountingLock {
  readonly #runtime: Runtime
  readonly #target: Target
  readonly #reentrant: boolean

  constructor(runtime: Runtime, target: Target, reentrant: boolean) {
    this.#runtime = runtime
    this.#target = target
    this.#reentrant = reentrant
  }

  get name(): string {
    return this.#target.title
  }

  acquire(options?: AcquireOptions): Promise<Lease> {
    return this.#bare(options, false, (result) => {
      if (result instanceof Busy) throw this.#timeout(result, options)
      return result
    })
  }

  tryAcquire(options?: AcquireOptions): Promise<Lease | null> {
    return this.#bare(options, true, (result) => (result instanceof Busy ? null : result))
  }

  using<T>(callback: UnderLease<T>): Promise<T>
  using<T>(options: AcquireOptions, callback: UnderLease<T>): Promise<T>
  async using<T>(first: AcquireOptions | UnderLease<T>, second?: UnderLease<T>): Promise<T> {
    const { options, callback } = argumentsOf(first, second)
    const from = this.#runtime.scope.current
    const result = await this.#acquire(options, { trying: false, from }, identity)
    if (result instanceof Busy) throw this.#timeout(result, options)
    return runUnder(result, callback)
  }

  tryUsing<T>(callback: UnderLease<T>): Promise<TryUsingResult<T>>
  tryUsing<T>(options: AcquireOptions, callback: UnderLease<T>): Promise<TryUsingResult<T>>
  async tryUsing<T>(
    first: AcquireOptions | UnderLease<T>,
    second?: UnderLease<T>,
  ): Promise<TryUsingResult<T>> {
    const { options, callback } = argumentsOf(first, second)
    const from = this.#runtime.scope.current
    const result = await this.#acquire(options, { trying: true, from }, identity)
    if (result instanceof Busy) return { acquired: false }
    return { acquired: true, value: await runUnder(result, callback) }
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
      const request = { target: this.#target, options: resolved, reentrant: this.#reentrant, from, note }
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

async function runUnder<T>(lease: HeldLease, callback: UnderLease<T>): Promise<T> {
  let value: T
  lease.reported = true
  try {
    value = await lease.run(() => callback(lease))
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

function argumentsOf<T>(
  first: AcquireOptions | UnderLease<T>,
  second: UnderLease<T> | undefined,
): { readonly options: AcquireOptions | undefined; readonly callback: UnderLease<T> } {
  if (typeof first === 'function' && second !== undefined)
    throw new TypeError('Options come before the callback: using(options, callback)')
  const [options, callback] = typeof first === 'function' ? [undefined, first] : [first, second]
  if (typeof callback !== 'function')
    throw new TypeError(`The callback must be a function, but is ${describe(callback)}`)
  return { options, callback }
}

function ownerArgument(owner: unknown): string {
  if (typeof owner === 'string' && owner !== '') return owner
  throw new TypeError(`owner must be a non-empty string, but is ${describe(owner)}`)
}

function identity(result: HeldLease | Busy): HeldLease | Busy {
  return result
}
