import { EngineError } from '../engine/engine.js'
import { UnavailableError } from '../errors.js'
import type { Timer } from '../clock.js'
import type { ResolvedAcquireOptions } from '../options.js'
import { acquire } from './acquire.js'
import { Busy, type Call } from './call.js'
import { giveBack } from './group-call.js'
import type { HeldLease } from './lease.js'
import { partOf } from './part-of.js'
import { memberTimeout, troubleOf, type Red, type RedMember, type Vote } from './red.js'
import { HeldRedLease } from './red-lease.js'
import type { Runtime } from './runtime.js'

/** A member that did not answer is left out for so long, as long as the others are enough. */
const SUSPECT_MS = 1_000
const suspectUntilMs = new WeakMap<Runtime, number>()

/** Who was in the way of a call's former attempts, and where. */
const metBefore = new WeakMap<Call, Map<number, string | undefined>>()

interface Met {
  readonly place: number
  readonly holder: string | undefined
}

/** What an attempt comes to. */
type Result = HeldRedLease | Busy | 'void'

/**
 * One attempt on all members at once, as a new owner, which is the same on all of them. It is decided as soon as a
 * majority has granted, or cannot any more; what comes in later joins the lease, or is given back.
 */
export class Ballot {
  readonly #runtime: Runtime
  readonly #red: Red
  readonly #call: Call
  readonly #owner: string
  readonly #votes: Vote[] = []
  readonly #ended = new AbortController()
  #timer: Timer | undefined
  #result: HeldRedLease | 'refused' | undefined

  constructor(runtime: Runtime, red: Red, call: Call) {
    this.#runtime = runtime
    this.#red = red
    this.#call = call
    this.#owner = runtime.newOwner()
  }

