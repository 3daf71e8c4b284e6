/** The ways in which a caller can take a thing. */
import type {
  AcquireOptions,
  Holdfast,
  Lease,
  MultiLease,
  PermitLease,
  PermitOptions,
} from '../../src/index.js'
import type { Kind, Thing } from './things.js'

/** Of all kinds of locks and of permits. */
export interface Taking {
  acquire(options: AcquireOptions): Promise<Lease>
  tryAcquire(options: AcquireOptions): Promise<Lease | null>
  using(options: AcquireOptions, callback: (lease: Lease) => Promise<void>): Promise<unknown>
}

/** One of them. */
export interface Way {
  /** The name by which it is judged. */
  readonly name: string
  readonly kind: Kind
  readonly taking: Taking
  readonly side?: 'read' | 'write'
  readonly permits?: number
  /** Nobody else is inside, so that it can work on the resource. */
  readonly alone: boolean
  /** What can be taken inside. */
  readonly inner: readonly Inner[]
}

export interface Inner {
  readonly way: Way
  /** Undefined: without end, as nobody who has it can be waiting for us. */
  readonly waitMs: number | undefined
}

const PATIENCE_MS = 1_000

/** `others`: on the further servers of a red lock. */
export function waysOf(holdfast: Holdfast, thing: Thing, others: readonly Holdfast[]): readonly Way[] {
  const { kind, name, permits = 1, members = [] } = thing
  switch (kind) {
    case 'read-write':
      return sidesOf(holdfast, name)
    case 'permits':
      return permits > 1
        ? [permitsWay(holdfast, thing, 1), permitsWay(holdfast, thing, 2)]
        : [permitsWay(holdfast, thing, 1)]
    case 'multi':
      return [...multiWays(holdfast, thing), ...members.flatMap((_, i) => memberWays(holdfast, thing, i))]
    case 'red':
      return [again({ kind, name, taking: holdfast.redLock(name, [holdfast, ...others]), alone: true })]
    case 'mutex':
      return [{ kind, name, taking: singleOf(holdfast, thing), alone: true, inner: [] }]
    default:
      return [again({ kind, name, taking: singleOf(holdfast, thing), alone: true })]
  }
}

/** Enters itself once more. */
function again(way: Omit<Way, 'inner'>): Way {
  return { ...way, inner: [{ way: { ...way, inner: [] }, waitMs: PATIENCE_MS }] }
}

function singleOf(holdfast: Holdfast, { kind, name }: Thing) {
  switch (kind) {
    case 'mutex':
      return holdfast.mutex(name)
    case 'fair':
      return holdfast.fairLock(name)
    case 'fenced':
      return holdfast.fencedLock(name)
    case 'spin':
      return holdfast.spinLock(name)
    default:
      return holdfast.lock(name)
  }
}

/** Twice as many readers as writers. A writer may read inside, too. */
function sidesOf(holdfast: Holdfast, name: string): readonly Way[] {
  const { read, write } = holdfast.readWriteLock(name)
  const kind = 'read-write'
  const reading = again({ kind, name, taking: read, side: 'read', alone: false })
  const writing = again({ kind, name, taking: write, side: 'write', alone: true })
  const inside = { way: { ...reading, inner: [] }, waitMs: PATIENCE_MS }
  return [reading, reading, { ...writing, inner: [...writing.inner, inside] }]
}

/** Permits know of no minimum hold, and of nothing around them. */
function permitsWay(holdfast: Holdfast, { name, permits: total = 1 }: Thing, permits: number): Way {
  const semaphore = holdfast.permitSemaphore(name, { permits: total })
  const only = ({ waitTime, leaseTime, signal }: AcquireOptions): PermitOptions => ({
    ...{ waitTime, leaseTime, signal },
  })
  const taking: Taking = {
    acquire: (options) => semaphore.acquire(permits, only(options)),
    tryAcquire: (options) => semaphore.tryAcquire(permits, only(options)),
    using: (options, callback) => semaphore.using(permits, only(options), callback),
  }
  return { kind: 'permits', name, taking, permits, alone: total === 1, inner: [] }
}

/** Sets that have members in common, given in any order. */
function multiWays(holdfast: Holdfast, thing: Thing): readonly Way[] {
  const sets = [
    [0, 1, 2],
    [1, 0],
    [2, 1],
    [0, 2],
  ]
  return sets.map((places) => multiWay(holdfast, thing, places))
}

function multiWay(holdfast: Holdfast, { kind, name, members = [] }: Thing, places: readonly number[]): Way {
  const locks = places.flatMap((place) => {
    const member = members[place]
    return member === undefined ? [] : [singleOf(holdfast, member)]
  })
  return { kind, name, taking: holdfast.multiLock(locks), alone: true, inner: [] }
}

/** A member alone; with those behind it inside, taken in order, or one before it, for which it does not wait for ever. */
function memberWays(holdfast: Holdfast, thing: Thing, place: number): readonly Way[] {
  const { members = [] } = thing
  const inner = members.flatMap((other, i): Inner[] => {
    if (i === place) return []
    const way = { ...plainWay(holdfast, other), inner: [] }
    return [{ way, waitMs: i > place ? undefined : PATIENCE_MS }]
  })
  if (place === 0) inner.push({ way: multiWay(holdfast, thing, [1, 2]), waitMs: undefined })
  if (place === 2) inner.push({ way: multiWay(holdfast, thing, [0, 1]), waitMs: PATIENCE_MS })
  const member = members[place]
  return member === undefined ? [] : [{ ...plainWay(holdfast, member), inner }]
}

function plainWay(holdfast: Holdfast, member: Thing): Omit<Way, 'inner'> {
  return { kind: member.kind, name: member.name, taking: singleOf(holdfast, member), alone: true }
}

/** The leases of the members of a multi-lock, or none. */
export function membersIn(lease: Lease): readonly Lease[] {
  return isMulti(lease) ? lease.leases : []
}

function isMulti(lease: Lease): lease is MultiLease {
  return 'leases' in lease
}

/** Of a lease of permits. */
export function idsOf(lease: Lease): readonly string[] | undefined {
  return isOfPermits(lease) ? lease.ids : undefined
}

function isOfPermits(lease: Lease): lease is PermitLease {
  return 'ids' in lease
}
