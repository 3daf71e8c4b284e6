/**
 * The semaphore whose permits have ids and leases, as a pure state machine: a number of available permits, and beside
 * it those that are out with their expiry. Together they are all the permits there are, whatever happens to each:
 *
 *     available ──acquire──▶ out(id, expiry) ──release, give──▶ available
 *         ▲                        │
 *         └──the next who acquires or counts, once it has expired
 */
import type {
  PermitsAcquire,
  PermitsAcquireReply,
  PermitsAdd,
  PermitsAddReply,
  PermitsCount,
  PermitsCountReply,
  PermitsGive,
  PermitsGiveReply,
  PermitsRest,
  PermitsRestReply,
  PermitsSet,
  PermitsSetReply,
  PermitsUpdate,
  PermitsUpdateReply,
  Release,
  ReleaseReply,
  RenewResult,
} from '../operations.js'
import { countOf, fits, FOREIGN, noted, noteOf, type Requested } from './count.js'
import { at, entombed, unchanged, type KeyState, type Step, type Wake } from './state.js'

/** The time of an operation, by three clocks. */
export interface Moment {
  /** That of keys and their TTLs. */
  readonly nowMs: number
  /** The client's wall clock, in epoch milliseconds. */
  readonly clientMs: number
  /** The server's wall clock. */
  readonly serverMs: number
}

/** The expiry of a permit that never expires: Redisson's "no lease". */
export const ENDLESS_MS = 922_337_203_685_477
/** How long the note of a change is kept, by which a late copy knows that it was applied. */
const MARK_MS = 60_000
/** The largest number that is counted exactly. */
const MOST = Number.MAX_SAFE_INTEGER
/** So many expired permits are taken back in one step. */
const CHUNK = 1_000

const NO_PERMITS: ReadonlyMap<string, number> = new Map()

