/** The notes of requests: a value, whatever their number, at a price that hardly grows with it. */
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import { newPassage } from '../../src/engine/engine.js'
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { MemoryStore } from '../../src/engine/memory/memory-store.js'
import { Notes } from '../../src/engine/model/notes.js'
import type { Operation } from '../../src/engine/operations.js'

const HALF_MS = 30_000

describe('are like a map that is copied with each change', () => {
  const change = fc.record({
    request: fc.nat(7).map(String),
    ms: fc.integer({ min: 1, max: 9 }),
    pass: fc.nat(3),
  })

  test('in any history, old ones included', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60, size: 'max' }), (changes) => {
        const made: (readonly [Notes, Readonly<Record<string, string>>])[] = []
        let [notes, map, nowMs] = [new Notes(), new Map<string, { note: string; endMs: number }>(), 0]
        for (const [i, { request, ms, pass }] of changes.entries()) {
          nowMs += pass
          map = new Map([...map].filter(([, { endMs }]) => endMs > nowMs))
          const note = { note: String(i), endMs: nowMs + ms }
          notes = notes.at(nowMs).with(request, note)
          map.set(request, note)
          made.push([notes, Object.fromEntries([...map].map(([key, value]) => [key, value.note]))])
        }
        for (const [old, expected] of made) {
          expect(Object.fromEntries([...old].map(([key, { note }]) => [key, note]))).toEqual(expected)
          for (const request of '01234567') expect(old.get(request)).toBe(expected[request])
        }
      }),
    )
  })

  test('empty when the last one is due', () => {
    let notes = new Notes()
    for (let i = 0; i < 100; i++) notes = notes.at(i).with(String(i), { note: 'x', endMs: i + 10 })
    expect([notes.at(108).empty, notes.at(109).empty]).toEqual([false, true])
  })
})

describe('the memory engine takes no more for an operation the more there were before', () => {
  const prototype = Map.prototype
  const native = Object.getOwnPropertyDescriptors(prototype)
  let steps = 0

  afterEach(() => {
    Object.defineProperties(prototype, native)
  })

  type Whole = Map<unknown, unknown>
  type Read = (this: Whole) => MapIterator<unknown>

  function replace(name: keyof typeof native, value: unknown): void {
    Object.defineProperty(prototype, name, { ...native[name], value })
  }

  /** Counts all that is put into maps and read out of them one by one: what the time goes to, but the same each time. */
  function count(): void {
    for (const name of ['entries', 'values', Symbol.iterator] as const) {
      const read = native[name].value as Read
      replace(name, function* (this: Whole) {
        for (const item of read.call(this)) {
          steps += 1
          yield item
        }
      })
    }
    const set = native.set.value as (this: Whole, key: unknown, value: unknown) => Whole
    replace('set', function (this: Whole, key: unknown, value: unknown) {
      steps += 1
      return set.call(this, key, value)
    })
  }

  async function stepsOf(
    operations: (i: number) => readonly Operation[] | Promise<readonly Operation[]>,
    { clock, parts }: { readonly clock: ManualClock; readonly parts: readonly number[] },
  ): Promise<readonly number[]> {
    const engine = new MemoryEngine(new MemoryStore(clock))
    const taken: number[] = []
    count()
    for (const [i, part] of parts.entries()) {
      steps = 0
      // What grows with each operation would take minutes.
      for (let j = 0; j < part && steps < 500 * part; j++)
        for (const operation of await operations(i * part + j)) await engine.execute(operation, newPassage())
      taken.push(steps)
    }
    return taken
  }

  const on = (i: number) => ({ name: 'x', request: `c:${String(i)}`, requestMs: 60_000 })
  const KINDS = {
    'a semaphore': (i: number): Operation[] => [
      { op: 'semaphore.acquire', ...on(i), permits: 1, initial: 5 },
      { op: 'semaphore.end', ...on(i), permits: 1 },
    ],
    'a latch': (i: number): Operation[] => [
      i === 0 ? { op: 'latch.set', ...on(-1), count: 1_000_000 } : { op: 'latch.inspect', name: 'x' },
      { op: 'latch.countDown', ...on(i) },
    ],
  }

  test.each(Object.entries(KINDS))('%s, of whose notes none is due', async (_, operations) => {
    const taken = await stepsOf(operations, {
      clock: new ManualClock(),
      parts: Array(5).fill(20_000) as number[],
    })
    const [first = NaN, second = NaN, , , last = NaN] = taken
    expect(first).toBeGreaterThan(20_000)
    expect(first).toBeLessThan(100 * 20_000)
    expect(second / first).toBeLessThan(1.5)
    expect(last / first).toBeLessThan(1.5)
  })

  test.each(Object.entries(KINDS))('%s, whose notes go while others come', async (_, operations) => {
    const clock = new ManualClock()
    const passing = async (i: number): Promise<readonly Operation[]> => {
      // A note for each ten milliseconds: after a minute six thousand of them are there, and no more.
      if (i % 100 === 0) await clock.advance(1_000)
      return operations(i)
    }
    const taken = await stepsOf(passing, { clock, parts: Array(5).fill(6_000) as number[] })
    const [first = NaN] = taken
    for (const part of taken) expect(part / first).toBeLessThan(2)
  })
})

test('a store whose notes are all due has nothing left', async () => {
  const clock = new ManualClock()
  const store = new MemoryStore(clock)
  const engine = new MemoryEngine(store)
  for (let i = 0; i < 100; i++)
    await engine.execute(
      { op: 'semaphore.end', name: 'x', request: `c:${String(i)}`, requestMs: 60_000, permits: 0 },
      newPassage(),
    )
  expect(store.size).toBe(1)
  for (let passed = 0; passed < 90_000; passed += HALF_MS) await clock.advance(HALF_MS)
  expect(store.size).toBe(0)
})
