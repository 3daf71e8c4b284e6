/** A history put in order: calls with what came of them, faults, and looks at the server. */
import type { Entry, Holder, Terms } from './history.js'
import type { Span } from './intervals.js'
import type { Thing } from './things.js'

/** One call of acquire. */
export interface Attempt {
  readonly call: string
  readonly process: string
  readonly lock: string
  readonly parent: string | undefined
  /** The call of the multi-lock that this is a part of. */
  readonly whole: string | undefined
  readonly side: 'read' | 'write' | undefined
  readonly permits: number
  readonly invokedAt: number
  /** How long it may take: until the wait is over or it is aborted. */
  readonly waitMs: number
  readonly final: boolean
  /** A release may leave the lock closed for some time. */
  readonly keeps: boolean
  /** When it was granted or refused. */
  endedAt: number | undefined
  refusal: string | undefined
  hold: Hold | undefined
}

/** What the leases of one owner (nested ones) have in common. */
export interface Tenure {
  /** The TTLs that the server was asked for. */
  readonly ttls: number[]
  /** The latest local deadline that the worker told. */
  until: number
}

/** One lease. */
export interface Hold {
  readonly call: string
  readonly process: string
  readonly lock: string
  readonly owner: string
  /** How the server shows it: one field of a hash, or a few permits. */
  readonly fields: readonly string[]
  readonly attempt: Attempt
  readonly grantedAt: number
  readonly token: number | undefined
  readonly tenure: Tenure
  lost: { readonly at: number; readonly reason: string } | undefined
  releaseAt: number | undefined
  released: { readonly at: number; readonly outcome: string } | undefined
  entered: (Span & { readonly found: string | null }) | undefined
  left: (Span & { readonly intact: boolean }) | undefined
  saw: string | undefined
  writeAt: number | undefined
  wroteAt: number | undefined
  /** The write was one that a fence looked at. */
  fenced: boolean
  /** The fence has refused it. */
  stale: boolean
}

export interface FaultSpan extends Span {
  readonly id: number
  readonly fault: string
  readonly on: string | null
  readonly healed: boolean
}

/** A look at the server. */
export interface Look extends Span {
  readonly lock: string
  readonly holders: readonly Holder[]
  readonly queue: readonly string[]
}

/** A theft: until `to` the key with these fields was removed. */
export interface Theft extends Span {
  readonly lock: string
  readonly fields: readonly string[]
}

/** The end of a process. */
export interface Ending {
  readonly at: number
  readonly killed: boolean
  readonly how: string
}

type Remains = Extract<Entry, { readonly is: 'remains' }>

/** See the file's head. */
export class Story {
  readonly terms: Terms
  readonly entries: readonly Entry[]
  readonly attempts = new Map<string, Attempt>()
  readonly holds: Hold[] = []
  readonly faults: FaultSpan[] = []
  readonly looks: Look[] = []
  readonly thefts: Theft[] = []
  readonly endings = new Map<string, Ending>()
  /** What counted as left over by the workers that ended by themselves. */
  readonly ended = new Map<string, number>()
  readonly beginnings = new Map<string, number>()
  drain: { readonly at: number; readonly who: readonly string[] } | undefined
  remains: Remains | undefined
  /** A lease of which the worker told that it is held after it had told that it is lost. */
  readonly revived: { readonly hold: Hold; readonly at: number }[] = []
  readonly #tenures = new Map<string, Tenure>()
  readonly #stalls = new Map<string, Span[]>()
  readonly #holdsOf = new Map<string, Hold[]>()
  readonly #open = new Map<number, Extract<Entry, { readonly is: 'fault' }>>()

  constructor(entries: readonly Entry[], terms: Terms) {
    this.entries = entries
    this.terms = terms
    for (const entry of entries) this.#read(entry)
    for (const fault of this.#open.values()) this.#fault(fault, Infinity)
    this.faults.sort((a, b) => a.from - b.from)
  }

  /** When the process could not run. */
  stalls(process: string): readonly Span[] {
    return this.#stalls.get(process) ?? []
  }

  /** The faults that may touch a process, as spans. */
  faultsOn(process: string): readonly FaultSpan[] {
    return this.faults.filter(({ on }) => on === null || on === process)
  }

  /** The outermost call that a call is made in. */
  root(attempt: Attempt): Attempt {
    const around = attempt.parent === undefined ? undefined : this.attempts.get(attempt.parent)
    return around === undefined ? attempt : this.root(around)
  }

  /** The holds of a lock. */
  of(lock: string): readonly Hold[] {
    return this.#holdsOf.get(lock) ?? []
  }

  /** What the lock of this name is. */
  thing(lock: string): Thing | undefined {
    return this.terms.locks.find(({ name }) => name === lock)
  }

  /** The names of the locks that have keys of their own: of a multi-lock its members are judged. */
  get singles(): readonly string[] {
    return this.terms.locks.filter(({ members }) => members === undefined).map(({ name }) => name)
  }

  /** The end of the history. */
  get end(): number {
    return this.entries.at(-1)?.t ?? 0
  }

  #read(entry: Entry): void {
    if ('call' in entry) this.#readCall(entry)
    else this.#readOther(entry)
  }

