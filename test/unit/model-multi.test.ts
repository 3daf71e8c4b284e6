import { describe, expect, test } from 'vitest'
import * as multi from '../../src/engine/model/multi.js'
import { FREE, type KeyState } from '../../src/engine/model/state.js'

const A = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:1'
const B = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:2'
const names = ['x', 'y', 'z']

const held = (owner: string, expiresAtMs = 10_000): KeyState => ({
  value: { kind: 'lock', counts: new Map([[owner, 1]]) },
  expiresAtMs,
  tombstones: new Map(),
})
const dead: KeyState = { ...FREE, tombstones: new Map([[A, 60_000]]) }
const data: KeyState = { ...FREE, value: { kind: 'foreign', hash: true } }
const list: KeyState = { ...FREE, value: { kind: 'foreign', hash: false } }

const acquire = (states: readonly KeyState[], nowMs = 0) =>
  multi.acquire(states, { op: 'multi.acquire', names, owner: A, leaseMs: 5_000 }, nowMs)
const release = (states: readonly KeyState[], entombMs = 0) =>
  multi.release(states, { op: 'multi.release', names, owner: A, entombMs }, 0)

describe('acquire', () => {
  test('takes all that are free, or expire at this millisecond', () => {
    const { states, reply, wakes } = acquire([FREE, held(B), FREE], 10_000)
    expect(states).toEqual([held(A, 15_000), held(A, 15_000), held(A, 15_000)])
    expect(reply).toEqual({ outcome: 'granted' })
    expect(wakes).toEqual([false, false, false])
  })

  test('takes none when one is held, and says which', () => {
    const before = [FREE, held(B, 9_000), held(B)]
    const { states, reply } = acquire(before)
    expect(states).toEqual(before)
    expect(reply).toEqual({ outcome: 'busy', index: 1, ttlMs: 9_000, holder: B })
  })

  test('may be repeated, and never shortens', () => {
    expect(acquire([held(A, 5_000), held(A, 90_000), FREE]).states).toEqual([
      held(A, 5_000),
      held(A, 90_000),
      held(A, 5_000),
    ])
  })

  test('is refused beside a tombstone, and where other data is', () => {
    expect(acquire([FREE, dead, FREE]).reply).toEqual({ outcome: 'dead', index: 1 })
    expect(acquire([FREE, FREE, data]).reply).toEqual({ outcome: 'foreign', index: 2 })
    expect(acquire([list, FREE, FREE]).reply).toEqual({ outcome: 'foreign', index: 0 })
    expect(acquire([list, FREE, FREE]).states).toEqual([list, FREE, FREE])
  })
})

describe('release', () => {
  test('ends what is there, and tells each of those', () => {
    const { states, reply, wakes } = release([held(A), FREE, held(B)])
    expect(states).toEqual([FREE, FREE, held(B)])
    expect(reply).toEqual({ results: ['released', 'gone', 'taken'] })
    expect(wakes).toEqual([true, false, false])
  })

  test('leaves a tombstone beside each, also where nothing was', () => {
    const { states } = release([held(A), FREE, held(B)], 60_000)
    expect(states.map(({ tombstones }) => tombstones.get(A))).toEqual([60_000, 60_000, 60_000])
  })

  test('goes on behind other data', () => {
    const { states, reply } = release([list, held(A), FREE])
    expect(states[1]).toEqual(FREE)
    expect(reply).toEqual({ results: ['foreign', 'released', 'gone'] })
  })
})
