import { describe, expect, test } from 'vitest'
import * as model from '../../src/engine/model/permits.js'
import { FREE, isEmpty, type KeyState } from '../../src/engine/model/state.js'
import type { PermitsAcquire } from '../../src/engine/operations.js'

const name = 'downloads'
const [A, B, C] = ['a', 'b', 'c'].map((letter) => letter.repeat(32)) as [string, string, string]

/** Client and server agree. */
const at = (ms: number): model.Moment => ({ nowMs: ms, clientMs: ms, serverMs: ms })
const holding = (available: number, out: Readonly<Record<string, number>> = {}): KeyState => ({
  ...FREE,
  value: { kind: 'count', count: available },
  permits: new Map(Object.entries(out)),
})
const acquire = (state: KeyState, terms: Partial<PermitsAcquire> = {}, moment = at(0)) =>
  model.acquire(
    state,
    { op: 'permits.acquire', name, owner: A, total: undefined, leaseMs: 5_000, ...terms },
    moment,
  )
const release = (state: KeyState, owner = A, entombMs = 0, moment = at(0)) =>
  model.release(state, { op: 'permits.release', name, owner, keepMs: 0, entombMs }, moment)
const give = (state: KeyState, ids: readonly string[], all = true, moment = at(0)) =>
  model.give(state, { op: 'permits.give', name, ids, all }, moment)

describe('acquire', () => {
  test('takes what is there, all or none', () => {
    const both = acquire(holding(3), { owner: `${A},${B}` })
    expect(both).toEqual({
      state: holding(1, { [A]: 5_000, [B]: 5_000 }),
      reply: { outcome: 'granted', left: 1, ttlMs: 0 },
      wake: false,
    })
    expect(acquire(holding(1), { owner: `${A},${B}` })).toEqual({
      state: holding(1),
      reply: { outcome: 'busy', available: 1, total: 1, ttlMs: Infinity },
      wake: false,
    })
    expect(acquire(holding(1)).reply).toEqual({ outcome: 'granted', left: 0, ttlMs: 5_000 })
  })

  test('tells a loser when the next one expires, unless it never does', () => {
    expect(acquire(holding(0, { [B]: 4_000, [C]: 2_500 }), {}, at(1_000)).reply).toEqual({
      outcome: 'busy',
      available: 0,
      total: 2,
      ttlMs: 1_500,
    })
    expect(acquire(holding(0, { [B]: model.ENDLESS_MS })).reply).toMatchObject({
      outcome: 'busy',
      ttlMs: Infinity,
    })
  })

  test('takes back as many expired ones as it wants, the oldest first, and says so', () => {
    const { state, reply, wake } = acquire(holding(0, { [B]: 1_000, [C]: 999 }), {}, at(1_000))
    expect(state).toEqual(holding(0, { [A]: 6_000, [B]: 1_000 }))
    expect(reply).toMatchObject({ outcome: 'granted' })
    expect(wake).toEqual({ hint: 'one', payload: '1' })
  })

  test('begins a number once, and counts what is out', () => {
    expect(acquire(FREE).reply).toEqual({ outcome: 'uninitialised' })
    expect(acquire(FREE, { total: 3 })).toMatchObject({
      state: holding(2, { [A]: 5_000 }),
      wake: { payload: '3' },
    })
    const orphans: KeyState = { ...FREE, permits: new Map([[B, 9_000]]) }
    expect(acquire(orphans, { total: 3 }).state).toEqual(holding(1, { [A]: 5_000, [B]: 9_000 }))
  })

  test('may be repeated and never brings an expiry forward', () => {
    const { state } = acquire(holding(1))
    expect(acquire(state, { leaseMs: 1_000 }).state).toEqual(state)
    expect(acquire(state, { leaseMs: 9_000 }).state).toEqual(holding(0, { [A]: 9_000 }))
  })

  test('is refused to an owner that was ended', () => {
    const { state } = release(holding(0, { [A]: 5_000, [B]: 5_000 }), `${A},${B}`, 60_000)
    expect(acquire(state, { owner: `${A},${B}` }).reply).toEqual({ outcome: 'dead' })
    expect(acquire(state, { owner: `${A},${B}` }, at(60_000)).reply).toMatchObject({ outcome: 'granted' })
  })

  test('an expiry counts from the clock that is ahead and comes by the one that is behind', () => {
    const slow: model.Moment = { nowMs: 0, clientMs: 0, serverMs: 60_000 }
    const fast: model.Moment = { nowMs: 0, clientMs: 60_000, serverMs: 0 }
    for (const wrong of [slow, fast]) {
      expect(acquire(holding(1), {}, wrong).state).toEqual(holding(0, { [A]: 65_000 }))
      expect(acquire(holding(0, { [B]: 30_000 }), {}, wrong).reply).toMatchObject({
        outcome: 'busy',
        ttlMs: 30_000,
      })
    }
  })

  test("somebody's data is left alone", () => {
    const data: KeyState = { ...FREE, value: { kind: 'foreign', hash: false } }
    expect(acquire(data, { total: 3 })).toEqual({ state: data, reply: { outcome: 'foreign' }, wake: false })
  })
})

