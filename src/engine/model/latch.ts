/**
 * The count-down latch as a pure state machine; missing, zero and less are open.
 *
 *     open ──set c > 0──▶ shut(c) ──countDown──▶ shut(c − 1) … ──countDown, delete──▶ open
 */
import type {
  CountReply,
  LatchCancel,
  LatchCancelReply,
  LatchCountDown,
  LatchCountDownReply,
  LatchDelete,
  LatchDeleteReply,
  LatchSet,
  SetReply,
} from '../operations.js'
import * as counts from './count.js'
import { amountOf, countOf, counting, DEAD, FOREIGN, foreign, noted, noteOf } from './count.js'
import { at, freed, unchanged, type KeyState, type Step, type Wake } from './state.js'

const OPENED: Wake = { hint: 'one', payload: '0' }
const SHUT: Wake = { hint: 'all', payload: '1' }

/** Sets the count where there is none. */
export function set(before: KeyState, operation: LatchSet, nowMs: number): Step<SetReply> {
  const state = at(before, nowMs)
  const note = noteOf(state, operation)
  if (note === 'set' || note === 'kept') return unchanged(state, { outcome: note })
  if (note !== undefined) return unchanged(state, DEAD)
  if (foreign(state)) return unchanged(state, FOREIGN)
  if (countOf(state) !== undefined)
    return unchanged(noted(state, operation, { note: 'kept', nowMs }), { outcome: 'kept' })
  const made = noted(counting(state, operation.count), operation, { note: 'set', nowMs })
  return { state: made, reply: { outcome: 'set' }, wake: SHUT }
}

/** Lowers the count by one; the last one removes it. */
export function countDown(
  before: KeyState,
  operation: LatchCountDown,
  nowMs: number,
): Step<LatchCountDownReply> {
  const state = at(before, nowMs)
  const note = noteOf(state, operation)
  if (note === 'ended') return unchanged(state, DEAD)
  if (note !== undefined) return unchanged(state, { outcome: 'counted', left: amountOf(note) ?? 0 })
  if (foreign(state)) return unchanged(state, FOREIGN)
  const count = countOf(state) ?? 0
  if (count > 1) {
    const left = count - 1
    const lowered = noted(counting(state, left), operation, { note: String(left), nowMs })
    return unchanged(lowered, { outcome: 'counted', left })
  }
  const opened = noted(freed(state), operation, { note: 'open', nowMs })
  return { state: opened, reply: { outcome: 'counted', left: 0 }, wake: count === 1 ? OPENED : false }
}

/** Takes a count-down back, unless it opened the latch. */
export function cancel(before: KeyState, operation: LatchCancel, nowMs: number): Step<LatchCancelReply> {
  const state = at(before, nowMs)
  const ended = noted(state, operation, { note: 'ended', nowMs })
  const did = amountOf(noteOf(state, operation))
  if (did === undefined) return unchanged(ended, { outcome: 'marked' })
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const count = countOf(state) ?? 0
  if (count < 1) return unchanged(ended, { outcome: 'marked' })
  return unchanged(counting(ended, count + 1), { outcome: 'undone' })
}

/** Removes the count. */
export function remove(before: KeyState, operation: LatchDelete, nowMs: number): Step<LatchDeleteReply> {
  const state = at(before, nowMs)
  const note = noteOf(state, operation)
  if (note === 'deleted' || note === 'missing') return unchanged(state, { outcome: note })
  if (note !== undefined) return unchanged(state, DEAD)
  if (foreign(state)) return unchanged(state, FOREIGN)
  if (countOf(state) === undefined)
    return unchanged(noted(state, operation, { note: 'missing', nowMs }), { outcome: 'missing' })
  const deleted = noted(freed(state), operation, { note: 'deleted', nowMs })
  return { state: deleted, reply: { outcome: 'deleted' }, wake: SHUT }
}

/** Reads the count. */
export function inspect(before: KeyState, _operation: object, nowMs: number): Step<CountReply> {
  return counts.inspect(before, nowMs)
}

function wrongType(state: KeyState): boolean {
  return foreign(state) && state.value?.kind !== 'mutex'
}
