import { AsyncResource } from 'node:async_hooks'
import type { Timer } from '../clock.js'
import { events, type LostEvent, type ReleaseEvent, type ReleaseOutcome } from '../diagnostics.js'
import { LeaseLostError, NotHeldError, type LossReason } from '../errors.js'
import { extendTime, warnOfLoss } from './lease.js'
import type { MemberLease } from './member.js'
import type { Runtime } from './runtime.js'

/** What a lease of several locks begins with. */
export interface GroupTerms {
  /** The name of the whole. */
  readonly title: string
  readonly owner: string
  /** So many of its members must be held. */
  readonly quorum: number
  readonly maxHoldMs: number
}

/** One lease for several: held as long as enough of them are, and lost once, as a whole. */
export abstract class GroupLease implements MemberLease {
  readonly lock: string
  readonly owner: string
  /** Whoever waits for the work is told of a loss by a rejection. */
  reported = false
  protected readonly quorum: number
  protected readonly members: MemberLease[]
  readonly #runtime: Runtime
  readonly #grantedAtMs: number
  /** No member has the same name, and tells by that what it is about. */
  readonly #tells: boolean
  readonly #maxHoldAtMs: number
  readonly #maxHold: Timer | undefined
  #lost: LossReason | undefined
  #released: Promise<ReleaseOutcome> | undefined
  #controller: AbortController | undefined
  #context: AsyncResource | undefined
  #whenLost: ((reason: LossReason) => void) | undefined
  #keepUntilMs = 0
  #observed = false

  constructor(runtime: Runtime, terms: GroupTerms, members: readonly MemberLease[]) {
    const { clock } = runtime
    this.lock = terms.title
    this.owner = terms.owner
    this.quorum = terms.quorum
    this.members = [...members]
    this.#runtime = runtime
    this.#tells = members.every(({ lock }) => lock !== terms.title)
    this.#grantedAtMs = clock.now()
    this.#maxHoldAtMs = this.#grantedAtMs + terms.maxHoldMs
    if (terms.maxHoldMs !== Infinity)
      this.#maxHold = clock.setTimer(
        () => {
          // Not judged by the clock: a timer may be early by a part of a millisecond, and comes only once.
          this.#lose('max-hold')
        },
        terms.maxHoldMs,
        false,
      )
    for (const member of members) this.#watch(member)
  }

  /** Gives back all members. */
  protected abstract releaseMembers(): Promise<ReleaseOutcome>
  /** Makes enough members last for so long. */
  protected abstract extendMembers(ms: number): Promise<void>

  get live(): boolean {
    return this.#released === undefined && this.#lost === undefined
  }

  /** Why the lease was lost, if it was. */
  get lossReason(): LossReason | undefined {
    this.#observed = true
    this.#stillHeld()
    return this.#lost
  }

  get held(): boolean {
    this.#observed = true
    return this.#released === undefined && this.#stillHeld()
  }

  get remaining(): number {
    return this.held
      ? Math.min(
          this.#enough((member) => member.remaining),
          this.#maxHoldRest(),
        )
      : 0
  }

  get holdCount(): number {
    return this.held ? this.#enough((member) => member.holdCount) : 0
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
    this.assertLive()
    if (!this.#stillHeld()) throw new LeaseLostError(this.lock, this.#lost ?? 'unknown')
  }

  async extend(ms: number): Promise<void> {
    const ttlMs = extendTime(ms)
    this.assertLive()
    await this.extendMembers(ttlMs)
    this.assertLive()
  }

  async run<T>(callback: () => T | PromiseLike<T>): Promise<T> {
    this.assertLive()
    const inside = this.members
      // First, since a member that is past its deadline finds out here, and not when it is entered.
      .filter((member) => member.held || member.live)
      .reduceRight<() => T | PromiseLike<T>>((inner, member) => () => member.run(inner), callback)
    return inside()
  }

  /** What `JSON.stringify` and loggers show. */
  toJSON(): { readonly lock: string; readonly owner: string } {
    return { lock: this.lock, owner: this.owner }
  }

  release(): Promise<ReleaseOutcome> {
    return (this.#released ??= this.#end())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  keepFor(ms: number): void {
    this.#keepUntilMs = this.#runtime.clock.now() + ms
    for (const member of this.members) member.keepFor(ms)
  }

  letExpire(): void {
    for (const member of this.members) member.letExpire()
  }

  watchLoss(listener: (reason: LossReason) => void): void {
    this.#observed = true
    this.#whenLost = listener
    if (this.#lost !== undefined) listener(this.#lost)
  }

  /** Its members, and theirs if they are groups. */
  parts(): readonly object[] {
    return this.members.flatMap((member) =>
      member instanceof GroupLease ? [member, ...member.parts()] : [member],
    )
  }

  /** @throws LeaseLostError or NotHeldError */
  protected assertLive(): void {
    if (this.#released !== undefined) throw new NotHeldError(this.lock)
    this.#stillHeld()
    if (this.#lost !== undefined) throw new LeaseLostError(this.lock, this.#lost)
  }

  /** One more member has granted later; false: the lease is over. */
  protected join(member: MemberLease): boolean {
    if (!this.live) return false
    this.members.push(member)
    member.keepFor(this.#keepUntilMs - this.#runtime.clock.now())
    this.#watch(member)
    return true
  }

  #watch(member: MemberLease): void {
    member.watchLoss((reason) => {
      if (this.members.filter(({ live }) => live).length < this.quorum) this.#lose(reason)
    })
  }

  #stillHeld(): boolean {
    if (this.#lost !== undefined) return false
    if (this.#maxHoldRest() <= 0) this.#lose('max-hold')
    const held = this.members.filter((member) => member.held).length
    return this.live && held >= this.quorum
  }

  #maxHoldRest(): number {
    return this.#maxHoldAtMs - this.#runtime.clock.now()
  }

  /** The value that enough members reach. */
  #enough(value: (member: MemberLease) => number): number {
    return this.members.map(value).sort((a, b) => b - a)[this.quorum - 1] ?? 0
  }

  #lose(reason: LossReason): void {
    if (!this.live) return
    this.#lost = reason
    this.#maxHold?.cancel()
    // What is left of it is kept closed under the work, but not for ever.
    this.letExpire()
    const { lock, owner } = this
    if (this.#tells && events.lost.hasSubscribers)
      events.lost.publish({ lock, owner, reason } satisfies LostEvent)
    this.#whenLost?.(reason)
    if (this.#controller !== undefined) this.#abort(reason)
    else if (!this.#observed && !this.reported && reason !== 'closed') warnOfLoss(lock, reason)
  }

  #abort(reason: LossReason): void {
    this.#context?.runInAsyncScope(() => this.#controller?.abort(new LeaseLostError(this.lock, reason)))
  }

  #end(): Promise<ReleaseOutcome> {
    this.#maxHold?.cancel()
    this.#runtime.beginRelease()
    return this.releaseMembers().then((outcome) => {
      this.#runtime.endRelease()
      const { lock, owner } = this
      if (this.#tells && events.release.hasSubscribers) {
        const held = this.#runtime.clock.now() - this.#grantedAtMs
        events.release.publish({ lock, owner, outcome, held } satisfies ReleaseEvent)
      }
      return outcome
    })
  }
}
