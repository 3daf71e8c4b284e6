import type { Notes } from './notes.js'

/** What is stored under one name: the state that the pure models work on. */
export interface KeyState {
  readonly value: LockValue | MutexValue | CountValue | ForeignValue | ReadWriteValue | undefined
  /** When the key expires; `Infinity` for a key without TTL. Meaningless without a value. */
  readonly expiresAtMs: number
  /** Ended owners whose late acquires are refused, with the end of each tombstone. */
  readonly tombstones: ReadonlyMap<string, number>
  /** The highest token that a fenced lock gave: a key of its own, that outlives every hold. `foreign`: somebody's data. */
  readonly token?: number | 'foreign'
  /** The read holds of a read/write lock, each a key of its own: `<owner>:rwlock_timeout:<i>` → its end. */
  readonly holds?: ReadonlyMap<string, number>
  /** The queue of a fair lock: two keys of its own, without a TTL. */
  readonly fair?: FairQueue
  /** What became of requests to a number that knows no owners: a key each, with a TTL. */
  readonly requests?: Notes
  /** Which round of a latch it is: a key of its own, with a TTL. */
  readonly round?: Round | undefined
  /** Permits that are out, id → expiry in epoch milliseconds: a key of its own beside their number. */
  readonly permits?: ReadonlyMap<string, number>
}

/** Which round of a latch it is, as far as that is known, and until when. */
export interface Round {
  /** Of the request that began it, or ended the one before. */
  readonly id: string | undefined
  /** How many count-downs were taken back in it. */
  readonly undone: number
  readonly endMs: number
}

/** Those who wait for a fair lock. */
export interface FairQueue {
  /** In the order of their coming; the first is the head. */
  readonly owners: readonly string[]
  /** Until when each one's place is kept, in wall-clock milliseconds. */
  readonly deadlines: ReadonlyMap<string, number>
}

/** The hash of a re-entrant lock: owner → hold count. */
export interface LockValue {
  readonly kind: 'lock'
  readonly counts: ReadonlyMap<string, number>
}

/** The string of a plain lock. */
export interface MutexValue {
  readonly kind: 'mutex'
  readonly owner: string
}

/** The number of a semaphore or a latch. */
export interface CountValue {
  readonly kind: 'count'
  readonly count: number
}

/** The hash of a read/write lock: its mode, and field → hold count; a writer's field is `<owner>:write`. */
export interface ReadWriteValue {
  readonly kind: 'read-write'
  readonly mode: 'read' | 'write'
  readonly counts: ReadonlyMap<string, number>
}

/** Somebody's data. In a hash owners can be looked for all the same; any other type stops every operation at once. */
export interface ForeignValue {
  readonly kind: 'foreign'
  readonly hash: boolean
}

/** A message to waiters: whom it wakes, and the waiter's owner where each has a channel of its own. */
export interface Wake {
  readonly hint: 'one' | 'all'
  /** What the message says, where that is not the hint alone. */
  readonly payload?: string
  readonly owner?: string
}

/** The outcome of one operation: the next state, the reply, and the message to waiters; `true`: wake one. */
export interface Step<Reply> {
  readonly state: KeyState
  readonly reply: Reply
  readonly wake: boolean | Wake
}

/** Nothing stored. */
export const FREE: KeyState = { value: undefined, expiresAtMs: Infinity, tombstones: new Map() }

/** Whether nothing at all is stored. */
export function isEmpty(state: KeyState): boolean {
  const noted = [state.tombstones, state.permits, state.holds].some((map) => (map?.size ?? 0) > 0)
  const asked = state.requests?.empty === false || state.round !== undefined
  return (
    state.value === undefined && !noted && !asked && state.token === undefined && state.fair === undefined
  )
}

/** The state with everything that is due removed: a key lives while `now < expiresAtMs`. */
export function at(state: KeyState, nowMs: number): KeyState {
  const expired = state.value !== undefined && state.expiresAtMs <= nowMs
  const tombstones = state.tombstones
  const due = [...tombstones].some(([, endMs]) => endMs <= nowMs)
  const requests = state.requests?.at(nowMs)
  const forgotten = state.round !== undefined && state.round.endMs <= nowMs
  const holds = liveHolds(state.holds, nowMs)
  if (!expired && !due && !forgotten && requests === state.requests && holds === state.holds) return state
  return {
    ...state,
    ...(forgotten ? { round: undefined } : {}),
    ...(requests === undefined ? {} : { requests }),
    ...(holds === undefined ? {} : { holds }),
    value: expired ? undefined : state.value,
    expiresAtMs: expired ? Infinity : state.expiresAtMs,
    tombstones: due ? new Map([...tombstones].filter(([, endMs]) => endMs > nowMs)) : tombstones,
  }
}

function liveHolds(holds: KeyState['holds'], nowMs: number): KeyState['holds'] {
  if (holds === undefined || !anyDue(holds, nowMs)) return holds
  return new Map([...holds].filter(([, endMs]) => endMs > nowMs))
}

function anyDue(ends: ReadonlyMap<string, number>, nowMs: number): boolean {
  for (const endMs of ends.values()) if (endMs <= nowMs) return true
  return false
}

/** A step that changes nothing. */
export function unchanged<Reply>(state: KeyState, reply: Reply): Step<Reply> {
  return { state, reply, wake: false }
}

/** The state with a TTL of at least `ttlMs`: never shortened. */
export function raised(state: KeyState, ttlMs: number, nowMs: number): KeyState {
  const wantedMs = nowMs + ttlMs
  const endless = state.expiresAtMs === Infinity
  return endless || state.expiresAtMs < wantedMs ? { ...state, expiresAtMs: wantedMs } : state
}

/** The state with a tombstone for an owner; `entombMs` 0 leaves it as it is. */
export function entombed(
  state: KeyState,
  { owner, entombMs }: { readonly owner: string; readonly entombMs: number },
  nowMs: number,
): KeyState {
  if (entombMs === 0) return state
  return { ...state, tombstones: new Map(state.tombstones).set(owner, nowMs + entombMs) }
}

/** The remaining TTL as Redis tells it: -1 for a key without one. */
export function ttlOf(state: KeyState, nowMs: number): number {
  return state.expiresAtMs === Infinity ? -1 : Math.ceil(state.expiresAtMs - nowMs)
}

/** The state without a value. */
export function freed(state: KeyState): KeyState {
  return { ...state, value: undefined, expiresAtMs: Infinity }
}

/** What stands for an ended owner while the rest of its minimum hold lasts. No renewal names it. */
export function restOf(owner: string): string {
  return `${owner}:0`
}
