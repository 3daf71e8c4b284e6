/** The plain lock (`SET NX PX` and compare-and-delete) as a pure state machine. */
import type {
  AcquireReply,
  Force,
  ForceReply,
  ForeignReply,
  Inspect,
  InspectReply,
  MutexAcquire,
  Release,
  ReleaseReply,
  RenewResult,
} from '../operations.js'
import { at, entombed, freed, raised, restOf, ttlOf, unchanged, type KeyState, type Step } from './state.js'

const FOREIGN: ForeignReply = { outcome: 'foreign' }

/** Takes the mutex, or repeats an attempt. */
export function acquire(before: KeyState, operation: MutexAcquire, nowMs: number): Step<AcquireReply> {
  const state = at(before, nowMs)
  const { owner, leaseMs } = operation
  if (foreign(state)) return unchanged(state, FOREIGN)
  const holder = ownerOf(state)
  if (holder === owner) return unchanged(raised(state, leaseMs, nowMs), { outcome: 'granted' })
  if (state.tombstones.has(owner)) return unchanged(state, { outcome: 'dead' })
  if (holder !== undefined) return unchanged(state, { outcome: 'busy', ttlMs: ttlOf(state, nowMs), holder })
  return unchanged(
    { ...state, value: { kind: 'mutex', owner }, expiresAtMs: nowMs + leaseMs },
    { outcome: 'granted' },
  )
}

/** Compare and delete. */
export function release(before: KeyState, operation: Release<string>, nowMs: number): Step<ReleaseReply> {
  const state = at(before, nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const { owner, keepMs } = operation
  const buried = entombed(state, operation, nowMs)
  const holder = ownerOf(state)
  const rest = restOf(owner)
  if (holder !== owner && holder !== rest)
    return unchanged(buried, { outcome: holder === undefined ? 'gone' : 'taken' })
  if (keepMs > 0 && holder === rest) return unchanged(buried, { outcome: 'released' })
  if (keepMs > 0) {
    const kept = { ...buried, value: { kind: 'mutex', owner: rest }, expiresAtMs: nowMs + keepMs } as const
    return { state: kept, reply: { outcome: 'released' }, wake: true }
  }
  return { state: freed(buried), reply: { outcome: 'released' }, wake: true }
}

/** Raises the TTL of one hold. */
export function renew(
  before: KeyState,
  hold: { readonly owner: string; readonly ttlMs: number },
  nowMs: number,
): Step<RenewResult> {
  const state = at(before, nowMs)
  if (ownerOf(state) === hold.owner) return unchanged(raised(state, hold.ttlMs, nowMs), 'renewed')
  return unchanged(state, state.value === undefined ? 'gone' : 'taken')
}

/** Reads the holder. */
export function inspect(before: KeyState, _operation: Inspect<string>, nowMs: number): Step<InspectReply> {
  const state = at(before, nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const holder = ownerOf(state)
  if (holder === undefined) return unchanged(state, { outcome: 'free' })
  return unchanged(state, { outcome: 'held', ttlMs: ttlOf(state, nowMs), holders: new Map([[holder, 1]]) })
}

/** Takes the mutex from the owner that was seen. */
export function force(before: KeyState, operation: Force<string>, nowMs: number): Step<ForceReply> {
  const state = at(before, nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const holder = ownerOf(state)
  if (holder === undefined || !operation.owners.includes(holder)) return unchanged(state, { outcome: 'none' })
  return { state: freed(state), reply: { outcome: 'freed' }, wake: true }
}

function foreign(state: KeyState): boolean {
  return state.value !== undefined && state.value.kind !== 'mutex'
}

function ownerOf(state: KeyState): string | undefined {
  return state.value?.kind === 'mutex' ? state.value.owner : undefined
}
