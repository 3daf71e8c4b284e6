import { describe, expect, test } from 'vitest'
import * as lock from '../../src/engine/model/lock.js'
import { FREE, type KeyState } from '../../src/engine/model/state.js'
import type { LockAcquire, Release } from '../../src/engine/operations.js'

const A = 'client:1'
const B = 'client:2'
const name = 'orders'

const held = (counts: Record<string, number>, expiresAtMs = 10_000): KeyState => ({
  value: { kind: 'lock', counts: new Map(Object.entries(counts)) },
  expiresAtMs,
  tombstones: new Map(),
})
const data = (hash: boolean): KeyState => ({
  value: { kind: 'foreign', hash },
  expiresAtMs: Infinity,
  tombstones: new Map(),
})
const buried = (state: KeyState, owner: string, endMs: number): KeyState => ({
  ...state,
  tombstones: new Map([[owner, endMs]]),
})
const acquire = (state: KeyState, terms: Partial<LockAcquire> = {}, nowMs = 0) =>
  lock.acquire(state, { op: 'lock.acquire', name, owner: A, count: 1, leaseMs: 5_000, ...terms }, nowMs)
const release = (state: KeyState, terms: Partial<Release<'lock.release'>> = {}, nowMs = 0) =>
  lock.release(state, { op: 'lock.release', name, owner: A, keepMs: 0, entombMs: 0, ...terms }, nowMs)
const leave = (state: KeyState, count: number, nowMs = 0) =>
  lock.leave(state, { op: 'lock.leave', name, owner: A, count }, nowMs)

describe('acquire', () => {
  test('takes a free lock with exactly the lease', () => {
    const { state, reply, wake } = acquire(FREE, {}, 100)
    expect(reply).toEqual({ outcome: 'granted' })
    expect(state).toEqual(held({ [A]: 1 }, 5_100))
    expect(wake).toBe(false)
  })

  test('takes a lock at the millisecond in which it expires, not before', () => {
    const before = held({ [B]: 3 }, 10_000)
    expect(acquire(before, {}, 9_999).reply).toEqual({ outcome: 'busy', ttlMs: 1, holder: B })
    expect(acquire(before, {}, 10_000).state).toEqual(held({ [A]: 1 }, 15_000))
  })

  test('may be repeated, and then changes nothing but a TTL that is too short', () => {
    const once = acquire(FREE, {}, 0).state
    expect(acquire(once, {}, 0)).toEqual({ state: once, reply: { outcome: 'granted' }, wake: false })
    expect(acquire(once, {}, 1_000).state.expiresAtMs).toBe(6_000)
    expect(acquire(held({ [A]: 1 }, 90_000), {}, 0).state.expiresAtMs).toBe(90_000)
  })

  test('sets the count that it was told, never adds, never lowers', () => {
    expect(acquire(held({ [A]: 1 }), { count: 2 }).state).toEqual(held({ [A]: 2 }))
    expect(acquire(held({ [A]: 2 }), { count: 2 }).state).toEqual(held({ [A]: 2 }))
    expect(acquire(held({ [A]: 3 }), { count: 1 }).state).toEqual(held({ [A]: 3 }))
  })

  test('never creates the key for a nested hold', () => {
    expect(acquire(FREE, { count: 2 })).toEqual({ state: FREE, reply: { outcome: 'lost' }, wake: false })
    expect(acquire(held({ [B]: 1 }), { count: 2 }).reply).toEqual({ outcome: 'lost' })
  })

  test('is refused to an owner that was ended, until its tombstone is gone', () => {
    const state = buried(FREE, A, 60_000)
    expect(acquire(state, {}, 59_999).reply).toEqual({ outcome: 'dead' })
    expect(acquire(state, { owner: B }, 0).reply).toEqual({ outcome: 'granted' })
    expect(acquire(state, {}, 60_000).reply).toEqual({ outcome: 'granted' })
  })

  test('gives a key without a TTL one when its own owner repeats, and tells others -1', () => {
    expect(acquire(held({ [A]: 1 }, Infinity)).state.expiresAtMs).toBe(5_000)
    expect(acquire(held({ [B]: 1 }, Infinity)).reply).toEqual({ outcome: 'busy', ttlMs: -1, holder: B })
  })

  test.each([true, false])('leaves data of somebody else alone (hash: %s)', (hash) => {
    expect(acquire(data(hash))).toEqual({ state: data(hash), reply: { outcome: 'foreign' }, wake: false })
  })
})

describe('leave', () => {
  test('lowers the count and leaves the TTL', () => {
    expect(leave(held({ [A]: 3 }), 2).state).toEqual(held({ [A]: 2 }))
    expect(leave(held({ [A]: 2 }), 2)).toEqual({
      state: held({ [A]: 2 }),
      reply: { outcome: 'kept' },
      wake: false,
    })
    expect(leave(held({ [A]: 1 }), 2).state).toEqual(held({ [A]: 1 }))
  })

  test('tells whether nobody or somebody else is there', () => {
    expect(leave(FREE, 1).reply).toEqual({ outcome: 'gone' })
    expect(leave(held({ [A]: 2 }), 1, 10_000).reply).toEqual({ outcome: 'gone' })
    expect(leave(held({ [B]: 1 }), 1).reply).toEqual({ outcome: 'taken' })
    expect(leave(data(true), 1).reply).toEqual({ outcome: 'taken' })
    expect(leave(data(false), 1).reply).toEqual({ outcome: 'foreign' })
  })
})

