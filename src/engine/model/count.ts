/** What the semaphore and the latch have in common: a number without owners, and notes of requests beside it. */
import type { CountReply, DeadReply, ForeignReply } from '../operations.js'
import { Notes } from './notes.js'
import { at, unchanged, type KeyState, type Step } from './state.js'

/** Other data is under the name. */
export const FOREIGN: ForeignReply = { outcome: 'foreign' }
/** The request was ended before. */
export const DEAD: DeadReply = { outcome: 'dead' }

/** A request, as the operations name it. */
export interface Requested {
  readonly request: string
  readonly requestMs: number
}

/** The number, or undefined if the key is missing. */
export function countOf(state: KeyState): number | undefined {
  return state.value?.kind === 'count' ? state.value.count : undefined
}

/** Whether other data is under the name. */
export function foreign(state: KeyState): boolean {
  return state.value !== undefined && state.value.kind !== 'count'
}

/** The state with this number; its TTL stays, and a new key has none. */
export function counting(state: KeyState, count: number): KeyState {
  const expiresAtMs = state.value === undefined ? Infinity : state.expiresAtMs
  return { ...state, value: { kind: 'count', count }, expiresAtMs }
}

/** The note of a request. */
export function noteOf(state: KeyState, { request }: { readonly request: string }): string | undefined {
  return state.requests?.get(request)
}

/** The state with a note of a request. */
export function noted(
  state: KeyState,
  operation: Requested,
  entry: { note: string; nowMs: number },
): KeyState {
  const note = { note: entry.note, endMs: entry.nowMs + operation.requestMs }
  return { ...state, requests: (state.requests ?? new Notes()).with(operation.request, note) }
}

/** What a note says that was added; undefined: it is a word. */
export function amountOf(note: string | undefined): number | undefined {
  return note !== undefined && /^-?\d+$/.test(note) ? Number(note) : undefined
}

/** Whether a number is one that a double holds exactly. */
export function fits(count: number): boolean {
  return Number.isSafeInteger(count)
}

/** Reads the number. */
export function inspect(before: KeyState, nowMs: number): Step<CountReply> {
  const state = at(before, nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const count = countOf(state)
  return unchanged(state, count === undefined ? { outcome: 'missing' } : { outcome: 'counted', count })
}
