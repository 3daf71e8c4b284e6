/** One turn of a caller: acquire, work on the resource, release; and everything told as it happens. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AcquireOptions, GuardedValue, Lease, RenewOkEvent } from '../../src/index.js'
import type { CallEvent } from './history.js'
import { now } from './journal.js'
import { briefPlan, type Plan } from './plan.js'
import type { Random } from './random.js'
import type { Store } from './store.js'
import { codeOf, tokenOf, Visit } from './visit.js'
import { idsOf, membersIn, type Way } from './ways.js'

/** What a worker's callers have in common. */
export interface Kit {
  readonly random: Random
  readonly store: Store
  /** The value of a fenced lock, behind its fence. */
  guarded(name: string): GuardedValue
  readonly watchdogMs: number
  readonly leases: Leases
  newCall(): string
  tell(call: string, event: CallEvent, t?: number): void
}

/** The lease that a nested turn is made in. */
interface Around {
  readonly call: string
  readonly lease: Lease
  readonly way: Way
  /** The code runs in the scope of the lease. */
  readonly scoped: boolean
}

const STEP_MS = 15

/** The leases that are held, for events that name an owner only. */
export class Leases {
  readonly #held = new Map<string, Map<string, Lease>>()

  add(call: string, lease: Lease): void {
    const calls = this.#held.get(lease.owner) ?? new Map<string, Lease>()
    this.#held.set(lease.owner, calls.set(call, lease))
  }

  remove(call: string, { owner }: Lease): void {
    const calls = this.#held.get(owner)
    calls?.delete(call)
    if (calls?.size === 0) this.#held.delete(owner)
  }

  of({ owner }: RenewOkEvent): readonly [string, Lease][] {
    return [...(this.#held.get(owner) ?? [])]
  }
}

/** The local deadline, if the lease is held. The clock is read first, so that the deadline is never told too late. */
function deadlineOf(lease: Lease): number | undefined {
  const at = now()
  const { remaining } = lease
  return remaining > 0 ? at + remaining : undefined
}

/** Tells that the lease is still held, and until when. */
export function tellUntil(kit: Kit, call: string, lease: Lease): boolean {
  const until = deadlineOf(lease)
  if (until !== undefined) kit.tell(call, { is: 'until', until })
  return until !== undefined
}

/** Never rejects. */
export async function takeTurn(kit: Kit, way: Way, plan: Plan, around?: Around): Promise<void> {
  const call = kit.newCall()
  const turn = new Turn(kit, { call, way, plan, around })
  kit.tell(call, {
    is: 'invoke',
    lock: way.name,
    waitMs: waitOf(plan) ?? null,
    abortMs: plan.abortMs,
    parent: around?.call,
    side: way.side,
    permits: way.permits,
    keeps: plan.minHoldMs === undefined ? undefined : true,
    final: plan.final,
  })
  try {
    await turn.take(optionsOf(way, plan, around))
  } catch (error) {
    turn.failed(error)
  }
}

function waitOf({ how, waitMs }: Plan): number | undefined {
  return how === 'try' ? (waitMs ?? 0) : waitMs
}

function optionsOf(
  way: Way,
  { waitMs, leaseMs, minHoldMs, abortMs }: Plan,
  around: Around | undefined,
): AcquireOptions {
  return {
    waitTime: waitMs,
    leaseTime: leaseMs,
    minHold: minHoldMs,
    signal: abortMs === undefined ? undefined : AbortSignal.timeout(abortMs),
    within: around === undefined || around.scoped || around.way.name !== way.name ? undefined : around.lease,
  }
}

/** A lease as the checker knows it: a multi-lock's has one for each of its members besides. */
interface Part {
  readonly call: string
  /** The lock that is judged. */
  readonly name: string
  readonly lease: Lease
}

interface TurnParts {
  readonly call: string
  readonly way: Way
  readonly plan: Plan
  readonly around: Around | undefined
}

class Turn {
  readonly #kit: Kit
  readonly #parts: TurnParts
  /** The lease itself first, once it is granted. */
  #granted: readonly Part[] = []

  constructor(kit: Kit, parts: TurnParts) {
    this.#kit = kit
    this.#parts = parts
  }

  async take(options: AcquireOptions): Promise<void> {
    const { taking } = this.#parts.way
    switch (this.#parts.plan.how) {
      case 'using':
        await taking.using(options, (lease) => this.#section(lease, true))
        this.#released('ended')
        break
      case 'acquire':
        await this.#bare(await taking.acquire(options))
        break
      case 'try': {
        const lease = await taking.tryAcquire(options)
        if (lease === null) this.#kit.tell(this.#parts.call, { is: 'refused', why: 'busy' })
        else await this.#bare(lease)
      }
    }
  }

  failed(error: unknown): void {
    const why = nameOf(error)
    if (this.#granted.length > 0) this.#released(why)
    else this.#kit.tell(this.#parts.call, { is: 'refused', why })
  }

  async #bare(lease: Lease): Promise<void> {
    await this.#section(lease, false)
    this.#released(await lease.release())
  }

  #released(outcome: string): void {
    this.#tellAll({ is: 'released', outcome })
  }

  /** The last thing that is told in here is the release, since the caller makes it at once. */
  async #section(lease: Lease, scoped: boolean): Promise<void> {
    const { around, plan } = this.#parts
    this.#begin(lease)
    for (const part of this.#granted) this.#kit.leases.add(part.call, part.lease)
    try {
      if (around === undefined) await this.#onResources(lease, () => this.#work(lease, scoped))
      else await this.#hold(lease, plan.holdMs)
    } finally {
      for (const part of this.#granted) this.#kit.leases.remove(part.call, part.lease)
      this.#tellAll({ is: 'release' })
    }
  }

  #begin(lease: Lease): void {
    const { call, way, plan, around } = this.#parts
    const members = membersIn(lease).map((member, i) => ({
      call: `${call}/${String(i + 1)}`,
      name: member.lock,
      lease: member,
    }))
    this.#granted = [{ call, name: way.name, lease }, ...members]
    for (const { call: part, name } of members)
      this.#kit.tell(part, {
        ...{ is: 'invoke', lock: name, waitMs: waitOf(plan) ?? null, whole: call, parent: around?.call },
        keeps: plan.minHoldMs === undefined ? undefined : true,
      })
    for (const part of this.#granted) this.#tellGranted(part)
    const told = (): void => {
      // The members of a multi-lock may be held for some time yet, but nobody believes in them any more.
      for (const part of this.#granted) this.#kit.leases.remove(part.call, part.lease)
      this.#tellAll({ is: 'lost', reason: reasonOf(lease.signal) })
    }
    if (lease.signal.aborted) told()
    else lease.signal.addEventListener('abort', told)
  }

  #tellGranted({ call, lease }: Part): void {
    const { leaseMs: ttlMs = this.#kit.watchdogMs } = this.#parts.plan
    const at = now()
    const { owner, remaining } = lease
    this.#kit.tell(
      call,
      { is: 'granted', owner, until: at + remaining, ttlMs, token: tokenOf(lease), ids: idsOf(lease) },
      at,
    )
  }

  /** What the lock protects: of a multi-lock, what each of its members does. */
  async #onResources(lease: Lease, work: () => Promise<void>): Promise<void> {
    const visits = this.#parts.way.alone ? this.#visits(lease) : []
    for (const visit of visits) await visit.enter()
    await work()
    for (const visit of visits) await visit.leave()
  }