  /** Asks all members. @throws EngineError with the QuorumError as cause, or that itself where asking again is of no use */
  run(): Promise<Result> {
    const { clock } = this.#runtime
    const timeoutMs = memberTimeout(this.#red, this.#call.options.leaseMs)
    const waitMs = this.#call.attemptDeadline(timeoutMs) - clock.now()
    this.#timer = clock.setTimer(
      () => {
        this.#ended.abort(noAnswer(this.#red.title))
      },
      Math.max(0, waitMs),
      true,
    )
    this.#call.listen((reason) => {
      this.#ended.abort(reason)
    })
    return new Promise((resolve, reject) => {
      this.#red.members.forEach((member, place) => {
        void this.#ask(member, place).then((vote) => {
          this.#count(vote, resolve, reject)
        })
      })
    })
  }

  async #ask(member: RedMember, place: number): Promise<Vote> {
    const { runtime, target } = member
    const failed = (error: unknown): Vote => ({ result: { member: place, outcome: 'error', error } })
    if (this.#canDoWithout(member)) return failed(noAnswer(target.title))
    try {
      const request = {
        target,
        options: this.#optionsFor(member),
        reentrant: true,
        part: { whole: this.#call, owner: this.#owner },
        from: runtime.scope.current,
        note: undefined,
      }
      const result = await acquire<HeldLease | Busy>(runtime, request, (given) => given)
      suspectUntilMs.delete(runtime)
      if (!(result instanceof Busy)) return { result: { member: place, outcome: 'granted' }, lease: result }
      const { holder, ttlMs = -1 } = result.seen ?? { holder: undefined }
      return { result: { member: place, outcome: 'busy', holder }, ttlMs }
    } catch (error) {
      const { signal } = this.#ended
      if (signal.aborted && !this.#call.fired)
        suspectUntilMs.set(runtime, this.#runtime.clock.now() + SUSPECT_MS)
      return failed(error)
    }
  }

  /** It did not answer a moment ago, and the others are enough. */
  #canDoWithout({ runtime }: RedMember): boolean {
    const nowMs = this.#runtime.clock.now()
    const suspect = (of: Runtime): boolean => (suspectUntilMs.get(of) ?? 0) > nowMs
    if (!suspect(runtime)) return false
    return this.#red.members.filter((other) => !suspect(other.runtime)).length >= this.#red.quorum
  }

  #optionsFor({ runtime, target }: RedMember): ResolvedAcquireOptions {
    const { options } = this.#call
    const { within } = options
    return {
      ...options,
      waitTimeMs: 0,
      within: within === undefined ? undefined : partOf(within, runtime, target),
      signal: this.#ended.signal,
      minHoldMs: 0,
      maxHoldMs: Infinity,
    }
  }

  #count(vote: Vote, resolve: (result: Result) => void, reject: (error: unknown) => void): void {
    const { members, quorum } = this.#red
    this.#votes.push(vote)
    const all = this.#votes.length === members.length
    if (all) this.#timer?.cancel()
    if (this.#result !== undefined) {
      this.#late(vote)
      return
    }
    const granted = this.#votes.filter(({ result }) => result.outcome === 'granted').length
    const busy = this.#votes.filter(({ result }) => result.outcome === 'busy').length
    if (granted >= quorum) resolve(this.#grant())
    else if (all || busy > members.length - quorum) this.#refuse().then(resolve, reject)
  }

  #late({ lease, result }: Vote): void {
    if (lease === undefined) return
    if (this.#result instanceof HeldRedLease) this.#result.admit(lease, result.member)
    else void lease.release()
  }

  #grant(): HeldRedLease {
    const { title, quorum, members } = this.#red
    const leases = this.#leases()
    this.#decided()
    const owner = leases[0]?.owner ?? this.#owner
    const terms = { title, owner, quorum, maxHoldMs: this.#call.options.maxHoldMs, size: members.length }
    const lease = new HeldRedLease(this.#runtime, terms, leases)
    for (const { lease: part, result } of this.#votes)
      if (part !== undefined) lease.place(part, result.member)
    this.#result = lease
    return lease
  }

  async #refuse(): Promise<Result> {
    this.#result = 'refused'
    const result = this.#judge()
    this.#decided()
    await giveBack(this.#runtime, this.#leases())
    if (this.#call.fired) throw this.#call.reason
    if (result instanceof Error) throw result
    return result
  }

  #decided(): void {
    this.#call.listen(undefined)
    // Nobody waits for those who have not answered yet.
    this.#timer?.keepAlive(false)
  }

  #leases(): readonly HeldLease[] {
    return this.#votes.flatMap(({ lease }) => lease ?? [])
  }

  /** Whether others are in the way, or members are missing. */
  #judge(): Busy | 'void' | Error {
    const { members, quorum, title } = this.#red
    const errors = this.#votes.flatMap(({ result }) => (result.outcome === 'error' ? [result.error] : []))
    if (this.#leases().length + errors.length < quorum) return this.#busy()
    const results = this.#votes.map(({ result }) => result).sort((a, b) => a.member - b.member)
    const trouble = troubleOf({ title, quorum, size: members.length }, results)
    const lasting = errors.filter((error) => !(error instanceof UnavailableError))
    if (lasting.length > members.length - quorum) return trouble
    return new EngineError(trouble.message, { kind: 'unavailable', outcome: 'unknown', cause: trouble })
  }

  /** Who stays is waited for; those that have got in each other's way give back, and so have we, perhaps. */
  #busy(): Busy | 'void' {
    const votes = this.#votes.flatMap(({ result, ttlMs = -1 }) =>
      result.outcome === 'busy' ? [{ place: result.member, holder: result.holder, ttlMs }] : [],
    )
    const ttls = votes.map(({ ttlMs }) => (ttlMs < 0 ? Infinity : ttlMs)).sort((a, b) => a - b)
    const missing = this.#red.quorum - this.#leases().length
    const ttlMs = ttls[Math.min(missing, ttls.length) - 1] ?? Infinity
    const [holder] = votes.map((vote) => vote.holder)
    const seen = holder === undefined ? undefined : { holder, ttlMs: ttlMs === Infinity ? -1 : ttlMs }
    this.#call.seen = seen
    const lasting = this.#lasting(votes)
    return (lasting && seen !== undefined) || this.#call.options.waitTimeMs === 0 ? new Busy(seen) : 'void'
  }

  /**
   * Whether this is one holder, or several that the attempt before has met, too: Redisson has another owner on each
   * server, while attempts of ours are new owners each time.
   */
  #lasting(votes: readonly Met[]): boolean {
    const met = metBefore.get(this.#call) ?? new Map<number, string | undefined>()
    const again = votes.every(({ place, holder }) => met.has(place) && met.get(place) === holder)
    for (const { place, holder } of votes) met.set(place, holder)
    metBefore.set(this.#call, met)
    return again || new Set(votes.map(({ holder }) => holder)).size === 1
  }
}

function noAnswer(title: string): UnavailableError {
  return new UnavailableError(`Lock '${title}': no answer in time`, title, { outcome: 'unknown' })
}
