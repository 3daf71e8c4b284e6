/**
 * The re-entrant lock as a pure state machine. This is the specification: the memory engine runs it, and
 * the Lua scripts must agree with it in replies, state, TTLs and wake-ups.
 *
 *     free ──acquire 1──▶ held(owner: 1) ──acquire k+1──▶ held(owner: k+1)
 *      ▲                       │  ▲                            │
 *      └──release, expiry──────┘  └────────leave k─────────────┘
 */
import type {
  AcquireReply,
  Force,
  ForceReply,
  ForeignReply,
  Inspect,
  InspectReply,
  Leave,
  LeaveReply,
  LockAcquire,
  Release,
  ReleaseReply,
  RenewResult,
} from '../operations.js'
import {
  at,
  entombed,
  freed,
  raised,
  restOf,
  ttlOf,
  unchanged,
  type KeyState,
  type LockValue,
  type Step,
} from './state.js'

const FOREIGN: ForeignReply = { outcome: 'foreign' }

/** Takes the lock, enters it once more, or repeats an attempt. */
export function acquire(before: KeyState, operation: LockAcquire, nowMs: number): Step<AcquireReply> {
  const state = at(before, nowMs)
  const { owner, count, leaseMs } = operation
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const counts = countsOf(state)
  const held = counts.get(owner)
  if (held !== undefined) {
    const next = held < count ? withCount(state, owner, count) : state
    return { state: raised(next, leaseMs, nowMs), reply: { outcome: 'granted' }, wake: false }
  }
  if (count > 1) return unchanged(state, { outcome: 'lost' })
  if (state.tombstones.has(owner)) return unchanged(state, { outcome: 'dead' })
  if (foreign(state)) return unchanged(state, FOREIGN)
  const [holder] = counts.keys()
  if (holder !== undefined) return unchanged(state, { outcome: 'busy', ttlMs: ttlOf(state, nowMs), holder })
  const taken = { ...withCount(state, owner, 1), expiresAtMs: nowMs + leaseMs }
  return { state: taken, reply: { outcome: 'granted' }, wake: false }
}

/** Lowers the hold count; the TTL stays. */
export function leave(before: KeyState, operation: Leave<string>, nowMs: number): Step<LeaveReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const held = countsOf(state).get(operation.owner)
  if (held === undefined) return unchanged(state, absent(state))
  const next = held > operation.count ? withCount(state, operation.owner, operation.count) : state
  return unchanged(next, { outcome: 'kept' })
}

/** Ends an owner, whatever its count. */
export function release(before: KeyState, operation: Release<string>, nowMs: number): Step<ReleaseReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const { owner, keepMs } = operation
  const buried = entombed(state, operation, nowMs)
  const counts = countsOf(state)
  const rest = restOf(owner)
  const held = counts.has(owner)
  if (!held && !counts.has(rest)) return unchanged(buried, absent(state))
  if (keepMs > 0 && !held) return unchanged(buried, { outcome: 'released' })
  if (keepMs > 0) {
    const kept = { ...withCount(without(buried, [owner]), rest, 1), expiresAtMs: nowMs + keepMs }
    return { state: kept, reply: { outcome: 'released' }, wake: true }
  }
  return { state: without(buried, [owner, rest]), reply: { outcome: 'released' }, wake: true }
}

/** Raises the TTL of one hold. */
export function renew(
  before: KeyState,
  hold: { readonly owner: string; readonly ttlMs: number },
  nowMs: number,
): Step<RenewResult> {
  const state = at(before, nowMs)
  if (countsOf(state).has(hold.owner)) return unchanged(raised(state, hold.ttlMs, nowMs), 'renewed')
  return unchanged(state, state.value === undefined ? 'gone' : 'taken')
}

/** Reads the holders. */
export function inspect(before: KeyState, _operation: Inspect<string>, nowMs: number): Step<InspectReply> {
  const state = at(before, nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const holders = countsOf(state)
  if (holders.size === 0) return unchanged(state, { outcome: 'free' })
  return unchanged(state, { outcome: 'held', ttlMs: ttlOf(state, nowMs), holders })
}

/** Takes the lock from the owners that were seen. */
export function force(before: KeyState, operation: Force<string>, nowMs: number): Step<ForceReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const counts = countsOf(state)
  const seen = operation.owners.filter((owner) => counts.has(owner))
  if (seen.length === 0) return unchanged(state, { outcome: 'none' })
  return { state: without(state, seen), reply: { outcome: 'freed' }, wake: true }
}

function foreign(state: KeyState): boolean {
  return state.value !== undefined && state.value.kind !== 'lock'
}

/** Not even a hash: no field can be looked for. */
function wrongType({ value }: KeyState): boolean {
  switch (value?.kind) {
    case undefined:
    case 'lock':
    case 'read-write':
      return false
    case 'foreign':
      return !value.hash
    default:
      return true
  }
}

/** Owner → hold count; empty for anything but a lock. */
export function countsOf(state: KeyState): LockValue['counts'] {
  return state.value?.kind === 'lock' ? state.value.counts : NO_COUNTS
}

const NO_COUNTS: LockValue['counts'] = new Map()

function absent(state: KeyState): { readonly outcome: 'gone' } | { readonly outcome: 'taken' } {
  return state.value === undefined ? { outcome: 'gone' } : { outcome: 'taken' }
}

function withCount(state: KeyState, owner: string, count: number): KeyState {
  return { ...state, value: { kind: 'lock', counts: new Map(countsOf(state)).set(owner, count) } }
}

/** The state without these owners. */
export function without(state: KeyState, owners: readonly string[]): KeyState {
  const counts = new Map(countsOf(state))
  for (const owner of owners) counts.delete(owner)
  return counts.size === 0 ? freed(state) : { ...state, value: { kind: 'lock', counts } }
}
