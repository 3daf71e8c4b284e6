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

test('set once; deleted for everybody', () => {
  const made = set(FREE, 2)
  expect([made.reply, made.wake]).toEqual([{ outcome: 'set' }, { hint: 'all', payload: '1' }])
  expect(set(made.state, 5, 'r8').reply).toEqual({ outcome: 'kept' })
  const remove = (state: KeyState) => latch.remove(state, { op: 'latch.delete', ...on('r7') }, 0)
  expect(remove(made.state)).toMatchObject({
    reply: { outcome: 'deleted' },
    wake: { hint: 'all', payload: '1' },
  })
  expect(remove(remove(made.state).state).reply).toEqual({ outcome: 'deleted' })
  expect(remove(FREE)).toMatchObject({ reply: { outcome: 'missing' }, wake: false })
})
