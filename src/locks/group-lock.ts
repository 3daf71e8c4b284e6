import { WaitTimeoutError } from '../errors.js'
import { Busy } from '../lease/call.js'
import type { GroupLease } from '../lease/group-lease.js'
import type { Lease } from '../lease/lease.js'
import type { Runtime } from '../lease/runtime.js'
import { resolveAcquireOptions, type AcquireOptions, type ResolvedAcquireOptions } from '../options.js'
import {
  argumentsOf,
  runUnder,
  type ExclusiveLock,
  type TryUsingResult,
  type UnderLease,
} from './holder-lock.js'

/** What locks that are made of several have in common. Cheap: no I/O and no registration until used. */
export abstract class GroupLock<L extends Lease, H extends GroupLease & L> implements ExclusiveLock<L> {
  readonly name: string
  protected readonly runtime: Runtime

  constructor(runtime: Runtime, name: string) {
    this.runtime = runtime
    this.name = name
  }

  protected abstract take(options: ResolvedAcquireOptions): Promise<H | Busy>
  abstract isLocked(): Promise<boolean>
  abstract isHeldBy(owner: string): Promise<boolean>
  abstract remainingTime(): Promise<number>
  abstract forceRelease(): Promise<boolean>

  acquire(options?: AcquireOptions): Promise<L> {
    return this.#patiently(options)
  }

  async tryAcquire(options?: AcquireOptions): Promise<L | null> {
    const result = await this.take(this.#resolve(options, true))
    return result instanceof Busy ? null : result
  }

  using<T>(callback: UnderLease<T, L>): Promise<T>
  using<T>(options: AcquireOptions, callback: UnderLease<T, L>): Promise<T>
  async using<T>(first: AcquireOptions | UnderLease<T, L>, second?: UnderLease<T, L>): Promise<T> {
    const { options, callback } = argumentsOf(first, second)
    const lease = await this.#patiently(options)
    return runUnder(lease, lease, callback)
  }

  tryUsing<T>(callback: UnderLease<T, L>): Promise<TryUsingResult<T>>
  tryUsing<T>(options: AcquireOptions, callback: UnderLease<T, L>): Promise<TryUsingResult<T>>
  async tryUsing<T>(
    first: AcquireOptions | UnderLease<T, L>,
    second?: UnderLease<T, L>,
  ): Promise<TryUsingResult<T>> {
    const { options, callback } = argumentsOf(first, second)
    const result = await this.take(this.#resolve(options, true))
    if (result instanceof Busy) return { acquired: false }
    return { acquired: true, value: await runUnder(result, result, callback) }
  }

  async #patiently(options: AcquireOptions | undefined): Promise<H> {
    const resolved = this.#resolve(options, false)
    const result = await this.take(resolved)
    if (result instanceof Busy) throw new WaitTimeoutError(this.name, resolved.waitTimeMs, result.seen)
    return result
  }

  #resolve(options: AcquireOptions | undefined, trying: boolean): ResolvedAcquireOptions {
    return resolveAcquireOptions(options, this.runtime.settings, trying)
  }
}
