/** One turn of a caller: acquire, work on the resource, release; and everything told as it happens. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AcquireOptions, Lease, Lock, Mutex, RenewOkEvent } from '../../src/index.js'
import type { CallEvent } from './history.js'
import { now } from './journal.js'
import type { Plan } from './plan.js'
import type { Random } from './random.js'
import type { Store } from './store.js'

/** What a worker's callers have in common. */
export interface Kit {
  readonly random: Random
  readonly store: Store
  readonly watchdogMs: number
  readonly leases: Leases
  newCall(): string
  tell(call: string, event: CallEvent, t?: number): void
}

/** The lock of a turn. */
export interface Subject {
  readonly name: string
  readonly lock: Lock | Mutex
}

/** The lease that a nested turn is made in. */
interface Around {
  readonly call: string
  readonly lease: Lease
  /** The code runs in the scope of the lease. */
  readonly scoped: boolean
}

const STEP_MS = 15
const INNER_WAIT_MS = 1_000

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
export async function takeTurn(kit: Kit, subject: Subject, plan: Plan, around?: Around): Promise<void> {
  const call = kit.newCall()
  const turn = new Turn(kit, { call, subject, plan, around })
  kit.tell(call, {
    is: 'invoke',
    lock: subject.name,
    waitMs: waitOf(plan) ?? null,
    abortMs: plan.abortMs,
    parent: around?.call,
    keeps: plan.minHoldMs === undefined ? undefined : true,
  })
  try {
    await turn.take(optionsOf(plan, around))
  } catch (error) {
    turn.failed(error)
  }
}

function waitOf({ how, waitMs }: Plan): number | undefined {
  return how === 'try' ? (waitMs ?? 0) : waitMs
}

function optionsOf(
  { waitMs, leaseMs, minHoldMs, abortMs }: Plan,
  around: Around | undefined,
): AcquireOptions {
  return {
    waitTime: waitMs,
    leaseTime: leaseMs,
    minHold: minHoldMs,
    signal: abortMs === undefined ? undefined : AbortSignal.timeout(abortMs),
    within: around === undefined || around.scoped ? undefined : around.lease,
  }
}

interface TurnParts {
  readonly call: string
  readonly subject: Subject
  readonly plan: Plan
  readonly around: Around | undefined
}

class Turn {
  readonly #kit: Kit
  readonly #parts: TurnParts
  #granted: Lease | undefined

  constructor(kit: Kit, parts: TurnParts) {
    this.#kit = kit
    this.#parts = parts
  }

  async take(options: AcquireOptions): Promise<void> {
    const { lock } = this.#parts.subject
    switch (this.#parts.plan.how) {
      case 'using':
        await lock.using(options, (lease) => this.#section(lease, true))
        this.#tell({ is: 'released', outcome: 'ended' })
        break
      case 'acquire':
        await this.#bare(await lock.acquire(options))
        break
      case 'try': {
        const lease = await lock.tryAcquire(options)
        if (lease === null) this.#tell({ is: 'refused', why: 'busy' })
        else await this.#bare(lease)
      }
    }
  }

  failed(error: unknown): void {
    const why = nameOf(error)
    this.#tell(this.#granted === undefined ? { is: 'refused', why } : { is: 'released', outcome: why })
  }

  async #bare(lease: Lease): Promise<void> {
    await this.#section(lease, false)
    this.#tell({ is: 'released', outcome: await lease.release() })
  }

  /** The last thing that is told in here is the release, since the caller makes it at once. */
  async #section(lease: Lease, scoped: boolean): Promise<void> {
    const { call, around } = this.#parts
    this.#begin(lease)
    this.#kit.leases.add(call, lease)
    try {
      if (around === undefined) await this.#onResource(lease, () => this.#work(lease, scoped))
      else await this.#hold(lease, this.#parts.plan.holdMs)
    } finally {
      this.#kit.leases.remove(call, lease)
      this.#tell({ is: 'release' })
    }
  }

  #begin(lease: Lease): void {
    this.#granted = lease
    const { leaseMs: ttlMs = this.#kit.watchdogMs } = this.#parts.plan
    const at = now()
    const { owner, remaining } = lease
    this.#tell({ is: 'granted', owner, until: at + remaining, ttlMs }, at)
    const told = (): void => {
      this.#tell({ is: 'lost', reason: reasonOf(lease.signal) })
    }
    if (lease.signal.aborted) told()
    else lease.signal.addEventListener('abort', told)
  }

  /** The resource may be out of reach; then the section goes on without it. */
  async #onResource(lease: Lease, work: () => Promise<void>): Promise<void> {
    const { call, subject } = this.#parts
    const { store } = this.#kit
    const entered = await this.#enter(lease)
    await work()
    if (!entered) return
    try {
      if (isHeld(lease)) {
        this.#tell({ is: 'write' })
        await store.write(subject.name, call)
        this.#tell({ is: 'wrote' })
      }
      const from = now()
      const intact = await store.leave(subject.name, lease.owner)
      this.#tell({ is: 'left', from, intact })
    } catch {
      // The write is told as one without an answer.
    }
  }

  async #enter(lease: Lease): Promise<boolean> {
    const { store } = this.#kit
    const { name } = this.#parts.subject
    try {
      const from = now()
      const found = await store.enter(name, lease.owner)
      this.#tell({ is: 'entered', from, found })
      const saw = await store.read(name)
      this.#tell({ is: 'read', saw })
      return true
    } catch {
      return false
    }
  }

  async #work(lease: Lease, scoped: boolean): Promise<void> {
    const { plan, call, subject } = this.#parts
    await this.#hold(lease, plan.holdMs / 2)
    if (plan.extendMs !== undefined) await this.#extend(lease, plan.extendMs)
    for (let inner = 0; inner < plan.nested; inner++) {
      await takeTurn(this.#kit, subject, this.#innerPlan(scoped), { call, lease, scoped })
    }
    await this.#hold(lease, plan.holdMs / 2)
  }

  #innerPlan(scoped: boolean): Plan {
    return {
      how: scoped ? 'using' : 'acquire',
      waitMs: INNER_WAIT_MS,
      abortMs: undefined,
      leaseMs: undefined,
      minHoldMs: undefined,
      holdMs: this.#kit.random.between(0, 30),
      extendMs: undefined,
      nested: 0,
    }
  }

  /** Works on as long as the lease is held, and tells so again and again. */
  async #hold(lease: Lease, ms: number): Promise<void> {
    const endAt = now() + ms
    while (now() < endAt) {
      await sleep(Math.min(STEP_MS, endAt - now()))
      if (!tellUntil(this.#kit, this.#parts.call, lease)) return
    }
  }

  async #extend(lease: Lease, ttlMs: number): Promise<void> {
    this.#tell({ is: 'extend', ttlMs })
    try {
      await lease.extend(ttlMs)
    } catch {
      // The lease tells itself whether it is held.
    }
    tellUntil(this.#kit, this.#parts.call, lease)
  }

  #tell(event: CallEvent, t?: number): void {
    this.#kit.tell(this.#parts.call, event, t)
  }
}

function isHeld(lease: Lease): boolean {
  try {
    lease.assertHeld()
    return true
  } catch {
    return false
  }
}

/** Told apart by code, not by class: the library may be another copy. */
function nameOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error)
  if ('code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown'
}

function reasonOf({ reason }: AbortSignal): string {
  const why: unknown = reason
  return typeof why === 'object' && why !== null && 'reason' in why ? String(why.reason) : nameOf(why)
}
