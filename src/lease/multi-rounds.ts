import { EngineError } from '../engine/engine.js'
import { ReplicationError, UnavailableError } from '../errors.js'
import type { ResolvedAcquireOptions } from '../options.js'
import { Busy, type Call } from './call.js'
import { unavailable, worthRetrying } from './commands.js'
import { giveBack, sleep } from './group-call.js'
import { KeepAlive } from './keep-alive.js'
import type { Member, MemberLease } from './member.js'
import { attemptTogether, canGoTogether } from './multi-attempt.js'
import { MultiLine } from './multi-line.js'
import type { Runtime } from './runtime.js'
import { publishWait } from './wait.js'

/** The leases of all members. */
export type Collected = ReadonlyMap<Member, MemberLease>

/** How a time grows: doubled by each round up to the longest, and a random part of it is left out. */
interface Growth {
  readonly firstMs: number
  readonly longestMs: number
}

/** For the first member of a round, while nothing is held. */
const PATIENCE: Growth = { firstMs: 250, longestMs: 5_000 }
/** For another member, while some are held. */
const STEP: Growth = { firstMs: 25, longestMs: 2_000 }
/** Between two rounds. */
const PAUSE: Growth = { firstMs: 5, longestMs: 100 }

/** What stopped a round. */
interface InTheWay {
  readonly member: Member | undefined
  readonly seen?: Busy['seen']
  /** It could not be asked, or did not answer in time. */
  readonly error?: UnavailableError | ReplicationError
}

/**
 * Takes all members, or none, in rounds. A round tries all at once where one script can do that; then one by one, with
 * patience for the first, which is the one that was in the way, and little for the others. Then it frees what it has
 * taken, and the next round begins. So nobody waits for long for somebody who waits for him, whatever else they hold.
 */
export class Rounds {
  readonly #runtime: Runtime
  readonly #members: readonly Member[]
  readonly #call: Call
  #round = 0
  #troubleSinceMs: number | undefined

  constructor(runtime: Runtime, members: readonly Member[], call: Call) {
    this.#runtime = runtime
    this.#members = members
    this.#call = call
  }