describe('giving back', () => {
  test('counts each permit once', () => {
    const first = release(holding(1, { [A]: 5_000, [B]: 5_000 }), `${A},${B}`)
    expect(first).toEqual({
      state: holding(3),
      reply: { outcome: 'released' },
      wake: { hint: 'one', payload: '2' },
    })
    expect(release(first.state, `${A},${B}`)).toEqual({
      state: holding(3),
      reply: { outcome: 'gone' },
      wake: false,
    })
  })

  test('of one tells what is available, but nothing negative', () => {
    expect(release(holding(4, { [A]: 5_000 })).wake).toEqual({ hint: 'one', payload: '5' })
    expect(release(holding(-4, { [A]: 5_000 })).wake).toEqual({ hint: 'one', payload: '0' })
  })

  test('by ids is all or nothing, or what is out; an expired one is not', () => {
    const state = holding(0, { [A]: 5_000, [B]: 1_000 })
    expect(give(state, [A, B], true, at(1_000))).toEqual({ state, reply: { outcome: 'none' }, wake: false })
    expect(give(state, [A, B], false, at(1_000))).toMatchObject({
      reply: { outcome: 'released', number: 1 },
      wake: { payload: '1' },
    })
    expect(give(state, [C], false).reply).toEqual({ outcome: 'none' })
  })
})

describe('looking after permits', () => {
  const renew = (state: KeyState, owner: string, ttlMs: number, moment = at(0)) =>
    model.renew(state, { owner, ttlMs }, moment)

  test('a renewal raises all of an owner or nothing', () => {
    const state = holding(0, { [A]: 5_000, [B]: 40_000 })
    expect(renew(state, `${A},${B}`, 30_000)).toMatchObject({
      reply: 'renewed',
      state: holding(0, { [A]: 30_000, [B]: 40_000 }),
    })
    expect(renew(state, `${A},${C}`, 30_000)).toMatchObject({ reply: 'gone', state })
    expect(renew(state, A, 30_000, at(5_000))).toMatchObject({ reply: 'gone', state })
  })

  test('an update goes both ways; the rest is told', () => {
    const state = holding(0, { [A]: 5_000 })
    const update = (leaseMs: number, before = state, request = 'r') =>
      model.update(before, { op: 'permits.update', name, id: A, leaseMs, request }, at(1_000))
    const soon = update(1_000).state
    expect(soon.permits).toEqual(new Map([[A, 2_000]]))
    const later = update(9_000, soon, 'another')
    expect(later.state.permits).toEqual(new Map([[A, 10_000]]))
    // A late copy changes nothing.
    expect(update(1_000, later.state)).toEqual({
      state: later.state,
      reply: { outcome: 'updated' },
      wake: false,
    })
    const rest = (id: string, ms: number) => model.rest(state, { op: 'permits.rest', name, id }, at(ms)).reply
    expect(rest(A, 1_000)).toEqual({ outcome: 'held', ttlMs: 4_000 })
    expect(rest(A, 5_000)).toEqual({ outcome: 'gone' })
    expect(rest(B, 0)).toEqual({ outcome: 'gone' })
  })

  test('counting takes back what has expired', () => {
    const count = (state: KeyState) => model.count(state, { op: 'permits.count', name }, at(1_000))
    expect(count(holding(1, { [A]: 1_000, [B]: 1_001 }))).toEqual({
      state: holding(2, { [B]: 1_001 }),
      reply: { outcome: 'counted', available: 2, acquired: 1 },
      wake: { hint: 'one', payload: '2' },
    })
    expect(count(FREE).reply).toEqual({ outcome: 'uninitialised', acquired: 0 })
  })
})

