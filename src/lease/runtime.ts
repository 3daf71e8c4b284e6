import { randomFillSync, randomUUID } from 'node:crypto'
import type { Clock } from '../clock.js'
import type { Engine, Topic } from '../engine/engine.js'
import { ClosedError } from '../errors.js'
import type { ResolvedHoldfastOptions } from '../options.js'
import type { Wait } from './call.js'
import { Commands } from './commands.js'
import { Compensations } from './compensation.js'
import { Contest } from './contest.js'
import type { Gate } from './gate.js'
import { Grants } from './grants.js'
import { HeldLease } from './lease.js'
import { Scope } from './scope.js'
import { kindOf, type Target } from './target.js'
import type { Tenure } from './tenure.js'
import { Watchdog } from './watchdog.js'

/** What all locks of one `Holdfast` share. */
export class Runtime {
  readonly settings: ResolvedHoldfastOptions
  readonly clock: Clock
  readonly commands: Commands
  readonly watchdog: Watchdog
  readonly compensations: Compensations
  readonly grants: Grants = new Grants()
  /** Of the read/write locks in use, by name: who goes first in this process. */
  readonly gates: Map<string, Gate> = new Map<string, Gate>()
  readonly scope: Scope = new Scope()
  readonly clientId: string = randomUUID()
  /** Nothing is left but to close connections. */
  closed = false
  readonly #contests = new Map<string, Contest>()
  readonly #calls = new Set<Wait>()
  readonly #gatherings = new Map<string, object>()
  readonly #closers = new Set<() => Promise<void>>()
  #pending = 0
  #onSettled: (() => void) | undefined
  readonly #entropy = new Uint32Array(128)
  #drawn = 0
  #closing: Promise<void> | undefined

  constructor(engine: Engine, settings: ResolvedHoldfastOptions) {
    const { clock } = settings
    this.settings = settings
    this.clock = clock
    this.commands = new Commands(engine, clock, settings.commandTimeout)
    this.watchdog = new Watchdog({ commands: this.commands, clock, timeoutMs: settings.lockWatchdogTimeout })
    this.compensations = new Compensations(this.commands, clock)
  }

  /** Whether `close` was called. */
  get closing(): boolean {
    return this.#closing !== undefined
  }

  /** An owner that nobody else has: the client's id and 53 random bits, mixed with the time of drawing. */
  newOwner(): string {
    if (this.#drawn === 0) randomFillSync(this.#entropy)
    const high = this.#entropy[this.#drawn] ?? 0
    const low = this.#entropy[this.#drawn + 1] ?? 0
    this.#drawn = (this.#drawn + 2) % this.#entropy.length
    // Copies of a process image have the same supply, but not the same time.
    const ticks = (this.clock.now() * 1e6) >>> 0
    return `${this.clientId}:${String((high & 0x1f_ffff) * 2 ** 32 + ((low ^ ticks) >>> 0))}`
  }

  /** Whether callers of this process wait for an object in one queue. */
  waited({ family, name }: Target): boolean {
    return this.#contests.has(`${family} ${name}`)
  }

  /** The queue of this process for an object; made with the first caller and gone with the last. */
  contest(target: Target, topic: Topic | undefined = kindOf(target).topic(target)): Contest {
    const key = topic?.owner === undefined ? `${target.family} ${target.name}` : topic.owner
    const existing = this.#contests.get(key)
    if (existing !== undefined) return existing
    const contest = new Contest(target, {
      engine: this.commands.engine,
      clock: this.clock,
      topic,
      onEmpty: () => this.#contests.delete(key),
    })
    this.#contests.set(key, contest)
    return contest
  }

  /** What the callers of this process for one object share; made with the first, and gone when it says that it is empty. */
  gathering<T extends object>(key: string, make: (onEmpty: () => void) => T): T {
    const existing = this.#gatherings.get(key)
    // A key belongs to one class.
    if (existing !== undefined) return existing as T
    const made = make(() => this.#gatherings.delete(key))
    this.#gatherings.set(key, made)
    return made
  }

  /** Registers what is to end first when this is closed; its promise is waited for while draining. Returns how to withdraw it. */
  atClose(closer: () => Promise<void>): () => void {
    this.#closers.add(closer)
    return () => this.#closers.delete(closer)
  }

  /** Registers a call, so that closing can end it. */
  begin(call: Wait): void {
    this.#calls.add(call)
  }

  /** Forgets a call. */
  finish(call: Wait): void {
    this.#calls.delete(call)
    call.end()
    this.#tellSettled()
  }

  /** A release begins; `close` waits for it. */
  beginRelease(): void {
    this.#pending += 1
  }

  /** A release is over. */
  endRelease(): void {
    this.#pending -= 1
    this.#tellSettled()
  }

  /** How much state is there: everything is 0 when idle. */
  stats(): { held: number; waiting: number; contests: number; pending: number; compensating: number } {
    return {
      held: this.watchdog.size + this.grants.size,
      waiting: [...this.#calls].filter(({ whole }) => whole === undefined).length,
      contests: this.#contests.size + this.#gatherings.size,
      pending: this.#pending,
      compensating: this.compensations.size,
    }
  }

  /** Ends everything, see `Holdfast.close`. */
  close(drainMs: number): Promise<void> {
    return (this.#closing ??= this.#close(drainMs))
  }

  async #close(drainMs: number): Promise<void> {
    for (const call of [...this.#calls]) if (!call.nested) call.fire(new ClosedError(call.title))
    const closers = Promise.all([...this.#closers].map((closer) => closer()))
    // Without a timer, so that it ends on a clock that stands still, too.
    if (drainMs > 0)
      await this.#within(drainMs, Promise.all([closers, this.watchdog.empty(), this.grants.empty()]))
    await Promise.all([...this.watchdog.tenures().map((tenure) => this.#evict(tenure)), this.grants.evict()])
    await this.#within(this.settings.commandTimeout, this.#settled())
    await this.#within(this.settings.commandTimeout, this.compensations.settled())
    this.closed = true
    this.compensations.close()
    this.watchdog.close()
    this.scope.close()
    await this.commands.engine.close()
  }

  /** Resolves when no release is under way and no call is left that may have something to undo. */
  #settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#onSettled = resolve
      this.#tellSettled()
    })
  }

  #tellSettled(): void {
    if (this.#pending === 0 && this.#calls.size === 0) this.#onSettled?.()
  }

  /** Tells the holders; what runs under a lease keeps the key until its TTL, so that nobody enters while it works. */
  async #evict(tenure: Tenure): Promise<void> {
    const leases = tenure.members.filter((member) => member instanceof HeldLease)
    const working = leases.some((lease) => lease.running)
    tenure.lose('closed')
    if (!working) await Promise.all(leases.map((lease) => lease.release()))
  }

  async #within(ms: number, work: Promise<unknown>): Promise<void> {
    let cancel = (): void => undefined
    const limit = new Promise<void>((resolve) => {
      const timer = this.clock.setTimer(resolve, ms, true)
      cancel = () => {
        timer.cancel()
      }
    })
    await Promise.race([work, limit])
    cancel()
  }
}