  /** Goes on until all are taken, or the waiting is over. */
  async run(): Promise<Collected | Busy> {
    const call = this.#call
    for (let blocked: Member | undefined; ; this.#round += 1) {
      const endTurn = this.#alone ? undefined : await MultiLine.of(this.#runtime).turn(call, this.#members)
      if (endTurn === undefined && !this.#alone) return new Busy(call.seen)
      const result = await this.#once(blocked).finally(endTurn)
      if (result instanceof Map) return result
      if (this.#over(result)) return new Busy(call.seen)
      publishWait(call, new Busy(call.seen))
      await sleep(this.#runtime.clock, call, this.#grown(PAUSE))
      if (call.overdue) return new Busy(call.seen)
      blocked = result.member
    }
  }

  /** Whoever tries once, wants only one, or is inside of a lease that others may wait for, does not stand in line. */
  get #alone(): boolean {
    const { options, nested } = this.#call
    return this.#members.length === 1 || options.waitTimeMs === 0 || nested || this.#runtime.scope.inside
  }

  /** Whether another round is of no use. @throws what the members failed with, if that is why */
  #over({ seen, error }: InTheWay): boolean {
    const { options, startedMs } = this.#call
    const over = options.waitTimeMs === 0 || this.#call.overdue
    if (error === undefined) {
      this.#call.seen = seen
      this.#troubleSinceMs = undefined
      return over
    }
    const { clock, settings } = this.#runtime
    this.#troubleSinceMs ??= this.#round === 0 ? startedMs : clock.now()
    const hopeless =
      options.waitTimeMs === Infinity && clock.now() - this.#troubleSinceMs >= settings.unavailableAfter
    if (over || hopeless) throw error
    return false
  }

  /** One round: the leases, or what was in the way. */
  async #once(blocked: Member | undefined): Promise<Map<Member, MemberLease> | InTheWay> {
    const together = this.#canGoTogether ? await this.#together() : undefined
    if (together instanceof Map) return together
    const first = together?.member ?? blocked
    if (together !== undefined && (this.#call.options.waitTimeMs === 0 || this.#call.overdue)) return together
    if (together?.seen !== undefined) {
      this.#call.seen = together.seen
      publishWait(this.#call, new Busy(together.seen))
    }
    return this.#oneByOne(first)
  }

  get #canGoTogether(): boolean {
    return this.#call.options.within === undefined && canGoTogether(this.#members)
  }

  /** Undefined: one script cannot take them. */
  async #together(): Promise<Map<Member, MemberLease> | InTheWay | undefined> {
    const call = this.#call
    const [first] = this.#members
    if (first === undefined) return undefined
    try {
      const result = await attemptTogether(first.runtime, call, this.#members)
      if ('leases' in result) return new Map(result.leases)
      return { member: this.#members[result.place], seen: result.busy.seen }
    } catch (error) {
      if (call.fired || !(error instanceof EngineError)) throw error
      // A single address may stand before a cluster; that is known from now on.
      if (!this.#canGoTogether) return undefined
      if (!worthRetrying(error)) throw error
      return { member: undefined, error: unavailable(error, call.title) }
    }
  }

  async #oneByOne(blocked: Member | undefined): Promise<Map<Member, MemberLease> | InTheWay> {
    const { clock } = this.#runtime
    const { options } = this.#call
    const taken = new Map<Member, MemberLease>()
    const keepAlive =
      options.leaseMs === undefined ? undefined : new KeepAlive(clock, options.leaseMs, taken.values())
    const ended = new AbortController()
    this.#call.listen((reason) => {
      ended.abort(reason)
    })
    try {
      const inTheWay = await this.#takeAll(taken, blocked, ended.signal)
      if (inTheWay === undefined) return taken
      await giveBack(this.#runtime, taken.values())
      return inTheWay
    } catch (error) {
      // Whoever gave up does not wait for that.
      void giveBack(this.#runtime, taken.values())
      throw error
    } finally {
      this.#call.listen(undefined)
      keepAlive?.stop()
    }
  }

  /** Undefined: all are taken. */
  async #takeAll(
    taken: Map<Member, MemberLease>,
    blocked: Member | undefined,
    signal: AbortSignal,
  ): Promise<InTheWay | undefined> {
    const owner = this.#runtime.newOwner()
    const order = blocked === undefined ? [] : [blocked]
    for (const member of this.#members) if (member !== blocked) order.push(member)
    for (const member of order) {
      const patience = taken.size === 0 ? PATIENCE : STEP
      const result = await this.#take(member, { owner, signal, patience: this.#grown(patience) })
      if ('inTheWay' in result) return result.inTheWay
      taken.set(member, result.lease)
    }
    await this.#begin([...taken.values()])
    const lost = order.find((member) => taken.get(member)?.held !== true)
    return lost === undefined ? undefined : { member: lost }
  }

  async #take(
    member: Member,
    {
      owner,
      signal,
      patience,
    }: { readonly owner: string; readonly signal: AbortSignal; readonly patience: number },
  ): Promise<{ readonly lease: MemberLease } | { readonly inTheWay: InTheWay }> {
    const { options, deadlineMs } = this.#call
    // A member that is tried when time is up is tried all the same: one try is never too much.
    const restMs = options.waitTimeMs === 0 ? 0 : Math.max(1, deadlineMs - this.#runtime.clock.now())
    // The only one is waited for to the end: there is nothing that anybody else could wait for.
    const waitTimeMs = this.#members.length === 1 ? restMs : Math.min(restMs, patience)
    try {
      const part = { whole: this.#call, owner }
      const result = await member.acquire(optionsFor(member, { ...options, waitTimeMs, signal }), part)
      return result instanceof Busy ? { inTheWay: { member, seen: result.seen } } : { lease: result }
    } catch (error) {
      // Perhaps only the step was too short; in the end the last error counts.
      if (this.#call.fired || waitTimeMs === restMs || !isPassing(error)) throw error
      return { inTheWay: { member, error } }
    }
  }

  /** The lease time of all begins when the last one is taken. */
  async #begin(taken: readonly MemberLease[]): Promise<void> {
    const { leaseMs } = this.#call.options
    if (leaseMs === undefined || taken.length === 1) return
    // Those that cannot be extended are found not to be held, or have to do with the time that they have.
    await Promise.allSettled(taken.map((lease) => lease.extend(leaseMs)))
  }

  #grown({ firstMs, longestMs }: Growth): number {
    return Math.min(firstMs * 2 ** this.#round, longestMs) * (0.5 + Math.random() / 2)
  }
}

/** The options for one member: what is about the whole is left out. */
function optionsFor(member: Member, options: ResolvedAcquireOptions): ResolvedAcquireOptions {
  const { within } = options
  return {
    ...options,
    within: within === undefined ? undefined : member.within(within),
    minHoldMs: 0,
    maxHoldMs: Infinity,
  }
}

/** The server may serve another time. */
function isPassing(error: unknown): error is UnavailableError | ReplicationError {
  return error instanceof UnavailableError || error instanceof ReplicationError
}
