/** What is stored under one name: the state that the pure models work on. */
export interface KeyState {
  readonly value: LockValue | MutexValue | ForeignValue | undefined
  /** When the key expires; `Infinity` for a key without TTL. Meaningless without a value. */
  readonly expiresAtMs: number
  /** Ended owners whose late acquires are refused, with the end of each tombstone. */
  readonly tombstones: ReadonlyMap<string, number>
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

/** Somebody's data. In a hash owners can be looked for all the same; any other type stops every operation at once. */
export interface ForeignValue {
  readonly kind: 'foreign'
  readonly hash: boolean
}

/** A message to waiters: whom it wakes, and the waiter's owner where each has a channel of its own. */
export interface Wake {
  readonly hint: 'one' | 'all'
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

/** The state with everything that is due removed: a key lives while `now < expiresAtMs`. */
export function at(state: KeyState, nowMs: number): KeyState {
  const expired = state.value !== undefined && state.expiresAtMs <= nowMs
  const tombstones = state.tombstones
  const due = [...tombstones].some(([, endMs]) => endMs <= nowMs)
  if (!expired && !due) return state
  return {
    value: expired ? undefined : state.value,
    expiresAtMs: expired ? Infinity : state.expiresAtMs,
    tombstones: due ? new Map([...tombstones].filter(([, endMs]) => endMs > nowMs)) : tombstones,
  }
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