describe('release', () => {
  test('frees the lock whatever the count, and wakes', () => {
    expect(release(held({ [A]: 4 }))).toEqual({ state: FREE, reply: { outcome: 'released' }, wake: true })
  })

  test('keeps the lock shut for the minimum hold, exactly, and lets a waiter know', () => {
    const { state, reply, wake } = release(held({ [A]: 1 }, 90_000), { keepMs: 2_000 }, 1_000)
    expect(state).toEqual(held({ [`${A}:0`]: 1 }, 3_000))
    expect(reply).toEqual({ outcome: 'released' })
    expect(wake).toBe(true)
    expect(release(state, { keepMs: 5_000 }, 1_500)).toEqual({ state, reply, wake: false })
  })

  test('leaves somebody else alone', () => {
    const theirs = held({ [B]: 1 })
    for (const keepMs of [0, 500])
      expect(release(theirs, { keepMs })).toEqual({ state: theirs, reply: { outcome: 'taken' }, wake: false })
    expect(release(FREE).reply).toEqual({ outcome: 'gone' })
  })

  test('leaves a tombstone also for an owner that was not there', () => {
    expect(release(FREE, { entombMs: 60_000 }, 5).state).toEqual(buried(FREE, A, 60_005))
    expect(release(held({ [B]: 1 }), { entombMs: 60_000 }).state.tombstones).toEqual(new Map([[A, 60_000]]))
    expect(release(data(false), { entombMs: 60_000 }).state).toEqual(data(false))
  })

  test('leaves the field of another program in the hash', () => {
    const { state, reply } = release(held({ [A]: 1, [B]: 2 }))
    expect(reply).toEqual({ outcome: 'released' })
    expect(state).toEqual(held({ [B]: 2 }))
  })
})

describe('renew', () => {
  const renew = (state: KeyState, nowMs: number) => lock.renew(state, { owner: A, ttlMs: 5_000 }, nowMs)

  test('raises, never shortens, never creates', () => {
    expect(renew(held({ [A]: 1 }, 6_000), 4_000).state.expiresAtMs).toBe(9_000)
    expect(renew(held({ [A]: 1 }, 90_000), 0).state.expiresAtMs).toBe(90_000)
    expect(renew(FREE, 0)).toEqual({ state: FREE, reply: 'gone', wake: false })
    expect(renew(held({ [A]: 1 }, 6_000), 6_000)).toEqual({ state: FREE, reply: 'gone', wake: false })
  })

  test('leaves somebody else alone', () => {
    for (const state of [held({ [B]: 1 }), data(true), data(false)])
      expect(renew(state, 0)).toEqual({ state, reply: 'taken', wake: false })
  })
})

describe('inspect and force', () => {
  test('inspect tells the holders and the TTL', () => {
    const inspect = (state: KeyState, nowMs = 0) =>
      lock.inspect(state, { op: 'lock.inspect', name }, nowMs).reply
    expect(inspect(FREE)).toEqual({ outcome: 'free' })
    expect(inspect(held({ [A]: 2 }), 9_000)).toEqual({
      outcome: 'held',
      ttlMs: 1_000,
      holders: new Map([[A, 2]]),
    })
    expect(inspect(held({ [A]: 2 }), 10_000)).toEqual({ outcome: 'free' })
    expect(inspect(data(true))).toEqual({ outcome: 'foreign' })
  })

  test('force removes those that were seen, and nobody else', () => {
    const force = (state: KeyState, owners: string[]) =>
      lock.force(state, { op: 'lock.force', name, owners }, 0)
    expect(force(held({ [A]: 2 }), [A])).toEqual({ state: FREE, reply: { outcome: 'freed' }, wake: true })
    expect(force(held({ [B]: 1 }), [A]).reply).toEqual({ outcome: 'none' })
    expect(force(held({ [A]: 1, [B]: 1 }), [A]).state).toEqual(held({ [B]: 1 }))
    expect(force(data(false), [A])).toEqual({
      state: data(false),
      reply: { outcome: 'foreign' },
      wake: false,
    })
  })
})

test('no step changes the state that it was given', () => {
  const before = buried(held({ [A]: 2 }), B, 60_000)
  const copy = structuredClone(before)
  acquire(before, { count: 3 })
  leave(before, 1)
  release(before, { entombMs: 5 })
  release(before, { keepMs: 5 })
  lock.renew(before, { owner: A, ttlMs: 99_999 }, 0)
  lock.force(before, { op: 'lock.force', name, owners: [A] }, 0)
  acquire(before, {}, 100_000)
  expect(before).toEqual(copy)
})