describe('the number', () => {
  const set = (state: KeyState, permits: number, request = 'r') =>
    model.set(state, { op: 'permits.set', name, permits, request }, at(0))
  const add = (state: KeyState, permits: number, request = 'r') =>
    model.add(state, { op: 'permits.add', name, permits, total: undefined, request }, at(0))
  const trySet = (state: KeyState, permits: number, request = 'r') =>
    model.trySet(state, { op: 'permits.try-set', name, permits, request }, at(0))

  test('is the total, whatever is out', () => {
    expect(set(holding(1, { [A]: 5_000 }), 7)).toMatchObject({
      state: { value: { count: 6 } },
      wake: { payload: '7' },
    })
    expect(set(holding(1, { [A]: 5_000 }), 0).state).toMatchObject({ value: { count: -1 } })
    expect(set(holding(1, { [A]: 5_000 }), 2).wake).toBe(false)
    expect(trySet(FREE, 3)).toMatchObject({ state: { value: { count: 3 } }, wake: { payload: '3' } })
    expect(trySet(holding(1), 3).reply).toEqual({ outcome: 'exists' })
    expect(add(holding(1), -3)).toMatchObject({ state: { value: { count: -2 } }, wake: false })
  })

  test('is changed once by each request', () => {
    const once = add(holding(1), 2).state
    expect(add(once, 2)).toEqual({ state: once, reply: { outcome: 'set' }, wake: false })
    expect(set(once, 9)).toEqual({ state: once, reply: { outcome: 'set' }, wake: false })
    const begun = trySet(FREE, 3).state
    expect(trySet(begun, 3).reply).toEqual({ outcome: 'set' })
    const same = set(holding(3), 3).state
    expect(set({ ...same, value: { kind: 'count', count: 8 } }, 3).state.value).toEqual({
      kind: 'count',
      count: 8,
    })
    const refused = trySet(holding(1), 3).state
    expect(trySet({ ...refused, value: undefined }, 3).reply).toEqual({ outcome: 'exists' })
  })

  test('stays within what is counted exactly, with what is out', () => {
    const most = Number.MAX_SAFE_INTEGER
    for (const [state, change] of [
      [holding(most), 1],
      [holding(most - 1, { [A]: 5_000 }), 1],
      [holding(-most), -1],
    ] as const) {
      const { state: after, reply, wake } = add(state, change)
      expect([after.value, reply, wake]).toEqual([state.value, { outcome: 'overflow' }, false])
      expect(add({ ...after, value: { kind: 'count', count: 0 } }, change).reply).toEqual({
        outcome: 'overflow',
      })
    }
    expect(add(holding(most - 2, { [A]: 5_000 }), 1).reply).toEqual({ outcome: 'set' })
    expect(release(holding(most, { [A]: 5_000 })).state).toEqual(holding(most))
    expect(acquire(holding(2 ** 53)).reply).toEqual({ outcome: 'foreign' })
  })

  test('is nothing when it is gone, with nothing out', () => {
    expect(isEmpty({ ...FREE, permits: new Map() })).toBe(true)
    expect(isEmpty({ ...FREE, permits: new Map([[A, 1]]) })).toBe(false)
  })
})
