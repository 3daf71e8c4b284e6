import { describe, expect, test } from 'vitest'
import * as latch from '../../src/engine/model/latch.js'
import { FREE, type KeyState } from '../../src/engine/model/state.js'

const on = (request: string) => ({ name: 'x', request, requestMs: 60_000 })
const shut = (count: number): KeyState => ({
  value: { kind: 'count', count },
  expiresAtMs: Infinity,
  tombstones: new Map(),
})
const countDown = (state: KeyState, request = 'r1') =>
  latch.countDown(state, { op: 'latch.countDown', ...on(request) }, 0)
const cancel = (state: KeyState, request = 'r1') =>
  latch.cancel(state, { op: 'latch.cancel', ...on(request) }, 0)
const set = (state: KeyState, count: number, request = 'r9') =>
  latch.set(state, { op: 'latch.set', ...on(request), count }, 0)
const countOf = ({ value }: KeyState) => (value?.kind === 'count' ? value.count : undefined)

describe('countDown', () => {
  test('counts, and opens at zero for everybody', () => {
    const first = countDown(shut(2))
    expect([countOf(first.state), first.reply, first.wake]).toEqual([
      1,
      { outcome: 'counted', left: 1 },
      false,
    ])
    const last = countDown(first.state, 'r2')
    expect([countOf(last.state), last.reply, last.wake]).toEqual([
      undefined,
      { outcome: 'counted', left: 0 },
      { hint: 'one', payload: '0' },
    ])
  })

  test('a copy counts nothing, and does not touch the next round', () => {
    const once = countDown(shut(2)).state
    expect(countDown(once)).toEqual({ state: once, reply: { outcome: 'counted', left: 1 }, wake: false })
    const anew = set(countDown(shut(1)).state, 3).state
    expect(countOf(countDown(anew).state)).toBe(3)
  })

  test('of an open latch tells nothing', () => {
    for (const state of [FREE, shut(0), shut(-2)]) expect(countDown(state).wake).toBe(false)
  })
})

describe('cancel', () => {
  test('takes back once what was counted', () => {
    const back = cancel(countDown(shut(3)).state)
    expect([countOf(back.state), back.reply]).toEqual([3, { outcome: 'undone' }])
    expect(countOf(cancel(back.state).state)).toBe(3)
    expect(countDown(back.state).reply).toEqual({ outcome: 'dead' })
  })

  test('does not shut a latch that is open', () => {
    expect(countOf(cancel(countDown(shut(1)).state).state)).toBeUndefined()
    const opened = countDown(countDown(shut(2)).state, 'r2').state
    expect(countOf(cancel(opened).state)).toBeUndefined()
  })
})

describe('cancel after the round is over', () => {
  const remove = (state: KeyState) => latch.remove(state, { op: 'latch.delete', ...on('r7') }, 0).state
  /** As a peer does it, that knows no rounds. */
  const setByPeer = (state: KeyState, count: number): KeyState => ({
    ...state,
    ...shut(count),
    ...kept(state),
  })
  const kept = ({ requests, round }: KeyState) => ({
    ...(requests === undefined ? {} : { requests }),
    ...(round === undefined ? {} : { round }),
  })

  test.each([1, 2, 9])('leaves the next round alone, set to %i', (count) => {
    const counted = countDown(set(FREE, 3).state).state
    const opened = countDown(countDown(counted, 'r2').state, 'r3').state
    for (const open of [opened, remove(counted)]) {
      expect(countOf(cancel(set(open, count, 'r8').state).state)).toBe(count)
      expect(countOf(cancel(setByPeer(open, count)).state)).toBe(count)
    }
  })

  test('leaves a round alone that a peer has begun after a peer ended the one before, with a higher count', () => {
    const counted = countDown(shut(3)).state
    expect(countOf(cancel(setByPeer(counted, 3)).state)).toBe(3)
  })

  test('undoes every count-down of the round, in any order', () => {
    const twice = countDown(countDown(set(FREE, 5).state).state, 'r2').state
    for (const [first, second] of [
      ['r1', 'r2'],
      ['r2', 'r1'],
    ] as const)
      expect(countOf(cancel(cancel(twice, first).state, second).state)).toBe(5)
  })

  test('what is known of the round goes after a while, and undoing goes on', () => {
    const began = set(FREE, 5).state
    const later = 59_999
    const counted = latch.countDown(began, { op: 'latch.countDown', ...on('r1') }, later).state
    const back = latch.cancel(counted, { op: 'latch.cancel', ...on('r1') }, later + 50_000)
    expect([countOf(back.state), back.reply]).toEqual([5, { outcome: 'undone' }])
  })
})

test('a count of zero leaves nothing, and the next round can be set', () => {
  for (const open of [FREE, shut(0), shut(-2)]) {
    const zero = set(open, 0)
    expect([countOf(zero.state), zero.reply, zero.wake]).toEqual([undefined, { outcome: 'set' }, false])
    expect(set(zero.state, 4, 'r8')).toMatchObject({
      reply: { outcome: 'set' },
      state: { value: { count: 4 } },
    })
    expect(countOf(set(open, 4).state)).toBe(4)
  }
  expect(set(shut(2), 0).reply).toEqual({ outcome: 'kept' })
})

test('set once; deleted for everybody', () => {
  const made = set(FREE, 2)
  expect([made.reply, made.wake]).toEqual([{ outcome: 'set' }, { hint: 'all', payload: '1' }])
  expect(set(made.state, 5, 'r8').reply).toEqual({ outcome: 'kept' })
  const remove = (state: KeyState) => latch.remove(state, { op: 'latch.delete', ...on('r7') }, 0)
  expect(remove(made.state)).toMatchObject({
    reply: { outcome: 'deleted' },
    wake: { hint: 'one', payload: '0' },
  })
  expect(remove(remove(made.state).state).reply).toEqual({ outcome: 'deleted' })
  expect(remove(FREE)).toMatchObject({ reply: { outcome: 'missing' }, wake: false })
})