  #readCall(entry: Extract<Entry, { readonly call: string }>): void {
    const attempt = this.attempts.get(entry.call)
    if (entry.is === 'invoke') this.attempts.set(entry.call, attemptOf(entry))
    else if (attempt === undefined) throw new Error(`call ${entry.call} was never invoked`)
    else if (entry.is === 'granted' || entry.is === 'refused') this.#answer(attempt, entry)
    else if (attempt.hold === undefined) throw new Error(`call ${entry.call} was never granted`)
    else this.#readHold(attempt.hold, entry)
  }

  #answer(attempt: Attempt, entry: Extract<Entry, { readonly is: 'granted' | 'refused' }>): void {
    attempt.endedAt = entry.t
    if (entry.is === 'refused') attempt.refusal = entry.why
    else {
      attempt.hold = holdOf(attempt, entry, this.#tenure(attempt, entry))
      this.holds.push(attempt.hold)
      const others = this.#holdsOf.get(attempt.lock)
      if (others === undefined) this.#holdsOf.set(attempt.lock, [attempt.hold])
      else others.push(attempt.hold)
    }
  }

  #tenure(attempt: Attempt, { owner, until, ttlMs }: Extract<Entry, { readonly is: 'granted' }>): Tenure {
    const key = `${attempt.lock} ${owner} ${attempt.side ?? ''}`
    const tenure = this.#tenures.get(key) ?? { ttls: [], until }
    this.#tenures.set(key, tenure)
    tenure.until = Math.max(tenure.until, until)
    tenure.ttls.push(ttlMs)
    return tenure
  }

  #readHold(hold: Hold, entry: Extract<Entry, { readonly call: string }>): void {
    const { t } = entry
    switch (entry.is) {
      case 'until':
        if (hold.lost !== undefined) this.revived.push({ hold, at: t })
        hold.tenure.until = Math.max(hold.tenure.until, entry.until)
        break
      case 'extend':
        hold.tenure.ttls.push(entry.ttlMs)
        break
      case 'lost':
        hold.lost ??= { at: t, reason: entry.reason }
        break
      case 'release':
        hold.releaseAt = t
        break
      case 'released':
        hold.released = { at: t, outcome: entry.outcome }
        break
      case 'entered':
        hold.entered = { from: entry.from, to: t, found: entry.found }
        break
      case 'left':
        hold.left = { from: entry.from, to: t, intact: entry.intact }
        break
      case 'read':
        hold.saw = entry.saw
        break
      case 'write':
        hold.writeAt = t
        hold.fenced = entry.fenced === true
        break
      case 'stale':
        hold.stale = true
        break
      case 'wrote':
        hold.wroteAt = t
        break
      default:
      // The call itself was read before.
    }
  }

  #readOther(entry: Exclude<Entry, { readonly call: string }>): void {
    const { t } = entry
    switch (entry.is) {
      case 'began':
        this.beginnings.set(entry.process, t)
        break
      case 'stall':
        this.#stall(entry.process, { from: entry.from, to: t })
        break
      case 'ended':
        this.ended.set(entry.process, entry.left)
        break
      case 'fault':
        this.#open.set(entry.id, entry)
        break
      case 'heal': {
        const fault = this.#open.get(entry.id)
        if (fault !== undefined) this.#fault(fault, t)
        this.#open.delete(entry.id)
        break
      }
      case 'seen':
        this.looks.push({
          ...{ from: entry.from, to: t, lock: entry.lock },
          ...{ holders: entry.holders, queue: entry.queue ?? [] },
        })
        break
      case 'forced':
        this.thefts.push({ from: entry.from, to: t, lock: entry.lock, fields: entry.fields })
        break
      case 'gone':
        this.endings.set(entry.who, { at: t, killed: entry.killed, how: entry.how })
        break
      case 'drain':
        this.drain = { at: t, who: entry.who }
        break
      case 'remains':
        this.remains = entry
    }
  }

  #stall(process: string, stall: Span): void {
    const stalls = this.#stalls.get(process)
    if (stalls === undefined) this.#stalls.set(process, [stall])
    else stalls.push(stall)
  }

  #fault({ id, fault, on, t }: Extract<Entry, { readonly is: 'fault' }>, to: number): void {
    this.faults.push({ id, fault, on, from: t, to, healed: to !== Infinity })
  }
}

function attemptOf(entry: Extract<Entry, { readonly is: 'invoke' }>): Attempt {
  const { call, process, lock, parent, whole, side, permits = 1, t, waitMs, abortMs, final, keeps } = entry
  return {
    ...{ call, process, lock, parent, whole, side, permits },
    invokedAt: t,
    waitMs: Math.min(waitMs ?? Infinity, abortMs ?? Infinity),
    final: final === true,
    keeps: keeps === true,
    endedAt: undefined,
    refusal: undefined,
    hold: undefined,
  }
}

function holdOf(attempt: Attempt, entry: Extract<Entry, { readonly is: 'granted' }>, tenure: Tenure): Hold {
  const { call, process, lock } = attempt
  const { owner, t: grantedAt, token, ids } = entry
  return {
    ...{ call, process, lock, owner, attempt, grantedAt, token, tenure },
    fields: ids ?? [attempt.side === 'write' ? `${owner}:write` : owner],
    lost: undefined,
    releaseAt: undefined,
    released: undefined,
    entered: undefined,
    left: undefined,
    saw: undefined,
    writeAt: undefined,
    wroteAt: undefined,
    fenced: false,
    stale: false,
  }
}

/** From the grant to the first of: release invoked, loss told, local deadline. */
export function belief(hold: Hold): Span {
  const { grantedAt, tenure, lost, releaseAt } = hold
  return { from: grantedAt, to: Math.min(tenure.until, lost?.at ?? Infinity, releaseAt ?? Infinity) }
}