  #visits(lease: Lease): Visit[] {
    const { kind } = this.#parts.way
    const own = this.#granted.length > 1 ? this.#granted.slice(1) : this.#granted
    return own.map(
      ({ call, name, lease: part }) =>
        new Visit({
          ...{ call, name, lease, store: this.#kit.store, owner: part.owner },
          guarded: kind === 'fenced' ? this.#kit.guarded(name) : undefined,
          tell: (event) => {
            this.#kit.tell(call, event)
          },
        }),
    )
  }

  async #work(lease: Lease, scoped: boolean): Promise<void> {
    const { plan, call, way } = this.#parts
    await this.#hold(lease, plan.holdMs / 2)
    if (plan.extendMs !== undefined) await this.#extend(lease, plan.extendMs)
    for (let inner = 0; inner < plan.nested; inner++) {
      const { way: next, waitMs } = this.#kit.random.pick(way.inner)
      const brief = briefPlan(scoped ? 'using' : 'acquire', waitMs, this.#kit.random.between(0, 30))
      await takeTurn(this.#kit, next, brief, { call, lease, way, scoped })
    }
    await this.#hold(lease, plan.holdMs / 2)
  }

  /** Works on as long as the lease is held, and tells so again and again. */
  async #hold(lease: Lease, ms: number): Promise<void> {
    const endAt = now() + ms
    while (now() < endAt) {
      await sleep(Math.min(STEP_MS, endAt - now()))
      if (!this.#tellUntil()) return
    }
  }

  async #extend(lease: Lease, ttlMs: number): Promise<void> {
    this.#tellAll({ is: 'extend', ttlMs })
    try {
      await lease.extend(ttlMs)
    } catch {
      // The lease tells itself whether it is held.
    }
    this.#tellUntil()
  }

  #tellUntil(): boolean {
    const [whole, ...members] = this.#granted
    if (whole === undefined || !tellUntil(this.#kit, whole.call, whole.lease)) return false
    for (const { call, lease } of members) tellUntil(this.#kit, call, lease)
    return true
  }

  #tellAll(event: CallEvent): void {
    for (const { call } of this.#granted) this.#kit.tell(call, event)
  }
}

function nameOf(error: unknown): string {
  return codeOf(error) ?? (error instanceof Error ? error.name : String(error))
}

function reasonOf({ reason }: AbortSignal): string {
  const why: unknown = reason
  return typeof why === 'object' && why !== null && 'reason' in why ? String(why.reason) : nameOf(why)
}
