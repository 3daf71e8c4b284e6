import { describe, expect, test } from 'vitest'
import * as fenced from '../../src/engine/model/fenced.js'
import * as lock from '../../src/engine/model/lock.js'
import * as spin from '../../src/engine/model/spin.js'
import { at, FREE, isEmpty, type KeyState } from '../../src/engine/model/state.js'
import type { FencedAcquire } from '../../src/engine/operations.js'

const A = 'client:1'
const B = 'client:2'
const name = 'orders'

const held = (owner: string, token?: number, expiresAtMs = 5_000): KeyState => ({
  value: { kind: 'lock', counts: new Map([[owner, 1]]) },
  expiresAtMs,
  tombstones: new Map(),
  ...(token !== undefined && { token }),
})
const acquire = (state: KeyState, terms: Partial<FencedAcquire> = {}, nowMs = 0) =>
  fenced.acquire(state, { op: 'fenced.acquire', name, owner: A, count: 1, leaseMs: 5_000, ...terms }, nowMs)
const token = (state: KeyState, nowMs = 0) => fenced.token(state, { op: 'fenced.token', name }, nowMs).reply

describe('the fenced lock', () => {
  test('gives the next token with every grant: the first, a nested one, a repeated one', () => {
    const first = acquire(FREE)
    expect(first).toEqual({ state: held(A, 1), reply: { outcome: 'granted', token: 1 }, wake: false })
    const nested = acquire(first.state, { count: 2 })
    expect(nested.reply).toEqual({ outcome: 'granted', token: 2 })
    const repeated = acquire(nested.state, { count: 2 })
    expect(repeated.reply).toEqual({ outcome: 'granted', token: 3 })
    expect(repeated.state.value).toEqual(nested.state.value)
  })

  test('spends none on those whom it refuses', () => {
    const state = held(B, 7)
    expect(acquire(state)).toMatchObject({ state, reply: { outcome: 'busy', holder: B } })
    expect(acquire(state, { count: 2 })).toMatchObject({ state, reply: { outcome: 'lost' } })
    const dead: KeyState = { ...FREE, token: 7, tombstones: new Map([[A, 60_000]]) }
    expect(acquire(dead)).toMatchObject({ state: dead, reply: { outcome: 'dead' } })
  })

  test('keeps the token over expiry, release and force', () => {
    const ends = [
      at(held(A, 7), 5_000),
      lock.release(held(A, 7), { op: '', name, owner: A, keepMs: 0, entombMs: 0 }, 0).state,
      lock.force(held(A, 7), { op: '', name, owners: [A] }, 0).state,
    ]
    for (const state of ends) {
      expect(state).toEqual({ ...FREE, token: 7 })
      expect(isEmpty(state)).toBe(false)
      expect(token(state)).toEqual({ outcome: 'known', token: 7 })
      expect(acquire(state).reply).toEqual({ outcome: 'granted', token: 8 })
    }
  })

  test.each(['foreign', Number.MAX_SAFE_INTEGER] as const)('gives none after %s', (last) => {
    const free: KeyState = { ...FREE, token: last }
    expect(acquire(free)).toEqual({ state: free, reply: { outcome: 'badToken' }, wake: false })
    const mine: KeyState = { ...held(A), token: last }
    expect(acquire(mine, { count: 2 })).toEqual({ state: mine, reply: { outcome: 'badToken' }, wake: false })
    expect(token(free)).toEqual(
      last === 'foreign' ? { outcome: 'badToken' } : { outcome: 'known', token: last },
    )
  })

  test('knows 0 before the first', () => {
    expect(token(FREE)).toEqual({ outcome: 'known', token: 0 })
    expect(token(held(B))).toEqual({ outcome: 'known', token: 0 })
  })
})

describe('the spin lock', () => {
  test('ends as a lock does, and tells nobody', () => {
    const end = { op: '', name, owner: A, keepMs: 0, entombMs: 0 }
    expect(spin.release(held(A), end, 0)).toEqual({ ...lock.release(held(A), end, 0), wake: false })
    const force = { op: '', name, owners: [A] }
    expect(spin.force(held(A), force, 0)).toEqual({ ...lock.force(held(A), force, 0), wake: false })
    expect(spin.release(held(A), { ...end, keepMs: 700 }, 100).wake).toBe(false)
  })
})
