/** The fenced lock as a pure state machine: the re-entrant lock, and a counter that grows with every grant. */
import type { BadTokenReply, FencedAcquire, FencedAcquireReply, FencedToken } from '../operations.js'
import * as lock from './lock.js'
import { at, unchanged, type KeyState, type Step } from './state.js'

/** The model knows no names of keys. */
type Nameless<Reply> = Exclude<Reply, BadTokenReply> | Omit<BadTokenReply, 'key'>

/** A token has to be told exactly. */
const HIGHEST = Number.MAX_SAFE_INTEGER

/**
 * Takes the lock with a new token. A repeated copy of an attempt gets a higher one, too: the one before is
 * perhaps in use, perhaps it never arrived, and a number that nobody uses does no harm.
 */
export function acquire(
  before: KeyState,
  operation: FencedAcquire,
  nowMs: number,
): Step<Nameless<FencedAcquireReply>> {
  const { state, reply, wake } = lock.acquire(before, { ...operation, op: 'lock.acquire' }, nowMs)
  if (reply.outcome !== 'granted') return { state, reply, wake }
  const last = state.token ?? 0
  if (last === 'foreign' || last >= HIGHEST) return unchanged(at(before, nowMs), { outcome: 'badToken' })
  const token = last + 1
  return { state: { ...state, token }, reply: { outcome: 'granted', token }, wake }
}

/** Reads the highest token. */
export function token(
  before: KeyState,
  _operation: FencedToken,
  nowMs: number,
): Step<{ readonly outcome: 'known'; readonly token: number } | Omit<BadTokenReply, 'key'>> {
  const state = at(before, nowMs)
  const last = state.token ?? 0
  if (last === 'foreign') return unchanged(state, { outcome: 'badToken' })
  return unchanged(state, { outcome: 'known', token: last })
}