/** Takes permits, all or none, or repeats an attempt. */
export function acquire(
  before: KeyState,
  operation: PermitsAcquire,
  moment: Moment,
): Step<PermitsAcquireReply> {
  const state = at(before, moment.nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const ids = idsOf(operation.owner)
  const held = ids.filter((id) => permitsOf(state).has(id))
  const taken = raised(state, ids, expiryOf(operation.leaseMs, moment))
  if (held.length === ids.length) {
    const next = withPermits(state, new Map([...permitsOf(state), ...taken]))
    return unchanged(next, { outcome: 'granted', left: available(state), ttlMs: 0 })
  }
  if (state.tombstones.has(tombOf(ids))) return unchanged(state, { outcome: 'dead' })
  const { total } = operation
  if (countOf(state) === undefined && total === undefined)
    return unchanged(state, { outcome: 'uninitialised' })
  const counted = initialised(state, total ?? 0)
  const most = Math.max(ids.length, Math.min(ids.length - available(counted), CHUNK))
  const gone = new Set([...held, ...expired(counted, moment).slice(0, most)])
  const back = takenBack(counted, [...gone])
  const told = gone.size > 0 || counted !== state ? available(back) : 0
  return { ...grantedOrBusy(back, taken, moment), wake: told > 0 && saying(told) }
}

function grantedOrBusy(
  state: KeyState,
  wanted: ReadonlyMap<string, number>,
  moment: Moment,
): { readonly state: KeyState; readonly reply: PermitsAcquireReply } {
  const left = available(state) - wanted.size
  if (left < 0) {
    const counted = { available: available(state), total: available(state) + permitsOf(state).size }
    return { state, reply: { outcome: 'busy', ...counted, ttlMs: nextMs(state, moment) } }
  }
  const taken = withPermits(withCount(state, left), new Map([...permitsOf(state), ...wanted]))
  return { state: taken, reply: { outcome: 'granted', left, ttlMs: left > 0 ? 0 : nextMs(taken, moment) } }
}

/** Ends an owner: takes those of its permits back that are still out. */
export function release(
  before: KeyState,
  operation: Release<'permits.release'>,
  moment: Moment,
): Step<ReleaseReply> {
  const state = at(before, moment.nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const ids = idsOf(operation.owner)
  const { entombMs } = operation
  const out = ids.filter((id) => permitsOf(state).has(id))
  const after = takenBack(entombed(state, { owner: tombOf(ids), entombMs }, moment.nowMs), out)
  const told = ids.length === 1 ? (countOf(after) ?? 1) : out.length
  const wake = out.length > 0 && saying(told)
  return { state: after, reply: { outcome: out.length === ids.length ? 'released' : 'gone' }, wake }
}

/** Gives permits back by their ids. */
export function give(before: KeyState, operation: PermitsGive, moment: Moment): Step<PermitsGiveReply> {
  const state = at(before, moment.nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const { ids, all } = operation
  const out = ids.filter((id) => isOut(state, id, moment))
  if (out.length === 0 || (all && out.length < ids.length)) return unchanged(state, { outcome: 'none' })
  const after = takenBack(state, out)
  const told = ids.length === 1 ? (countOf(after) ?? 1) : out.length
  return { state: after, reply: { outcome: 'released', number: out.length }, wake: saying(told) }
}

/** Puts off the expiry of an owner's permits. */
export function renew(
  before: KeyState,
  hold: { readonly owner: string; readonly ttlMs: number },
  moment: Moment,
): Step<RenewResult> {
  const state = at(before, moment.nowMs)
  const ids = idsOf(hold.owner)
  if (!ids.every((id) => isOut(state, id, moment))) return unchanged(state, 'gone')
  const later = raised(state, ids, expiryOf(hold.ttlMs, moment))
  return unchanged(withPermits(state, new Map([...permitsOf(state), ...later])), 'renewed')
}

/** Sets the expiry of one permit. */
export function update(before: KeyState, operation: PermitsUpdate, moment: Moment): Step<PermitsUpdateReply> {
  const state = at(before, moment.nowMs)
  const { id, leaseMs } = operation
  if (noteOf(state, operation) !== undefined) return unchanged(state, { outcome: 'updated' })
  if (!isOut(state, id, moment)) return unchanged(state, { outcome: 'gone' })
  const permits = new Map(permitsOf(state)).set(id, expiryOf(leaseMs, moment))
  return unchanged(marked(withPermits(state, permits), operation, { note: 'set', moment }), {
    outcome: 'updated',
  })
}

/** Reads how long a permit is still out. */
export function rest(before: KeyState, { id }: PermitsRest, moment: Moment): Step<PermitsRestReply> {
  const state = at(before, moment.nowMs)
  const untilMs = permitsOf(state).get(id)
  if (untilMs === undefined || untilMs <= behind(moment)) return unchanged(state, { outcome: 'gone' })
  const ttlMs = untilMs < ENDLESS_MS ? untilMs - behind(moment) : Infinity
  return unchanged(state, { outcome: 'held', ttlMs })
}

/** Counts the permits and takes back what has expired. */
export function count(before: KeyState, _operation: PermitsCount, moment: Moment): Step<PermitsCountReply> {
  const state = at(before, moment.nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const over = expired(state, moment)
  const acquired = permitsOf(state).size - over.length
  if (countOf(state) === undefined) return unchanged(state, { outcome: 'uninitialised', acquired })
  const after = takenBack(state, over.slice(0, CHUNK))
  const free = Math.min(available(state) + over.length, MOST)
  const reply = { outcome: 'counted', available: free, acquired } as const
  return { state: after, reply, wake: over.length > 0 && available(after) > 0 && saying(available(after)) }
}

/** Sets how many permits there are in all. */
export function set(
  before: KeyState,
  operation: PermitsSet<'permits.set'>,
  moment: Moment,
): Step<PermitsSetReply> {
  const state = at(before, moment.nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const { permits } = operation
  if (noteOf(state, operation) !== undefined) return unchanged(state, { outcome: 'set' })
  const next = marked(state, operation, { note: 'set', moment })
  const wanted = permits - permitsOf(state).size
  if (countOf(state) === wanted) return unchanged(next, { outcome: 'set' })
  return { state: withCount(next, wanted), reply: { outcome: 'set' }, wake: saying(permits) }
}

/** Sets how many permits there are in all, unless somebody has. */
export function trySet(
  before: KeyState,
  operation: PermitsSet<'permits.try-set'>,
  moment: Moment,
): Step<PermitsSetReply> {
  const state = at(before, moment.nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const { permits } = operation
  const note = noteOf(state, operation)
  if (note !== undefined) return unchanged(state, { outcome: note === 'exists' ? note : 'set' })
  if (countOf(state) !== undefined)
    return unchanged(marked(state, operation, { note: 'exists', moment }), { outcome: 'exists' })
  const next = marked(initialised(state, permits), operation, { note: 'set', moment })
  return { state: next, reply: { outcome: 'set' }, wake: saying(permits) }
}

/** Changes by how many permits there are in all. */
export function add(before: KeyState, operation: PermitsAdd, moment: Moment): Step<PermitsAddReply> {
  const state = at(before, moment.nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const { permits, total } = operation
  const note = noteOf(state, operation)
  if (note !== undefined) return unchanged(state, { outcome: note === 'overflow' ? note : 'set' })
  const sum = available(initialised(state, total ?? 0)) + permits
  // What is out comes back to it.
  if (!fits(sum) || sum + permitsOf(state).size > MOST)
    return unchanged(marked(state, operation, { note: 'overflow', moment }), { outcome: 'overflow' })
  const next = marked(withCount(state, sum), operation, { note: 'set', moment })
  return { state: next, reply: { outcome: 'set' }, wake: permits > 0 && saying(permits) }
}

/** The ids of an owner. */
function idsOf(owner: string): readonly string[] {
  return owner.split(',')
}

/** Under which of its ids an owner is entombed. */
function tombOf(ids: readonly string[]): string {
  return ids[0] ?? ''
}

/** What has expired is judged by the clock that is behind, so that no wrong clock takes a permit from its holder. */
function behind({ clientMs, serverMs }: Moment): number {
  return Math.min(clientMs, serverMs)
}

/** An expiry counts from the clock that is ahead, for the same reason. */
function expiryOf(leaseMs: number, { clientMs, serverMs }: Moment): number {
  return Math.min(Math.max(clientMs, serverMs) + leaseMs, ENDLESS_MS)
}

function permitsOf(state: KeyState): ReadonlyMap<string, number> {
  return state.permits ?? NO_PERMITS
}

function available(state: KeyState): number {
  return countOf(state) ?? 0
}

function foreign({ value }: KeyState): boolean {
  return value !== undefined && !(value.kind === 'count' && fits(value.count))
}

function isOut(state: KeyState, id: string, moment: Moment): boolean {
  return (permitsOf(state).get(id) ?? -Infinity) > behind(moment)
}

/** Those that have expired, the first to expire first. */
function expired(state: KeyState, moment: Moment): readonly string[] {
  const over = [...permitsOf(state)].filter(([, untilMs]) => untilMs <= behind(moment))
  over.sort(([one, oneMs], [other, otherMs]) => oneMs - otherMs || (one < other ? -1 : 1))
  return over.map(([id]) => id)
}

/** How long the next permit is still out; `Infinity`: none expires. */
function nextMs(state: KeyState, moment: Moment): number {
  let firstMs = Infinity
  for (const untilMs of permitsOf(state).values()) firstMs = Math.min(firstMs, untilMs)
  return firstMs < ENDLESS_MS ? Math.max(firstMs - behind(moment), 0) : Infinity
}

/** These permits with an expiry: until then at least, and never sooner than before. */
function raised(state: KeyState, ids: readonly string[], untilMs: number): ReadonlyMap<string, number> {
  return new Map(ids.map((id) => [id, Math.max(permitsOf(state).get(id) ?? 0, untilMs)]))
}

/** The state with these permits available again. Without a number nothing is counted; one that somebody has set too high stays where it can be. */
function takenBack(state: KeyState, ids: readonly string[]): KeyState {
  if (ids.length === 0) return state
  const permits = new Map(permitsOf(state))
  for (const id of ids) permits.delete(id)
  const after = withPermits(state, permits)
  return countOf(state) === undefined
    ? after
    : withCount(after, Math.min(available(state) + ids.length, MOST))
}

/** The state with a number, if it had none: permits that are out are among the total. */
function initialised(state: KeyState, total: number): KeyState {
  return countOf(state) === undefined ? withCount(state, total - permitsOf(state).size) : state
}

function withCount(state: KeyState, number: number): KeyState {
  return { ...state, value: { kind: 'count', count: number } }
}

function withPermits(state: KeyState, permits: ReadonlyMap<string, number>): KeyState {
  return { ...state, permits }
}

function marked(
  state: KeyState,
  { request }: Pick<Requested, 'request'>,
  { note, moment }: { readonly note: string; readonly moment: Moment },
): KeyState {
  return noted(state, { request, requestMs: MARK_MS }, { note, nowMs: moment.nowMs })
}

/** One waiter goes on; the message names the permits, but never a negative number. */
function saying(permits: number): Wake {
  return { hint: 'one', payload: String(Math.max(permits, 0)) }
}
