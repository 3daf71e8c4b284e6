/**
 * The count-down latch as a pure state machine; missing, zero and less are open.
 *
 *     open ──set c > 0──▶ shut(c) ──countDown──▶ shut(c − 1) … ──countDown, delete──▶ open
 *
 * A count-down is noted with what it left, and in which round: undone late, it must not reach into the next one.
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
import { countOf, counting, DEAD, fits, FOREIGN, foreign, noted, noteOf, type Requested } from './count.js'
import { at, freed, unchanged, type KeyState, type Round, type Step, type Wake } from './state.js'

const OPENED: Wake = { hint: 'one', payload: '0' }
const SHUT: Wake = { hint: 'all', payload: '1' }

/** Sets the count where there is none. */
export function set(before: KeyState, operation: LatchSet, nowMs: number): Step<SetReply> {
  const state = at(before, nowMs)
  const note = noteOf(state, operation)
  if (note === 'set' || note === 'kept') return unchanged(state, { outcome: note })
  if (note !== undefined) return unchanged(state, DEAD)
  if (foreign(state)) return unchanged(state, FOREIGN)
  if ((countOf(state) ?? 0) > 0)
    return unchanged(noted(state, operation, { note: 'kept', nowMs }), { outcome: 'kept' })
  const open = noted(freed(state), operation, { note: 'set', nowMs })
  // At zero it is open, which needs no key: one would keep the next round from being set.
  if (operation.count === 0) return unchanged(open, { outcome: 'set' })
  const made = turned(counting(open, operation.count), operation, nowMs)
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
  if (note !== undefined) return unchanged(state, { outcome: 'counted', left: counted(note)?.left ?? 0 })
  if (foreign(state)) return unchanged(state, FOREIGN)
  const count = countOf(state) ?? 0
  if (count > 1) {
    const left = count - 1
    const id = state.round?.id
    const lowered = noted(counting(state, left), operation, {
      note: id === undefined ? String(left) : `${String(left)} ${id}`,
      nowMs,
    })
    return unchanged(lowered, { outcome: 'counted', left })
  }
  const freely = noted(freed(state), operation, { note: 'open', nowMs })
  const opened = count === 1 ? turned(freely, operation, nowMs) : freely
  return { state: opened, reply: { outcome: 'counted', left: 0 }, wake: count === 1 ? OPENED : false }
}

/** Takes a count-down back, unless it opened the latch, or the latch has opened since and was set anew. */
export function cancel(before: KeyState, operation: LatchCancel, nowMs: number): Step<LatchCancelReply> {
  const state = at(before, nowMs)
  const ended = noted(state, operation, { note: 'ended', nowMs })
  const did = counted(noteOf(state, operation))
  if (did === undefined) return unchanged(ended, { outcome: 'marked' })
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const count = countOf(state) ?? 0
  const { id, undone } = state.round ?? { id: undefined, undone: 0 }
  const another = id !== undefined && id !== did.id
  // In one round a count goes up by what is undone only: one that is higher belongs to a round that a peer has begun.
  const peers = count > did.left + undone || !fits(count + 1)
  if (count < 1 || another || peers) return unchanged(ended, { outcome: 'marked' })
  const round: Round = { id, undone: undone + 1, endMs: nowMs + operation.requestMs }
  return unchanged({ ...counting(ended, count + 1), round }, { outcome: 'undone' })
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
  return { state: turned(deleted, operation, nowMs), reply: { outcome: 'deleted' }, wake: OPENED }
}

/** Reads the count. */
export function inspect(before: KeyState, _operation: object, nowMs: number): Step<CountReply> {
  return counts.inspect(before, nowMs)
}

/** The state in another round than before. */
function turned(state: KeyState, { request, requestMs }: Requested, nowMs: number): KeyState {
  const id = request.slice(request.lastIndexOf(':') + 1)
  return { ...state, round: { id, undone: 0, endMs: nowMs + requestMs } }
}

/** What a note says of a count-down that did not open the latch. */
function counted(note: string | undefined): { readonly left: number; readonly id: string } | undefined {
  const [, left, id = ''] = /^(\d+) ?(.*)$/s.exec(note ?? '') ?? []
  return left === undefined ? undefined : { left: Number(left), id }
}

function wrongType(state: KeyState): boolean {
  return foreign(state) && state.value?.kind !== 'mutex'
}
