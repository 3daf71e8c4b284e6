import type { Clock } from '../clock.js'
import { events, type LostEvent } from '../diagnostics.js'
import type { LossReason } from '../errors.js'
import type { Scheduled } from './schedule.js'
import { shownOwner, type Target } from './target.js'

/** A lease, as its tenure sees it. */
export interface TenureMember {
  /** When this member's `maxHold` is over, in monotonic time. */
  readonly maxHoldAtMs: number
  /** Told once, when the tenure is lost. */
  onLost(reason: LossReason): void
}

/** When the server was last known to agree, by both clocks. */
export interface Confirmation {
  /** Monotonic time before the confirming command was sent. */
  readonly sentAtMs: number
  /** How far the wall clock was ahead of the monotonic one then. */
  readonly wallOffsetMs: number
  /** The TTL that the server has set or raised. */
  readonly ttlMs: number
}

/** How far the wall clock is ahead of the monotonic one: it grows while the machine sleeps, and when the clock is set. */
export function wallOffset(clock: Clock): number {
  return clock.wall() - clock.now()
}

/**
 * One owner in the engine, from its grant to its end: what the leases of one owner (nested holds) share.
 *
 *     held ──deadline, "not yours", maxHold, close──▶ lost
 *       └────last release─────────────────────────▶ ended
 */
export class Tenure implements Scheduled {
  readonly target: Target
  readonly owner: string
  readonly grantedAtMs: number
  /** Whether the acquire surely reached the engine only once; otherwise the release leaves a tombstone. */
  readonly once: boolean
  state: 'held' | 'lost' | 'ended' = 'held'
  lossReason: LossReason | undefined = undefined
  /** The hold count in the engine, as far as it was confirmed. */
  count = 1
  /** After a nested command of unknown outcome the count in the engine is left alone and nesting is counted here only. */
  frozen = false
  /** The highest fencing token that this owner was given; 0: none. */
  token = 0
  /** A reader has, or had, the name of this owner, which writes. */
  read = false
  /** How many leases need the watchdog. */
  watched = 0
  /** Monotonic time at which this process gives up, before the server can. */
  deadlineMs = 0
  /** When the watchdog renews next; `Infinity` without it. */
  renewAtMs: number = Infinity
  /** A renewal is under way. */
  renewing = false
  /** When `maxHold` is over. */
  maxHoldAtMs: number = Infinity
  /** Until when a release leaves the key. */
  #keepUntilMs = 0
  dueAtMs = 0
  place = -1
  readonly members: TenureMember[] = []
  readonly #clock: Clock
  readonly #drift: number
  readonly #trustMs: number
  /** When the lease is over as far as the server was told; the deadline may be earlier. */
  #endMs = 0
  /** When the lease was cut short, or became suspect: what was sent before says nothing about it any more. */
  #cutAtMs = -Infinity
  #wallOffsetMs = 0
  #toleranceMs = 0
  #tail: Promise<unknown> | undefined = undefined
  #onEnd: ((tenure: Tenure) => void) | undefined

  constructor(grant: TenureGrant) {
    this.target = grant.target
    this.owner = grant.owner
    this.once = grant.once
    this.#clock = grant.clock
    this.#drift = grant.drift
    this.#trustMs = grant.trustMs ?? Infinity
    this.#onEnd = grant.onEnd
    this.grantedAtMs = grant.clock.now()
    this.#raise(grant.confirmation)
  }

  /** The owner, as messages and events show it. */
  get shown(): string {
    return shownOwner(this.target, this.owner)
  }

