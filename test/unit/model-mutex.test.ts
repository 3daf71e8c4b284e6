import { describe, expect, test } from 'vitest'
import * as mutex from '../../src/engine/model/mutex.js'
import { FREE, type KeyState } from '../../src/engine/model/state.js'
import type { MutexAcquire, Release } from '../../src/engine/operations.js'

const A = 'client:1'
const B = 'the token of another library'
const name = 'report'

const held = (owner: string, expiresAtMs = 10_000): KeyState => ({
  value: { kind: 'mutex', owner },
  expiresAtMs,
  tombstones: new Map(),
})
const data: KeyState = { value: { kind: 'foreign', hash: true }, expiresAtMs: 500, tombstones: new Map() }
const acquire = (state: KeyState, terms: Partial<MutexAcquire> = {}, nowMs = 0) =>
  mutex.acquire(state, { op: 'mutex.acquire', name, owner: A, leaseMs: 5_000, ...terms }, nowMs)
const release = (state: KeyState, terms: Partial<Release<'mutex.release'>> = {}, nowMs = 0) =>
  mutex.release(state, { op: 'mutex.release', name, owner: A, keepMs: 0, entombMs: 0, ...terms }, nowMs)

describe('acquire', () => {
  test('takes a free mutex, or one at the millisecond in which it expires', () => {
    expect(acquire(FREE)).toEqual({ state: held(A, 5_000), reply: { outcome: 'granted' }, wake: false })
    expect(acquire(held(B), {}, 9_999).reply).toEqual({ outcome: 'busy', ttlMs: 1, holder: B })
    expect(acquire(held(B), {}, 10_000).state).toEqual(held(A, 15_000))
  })

  test('may be repeated and never shortens', () => {
    expect(acquire(held(A, 90_000)).state).toEqual(held(A, 90_000))
    expect(acquire(held(A, 1_000)).state).toEqual(held(A, 5_000))
    expect(acquire(held(A, Infinity)).state).toEqual(held(A, 5_000))
  })

  test('is refused to a token that was ended, but not to one that holds', () => {
    const tombstones = new Map([[A, 60_000]])
    expect(acquire({ ...FREE, tombstones }).reply).toEqual({ outcome: 'dead' })
    expect(acquire({ ...held(A), tombstones }).reply).toEqual({ outcome: 'granted' })
    expect(acquire({ ...FREE, tombstones }, {}, 60_000).reply).toEqual({ outcome: 'granted' })
  })

  test('leaves data of another type alone', () => {
    expect(acquire(data)).toEqual({ state: data, reply: { outcome: 'foreign' }, wake: false })
    expect(acquire(data, {}, 500).reply).toEqual({ outcome: 'granted' })
  })
})

describe('release', () => {
  test('compares and deletes', () => {
    expect(release(held(A))).toEqual({ state: FREE, reply: { outcome: 'released' }, wake: true })
    expect(release(held(B))).toEqual({ state: held(B), reply: { outcome: 'taken' }, wake: false })
    expect(release(held(A), {}, 10_000)).toEqual({ state: FREE, reply: { outcome: 'gone' }, wake: false })
    expect(release(data).reply).toEqual({ outcome: 'foreign' })
  })

  test('keeps the key for the minimum hold only if it is ours', () => {
    expect(release(held(A, 90_000), { keepMs: 700 }, 100)).toEqual({
      state: held(`${A}:0`, 800),
      reply: { outcome: 'released' },
      wake: true,
    })
    expect(release(held(B), { keepMs: 700 }).state).toEqual(held(B))
  })

  test('leaves a tombstone whoever holds', () => {
    for (const state of [FREE, held(A), held(B)])
      expect(release(state, { entombMs: 60_000 }, 5).state.tombstones).toEqual(new Map([[A, 60_005]]))
    expect(release(data, { entombMs: 60_000 }).state).toBe(data)
  })
})

test('renew raises for its token only', () => {
  const renew = (state: KeyState, nowMs = 0) => mutex.renew(state, { owner: A, ttlMs: 20_000 }, nowMs)
  expect(renew(held(A)).state).toEqual(held(A, 20_000))
  expect(renew(held(A, 90_000)).state).toEqual(held(A, 90_000))
  expect(renew(held(B))).toEqual({ state: held(B), reply: 'taken', wake: false })
  expect(renew(data).reply).toBe('taken')
  expect(renew(held(A), 10_000).reply).toBe('gone')
})

test('inspect tells the holder', () => {
  const inspect = (state: KeyState) => mutex.inspect(state, { op: 'mutex.inspect', name }, 0).reply
  expect(inspect(held(B))).toEqual({ outcome: 'held', ttlMs: 10_000, holders: new Map([[B, 1]]) })
  expect(inspect(FREE)).toEqual({ outcome: 'free' })
  expect(inspect(data)).toEqual({ outcome: 'foreign' })
})

test('force takes the mutex only from the token that was seen', () => {
  const force = (state: KeyState, owners: string[]) =>
    mutex.force(state, { op: 'mutex.force', name, owners }, 0)
  expect(force(held(B), [B])).toEqual({ state: FREE, reply: { outcome: 'freed' }, wake: true })
  expect(force(held(B), [A])).toEqual({ state: held(B), reply: { outcome: 'none' }, wake: false })
  expect(force(data, [B])).toEqual({ state: data, reply: { outcome: 'foreign' }, wake: false })
})
