/**
 * The semaphore as a pure state machine: a number of free permits, which may be negative.
 *
 *     missing ──set, acquire with an initial number──▶ free(k) ──acquire n ≤ k──▶ free(k − n)
 *                                                        ▲                            │
 *                                                        └────── end, add ────────────┘
 *
 * A request is noted with what it added; ended, it is noted as `ended` or `gone`, and never applied again.
 */
import type {
  CountReply,
  SemaphoreAcquire,
  SemaphoreAcquireReply,
  SemaphoreAdd,
  SemaphoreAddReply,
  SemaphoreDrain,
  SemaphoreDrainReply,
  SemaphoreEnd,
  SemaphoreEndReply,
  SemaphoreSet,
  SetReply,
} from '../operations.js'
import * as counts from './count.js'
import { amountOf, countOf, counting, DEAD, fits, FOREIGN, foreign, noted, noteOf } from './count.js'
import { at, unchanged, type KeyState, type Step, type Wake } from './state.js'

/** Takes permits, or repeats an attempt. */
export function acquire(
  before: KeyState,
  operation: SemaphoreAcquire,
  nowMs: number,
): Step<SemaphoreAcquireReply> {
  const state = at(before, nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const { permits, initial } = operation
  const count = countOf(state)
  const note = noteOf(state, operation)
  if (note !== undefined)
    return unchanged(state, amountOf(note) === undefined ? DEAD : { outcome: 'granted', left: count ?? 0 })
  if (count === undefined && initial < 0) return unchanged(state, { outcome: 'uninitialised' })
  const found = count ?? initial
  const left = found - permits
  const wakeFor = (rest: number): Wake | false => (count === undefined && rest > 0 ? telling(rest) : false)
  if (left < 0)
    return {
      state: count === undefined ? counting(state, found) : state,
      reply: { outcome: 'busy', available: found },
      wake: wakeFor(found),
    }
  const taken = noted(counting(state, left), operation, { note: String(-permits), nowMs })
  return { state: taken, reply: { outcome: 'granted', left }, wake: wakeFor(left) }
}

/** Ends a request, whatever became of it. */
export function end(before: KeyState, operation: SemaphoreEnd, nowMs: number): Step<SemaphoreEndReply> {
  const state = at(before, nowMs)
  const note = noteOf(state, operation)
  if (note === 'ended') return unchanged(state, { outcome: 'released' })
  if (note === 'gone') return unchanged(state, { outcome: 'gone' })
  const did = note === undefined ? undefined : amountOf(note)
  const back = did === undefined ? operation.permits : 0 - did
  const ended = noted(state, operation, { note: 'ended', nowMs })
  if (back === 0) return unchanged(ended, { outcome: 'marked' })
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const count = countOf(state)
  if (count === undefined || !fits(count + back))
    return unchanged(noted(state, operation, { note: 'gone', nowMs }), { outcome: 'gone' })
  const wake = back > 0 ? telling(count + back) : false
  return { state: counting(ended, count + back), reply: { outcome: 'released' }, wake }
}

/** Adds permits, or takes some off. */
export function add(before: KeyState, operation: SemaphoreAdd, nowMs: number): Step<SemaphoreAddReply> {
  const state = at(before, nowMs)
  const { permits, initial } = operation
  const note = noteOf(state, operation)
  if (note === 'missing' || note === 'overflow') return unchanged(state, { outcome: note })
  if (note !== undefined) return unchanged(state, amountOf(note) === undefined ? DEAD : { outcome: 'added' })
  if (foreign(state)) return unchanged(state, FOREIGN)
  const count = countOf(state)
  if (count === undefined && initial < 0)
    return unchanged(noted(state, operation, { note: 'missing', nowMs }), { outcome: 'missing' })
  const sum = (count ?? initial) + permits
  if (!fits(sum))
    return unchanged(noted(state, operation, { note: 'overflow', nowMs }), { outcome: 'overflow' })
  const added = noted(counting(state, sum), operation, { note: String(permits), nowMs })
  return { state: added, reply: { outcome: 'added' }, wake: telling(sum) }
}

/** Takes all permits that are free. */
export function drain(before: KeyState, operation: SemaphoreDrain, nowMs: number): Step<SemaphoreDrainReply> {
  const state = at(before, nowMs)
  const note = noteOf(state, operation)
  if (note !== undefined) {
    const did = amountOf(note)
    return unchanged(state, did === undefined ? DEAD : { outcome: 'drained', permits: 0 - did })
  }
  if (foreign(state)) return unchanged(state, FOREIGN)
  const permits = Math.max(countOf(state) ?? operation.initial, 0)
  const next = permits > 0 ? counting(state, 0) : state
  const drained = noted(next, operation, { note: String(0 - permits), nowMs })
  return unchanged(drained, { outcome: 'drained', permits })
}

/** Sets the number where it is missing. */
export function set(before: KeyState, operation: SemaphoreSet, nowMs: number): Step<SetReply> {
  const state = at(before, nowMs)
  const note = noteOf(state, operation)
  if (note === 'set' || note === 'kept') return unchanged(state, { outcome: note })
  if (note !== undefined) return unchanged(state, DEAD)
  if (foreign(state)) return unchanged(state, FOREIGN)
  if (countOf(state) !== undefined)
    return unchanged(noted(state, operation, { note: 'kept', nowMs }), { outcome: 'kept' })
  const { permits, ttlMs } = operation
  const made = noted(counting(state, permits), operation, { note: 'set', nowMs })
  const expiresAtMs = ttlMs === 0 ? Infinity : nowMs + ttlMs
  return { state: { ...made, expiresAtMs }, reply: { outcome: 'set' }, wake: telling(permits) }
}

/** Reads the number. */
export function inspect(before: KeyState, _operation: object, nowMs: number): Step<CountReply> {
  return counts.inspect(before, nowMs)
}

// A string that is not a number can be read, and is no place to give anything back to.
function wrongType(state: KeyState): boolean {
  return foreign(state) && state.value?.kind !== 'mutex'
}

// Redisson's listeners break on a negative number.
function telling(count: number): Wake {
  const payload = String(Math.max(count, 0))
  return { hint: payload === '1' ? 'all' : 'one', payload }
}
