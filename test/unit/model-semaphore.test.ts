import { describe, expect, test } from 'vitest'
import * as semaphore from '../../src/engine/model/semaphore.js'
import { FREE, isEmpty, type KeyState } from '../../src/engine/model/state.js'
import type { SemaphoreAcquire, SemaphoreAdd } from '../../src/engine/operations.js'

const base = { name: 'x', request: 'r1', requestMs: 60_000 }
const free = (count: number, expiresAtMs = Infinity): KeyState => ({
  value: { kind: 'count', count },
  expiresAtMs,
  tombstones: new Map(),
})
const acquire = (state: KeyState, terms: Partial<SemaphoreAcquire> = {}, nowMs = 0) =>
  semaphore.acquire(state, { op: 'semaphore.acquire', ...base, permits: 1, initial: -1, ...terms }, nowMs)
const end = (state: KeyState, permits: number, nowMs = 0) =>
  semaphore.end(state, { op: 'semaphore.end', ...base, permits }, nowMs)
const add = (state: KeyState, terms: Partial<SemaphoreAdd> = {}, nowMs = 0) =>
  semaphore.add(state, { op: 'semaphore.add', ...base, permits: 1, initial: 0, ...terms }, nowMs)
const countOf = ({ value }: KeyState) => (value?.kind === 'count' ? value.count : undefined)

describe('acquire', () => {
  test('takes all or nothing', () => {
    expect(acquire(free(3), { permits: 3 })).toMatchObject({
      reply: { outcome: 'granted', left: 0 },
      wake: false,
    })
    const { state, reply } = acquire(free(3), { permits: 4 })
    expect(reply).toEqual({ outcome: 'busy', available: 3 })
    expect(state).toEqual(free(3))
  })

  test('is granted once however often it comes, as long as its note lasts', () => {
    const { state } = acquire(free(3), { permits: 2 })
    const again = acquire(state, { permits: 2 }, 59_999)
    expect(again.reply).toEqual({ outcome: 'granted', left: 1 })
    expect(countOf(again.state)).toBe(1)
    expect(acquire(state, { permits: 1 }, 60_000).reply).toEqual({ outcome: 'granted', left: 0 })
  })

  test('begins a number that is missing, and tells of the rest', () => {
    expect(acquire(FREE).reply).toEqual({ outcome: 'uninitialised' })
    const { state, wake } = acquire(FREE, { initial: 5, permits: 2 })
    expect([countOf(state), state.expiresAtMs]).toEqual([3, Infinity])
    expect(wake).toEqual({ hint: 'one', payload: '3' })
    expect(acquire(FREE, { initial: 2, permits: 2 }).wake).toBe(false)
  })

  test('begins anew what has expired', () => {
    expect(countOf(acquire(free(0, 100), { initial: 5 }, 100).state)).toBe(4)
    expect(acquire(free(0, 100), { initial: 5 }, 99).reply).toEqual({ outcome: 'busy', available: 0 })
  })
})

describe('end', () => {
  test('gives back once, and refuses what comes later', () => {
    const { state, reply, wake } = end(acquire(free(3), { permits: 2 }).state, 2)
    expect([countOf(state), reply, wake]).toEqual([3, { outcome: 'released' }, { hint: 'one', payload: '3' }])
    expect(countOf(end(state, 2).state)).toBe(3)
    expect(acquire(state, { permits: 2 }).reply).toEqual({ outcome: 'dead' })
  })

  test('undoes what was done, whatever it was, and nothing that was not', () => {
    expect(countOf(end(acquire(free(3), { permits: 2 }).state, 0).state)).toBe(3)
    expect(countOf(end(add(free(3), { permits: -7 }).state, 0).state)).toBe(3)
    const { state, reply } = end(free(3), 0)
    expect([countOf(state), reply]).toEqual([3, { outcome: 'marked' }])
  })

  test('makes no number where there is none', () => {
    const { state, reply } = end(FREE, 2)
    expect([countOf(state), reply]).toEqual([undefined, { outcome: 'gone' }])
  })
})

describe('add', () => {
  test('keeps the TTL, and never tells of less than nothing', () => {
    const { state, wake } = add(free(1, 500), { permits: -3 })
    expect([countOf(state), state.expiresAtMs, wake]).toEqual([-2, 500, { hint: 'one', payload: '0' }])
    expect(add(free(0)).wake).toEqual({ hint: 'all', payload: '1' })
  })

  test('does not leave the whole numbers', () => {
    const full = free(Number.MAX_SAFE_INTEGER)
    expect(add(full).reply).toEqual({ outcome: 'overflow' })
    expect(countOf(add(full).state)).toBe(Number.MAX_SAFE_INTEGER)
  })
})

test('drain takes what is free, and lets a debt be', () => {
  const drain = (state: KeyState) => semaphore.drain(state, { op: 'semaphore.drain', ...base, initial: 0 }, 0)
  expect(drain(free(4)).reply).toEqual({ outcome: 'drained', permits: 4 })
  expect(countOf(drain(free(4)).state)).toBe(0)
  expect(countOf(drain(free(-4)).state)).toBe(-4)
  expect(countOf(drain(FREE).state)).toBeUndefined()
  expect(drain(drain(free(4)).state).reply).toEqual({ outcome: 'drained', permits: 4 })
})

test('notes of requests go with time, and the name with them', () => {
  const { state } = end(FREE, 0)
  expect(isEmpty(state)).toBe(false)
  expect(isEmpty(semaphore.inspect(state, {}, 60_000).state)).toBe(true)
})
