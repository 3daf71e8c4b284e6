import type { Clock } from '../../clock.js'
import type { Operation } from '../operations.js'
import { PortError, type ClientPort, type Demand, type RawReply } from './clients/port.js'
import { within } from './clients/within.js'

/** How many replicas must have a grant before it counts. */
export interface ReplicationSetting {
  readonly acks: number | 'any' | 'majority' | 'all'
  /** How long WAIT waits for them. */
  readonly timeoutMs: number
  /** The user asked for it: where WAIT cannot be had, nothing is granted. */
  readonly explicit: boolean
}

interface Known {
  readonly replicas: number
  readonly askedAtMs: number
}

/** How long a count of replicas is believed. */
const ASK_EVERY_MS = 10_000

const GRANTS: ReadonlySet<Operation['op']> = new Set<Operation['op']>([
  'lock.acquire',
  'fair.acquire',
  'fenced.acquire',
  'mutex.acquire',
  'multi.acquire',
  'read.acquire',
  'write.acquire',
  'permits.acquire',
  'semaphore.acquire',
])

/** Whether an operation gives something that two may not have. Who enters once more has it already. */
export function isGrant(operation: Operation): boolean {
  return GRANTS.has(operation.op) && !('count' in operation && operation.count > 1)
}

/** Knows how many replicas each primary has, and so how many must confirm a grant. */
export class Replication {
  readonly setting: ReplicationSetting
  readonly #port: ClientPort
  readonly #clock: Clock
  readonly #patienceMs: number
  readonly #known = new Map<string, Known>()
  readonly #asking = new Map<string, Promise<void>>()

  /** `patienceMs`: how long a connection may be silent besides the time of WAIT. */
  constructor(
    port: ClientPort,
    { setting, clock, patienceMs }: { setting: ReplicationSetting; clock: Clock; patienceMs: number },
  ) {
    this.setting = setting
    this.#port = port
    this.#clock = clock
    this.#patienceMs = patienceMs
  }

  /** What a grant on this key has to wait for; `undefined`: nothing; `'unknown'`: {@link learn} first. */
  demand(key: string): Demand | undefined | 'unknown' {
    const { acks } = this.setting
    if (typeof acks === 'number') return this.#demandFor(acks)
    const known = this.#known.get(this.#port.placeOf(key))
    if (known === undefined) return 'unknown'
    if (this.#clock.now() - known.askedAtMs > ASK_EVERY_MS) this.learn(key).catch(() => undefined)
    return this.#demandFor(acksOf(acks, known.replicas))
  }

  /** Asks the primary of a key how many replicas it has. Rejects with {@link PortError} only. */
  learn(key: string): Promise<void> {
    const place = this.#port.placeOf(key)
    const asking =
      this.#asking.get(place) ??
      this.#ask(key, place).finally(() => {
        this.#asking.delete(place)
      })
    this.#asking.set(place, asking)
    return asking
  }

  /** The count was wrong, or the replicas are in trouble: it is asked for anew. */
  doubt(key: string): void {
    this.#known.delete(this.#port.placeOf(key))
  }

  async #ask(key: string, place: string): Promise<void> {
    let replicas = 0
    try {
      replicas = replicasIn(await bounded(this.#patienceMs, this.#port.ask(['INFO', 'replication'], key)))
    } catch (error) {
      // Where servers are rented, INFO may not be allowed, and their replicas are the landlord's affair.
      if (!(error instanceof PortError) || error.kind !== 'refused' || this.setting.explicit) throw error
    }
    this.#known.set(place, { replicas, askedAtMs: this.#clock.now() })
  }

  #demandFor(acks: number): Demand | undefined {
    const { timeoutMs } = this.setting
    return acks === 0 ? undefined : { acks, timeoutMs, limitMs: timeoutMs + this.#patienceMs }
  }
}

/** A question that all wait for must not wait for ever: a link may be half open. Rejects with {@link PortError} only. */
export async function bounded<T>(limitMs: number, question: Promise<T>): Promise<T> {
  try {
    return await within(limitMs, question, false)
  } catch (error) {
    if (error instanceof PortError) throw error
    throw new PortError(String(error), { kind: 'connection', outcome: 'not-applied', cause: error })
  }
}

function acksOf(acks: 'any' | 'majority' | 'all', replicas: number): number {
  switch (acks) {
    case 'all':
      return replicas
    case 'majority':
      // Of the primary and its replicas together, the primary being one.
      return Math.floor((replicas + 1) / 2)
    case 'any':
      return Math.min(1, replicas)
  }
}

function replicasIn(reply: RawReply): number {
  return Number(/^connected_slaves:(\d+)/m.exec(String(reply))?.[1] ?? 0)
}