  /** The drift allowance of a TTL: client-go's rule, the holder gives up before others may take over. */
  allowance(ttlMs: number): number {
    return driftAllowance(ttlMs, this.#drift)
  }

  /** The server has the owner with at least this TTL. To hear that past the deadline is too late. */
  confirm(confirmation: Confirmation): void {
    if (this.#clock.now() >= this.deadlineMs) this.lose('expired')
    else if (confirmation.sentAtMs > this.#cutAtMs) this.#raise(confirmation)
  }

  /** The server is about to be told that the lease ends in `ttlMs`: if that is sooner than before, it counts from now on. */
  cut(ttlMs: number): void {
    const nowMs = this.#clock.now()
    const endMs = nowMs + ttlMs - this.allowance(ttlMs)
    if (endMs >= this.#endMs) return
    this.#cutAtMs = nowMs
    this.#endMs = endMs
    this.deadlineMs = Math.min(this.deadlineMs, endMs)
  }

  #raise({ sentAtMs, wallOffsetMs, ttlMs }: Confirmation): void {
    const endMs = sentAtMs + ttlMs - this.allowance(ttlMs)
    // A deadline from before the machine slept says nothing about the server's TTL any more.
    const slept = wallOffsetMs - this.#wallOffsetMs > this.#toleranceMs
    if (!slept && endMs < this.#endMs && this.#trustMs === Infinity) return
    if (slept || endMs > this.#endMs) this.#endMs = endMs
    const trustedMs = Math.min(ttlMs, this.#trustMs)
    const toleranceMs = this.allowance(trustedMs)
    const deadlineMs = ttlMs > trustedMs ? Math.min(this.#endMs, sentAtMs + trustedMs - toleranceMs) : endMs
    this.#wallOffsetMs = wallOffsetMs
    this.#toleranceMs = toleranceMs
    this.deadlineMs = slept ? deadlineMs : Math.max(this.deadlineMs, deadlineMs)
  }

  /** Whether the server has to be asked again and again: for a watchdog, or because its word is good for a time only. */
  get renewable(): boolean {
    return this.watched > 0 || this.#endMs - this.deadlineMs > this.#toleranceMs
  }

  /** The TTL to ask for so that the server has the owner for `ttlMs` and at least until the end of the lease. */
  wantedTtl(ttlMs: number): number {
    return Math.max(ttlMs, Math.ceil(this.#endMs - this.#clock.now()))
  }

  /** The machine slept: nothing is sure until the server confirms. */
  doubt(): void {
    this.#wallOffsetMs = -Infinity
  }

  /** Something is about to be done that may end the owner: only what is asked from now on tells whether it has. */
  suspect(): void {
    this.#cutAtMs = this.#clock.now()
    this.doubt()
  }

  /** Adds a lease. */
  join(member: TenureMember): void {
    this.members.push(member)
    this.maxHoldAtMs = Math.min(this.maxHoldAtMs, member.maxHoldAtMs)
  }

  /** Removes a lease; true: it was the last one. */
  part(member: TenureMember): boolean {
    const place = this.members.indexOf(member)
    if (place >= 0) this.members.splice(place, 1)
    if (member.maxHoldAtMs === this.maxHoldAtMs && this.maxHoldAtMs !== Infinity)
      this.maxHoldAtMs = Math.min(Infinity, ...this.members.map((other) => other.maxHoldAtMs))
    return this.members.length === 0
  }

  /** A release before this time leaves the key for the rest of it. */
  keepUntil(atMs: number): void {
    this.#keepUntilMs = Math.max(this.#keepUntilMs, atMs)
  }

  /** How long a release now would leave the key. */
  get keepMs(): number {
    return this.#keepUntilMs === 0 ? 0 : Math.max(0, Math.ceil(this.#keepUntilMs - this.#clock.now()))
  }

  /** Whether the wall clock ran ahead since the last confirmation, as it does while the machine sleeps. */
  get doubtful(): boolean {
    return wallOffset(this.#clock) - this.#wallOffsetMs > this.#toleranceMs
  }

  /** Whether the lock is ours right now. Finds out by itself that the deadline has passed. */
  get held(): boolean {
    if (this.state === 'held' && this.#clock.now() >= this.deadlineMs) this.lose('expired')
    return this.state === 'held' && !this.doubtful
  }

  /** Milliseconds until the deadline; 0 when not held. */
  get remainingMs(): number {
    return this.held ? this.deadlineMs - this.#clock.now() : 0
  }

  /** Ends the tenure as lost and tells every lease, once. */
  lose(reason: LossReason): void {
    if (this.state !== 'held') return
    this.state = 'lost'
    this.lossReason = reason
    this.#end()
    const { target, shown: owner } = this
    if (events.lost.hasSubscribers)
      events.lost.publish({ lock: target.title, owner, reason } satisfies LostEvent)
    for (const member of [...this.members]) member.onLost(reason)
  }

  /** Ends the tenure because its last lease is being released; from here on it is neither renewed nor lost. */
  end(): void {
    if (this.state === 'held') this.state = 'ended'
    this.#end()
  }

  /** Runs a command of this owner after those before it. */
  serially<T>(command: () => Promise<T>): Promise<T> {
    const before = this.#tail
    const result = before === undefined ? command() : before.then(command, command)
    this.#tail = result
    const done = (): void => {
      if (this.#tail === result) this.#tail = undefined
    }
    result.then(done, done)
    return result
  }

  /** Whether no command of this owner is under way. */
  get idle(): boolean {
    return this.#tail === undefined
  }

  /** Runs the last command of this owner, after those before it. */
  lastly<T>(command: () => Promise<T>): Promise<T> {
    return this.#tail === undefined ? command() : this.#tail.then(command, command)
  }

  /** Calls back when the tenure is lost or ended. */
  onceOver(listener: () => void): void {
    const before = this.#onEnd
    this.#onEnd = (ended) => {
      before?.(ended)
      listener()
    }
  }

  #end(): void {
    this.#onEnd?.(this)
    this.#onEnd = undefined
  }
}

/** What a tenure begins with. */
export interface TenureGrant {
  readonly target: Target
  readonly owner: string
  readonly once: boolean
  readonly clock: Clock
  readonly drift: number
  /** For how long the server's word is good, whatever TTL it has set. @defaultValue `Infinity` */
  readonly trustMs?: number | undefined
  readonly confirmation: Confirmation
  /** Called once, when the tenure is lost or ended. */
  readonly onEnd: (tenure: Tenure) => void
}

/** How much earlier than the server the holder gives up: a part of the TTL and 2 ms, but never more than half of it. */
export function driftAllowance(ttlMs: number, drift: number): number {
  return Math.min(ttlMs * drift + 2, ttlMs / 2)
}
