import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { PermitSemaphore } from '../../src/index.js'
import type { Semaphores } from './permits.suite.js'
import type { Stage } from './world.js'

type Bad = readonly [value: unknown, error: 'TypeError' | 'RangeError']

const NO_NUMBERS: readonly Bad[] = [
  [NaN, 'TypeError'],
  ['1', 'TypeError'],
  [null, 'TypeError'],
  [1n, 'TypeError'],
  [1.5, 'RangeError'],
  [2 ** 53, 'RangeError'],
  [Infinity, 'RangeError'],
]
const NOT_POSITIVE: readonly Bad[] = [...NO_NUMBERS, [0, 'RangeError'], [-1, 'RangeError']]

const NO_IDS: readonly Bad[] = [
  [null, 'TypeError'],
  [undefined, 'TypeError'],
  [7, 'TypeError'],
  ['', 'RangeError'],
  ['ab', 'RangeError'],
  ['g'.repeat(32), 'RangeError'],
  ['a'.repeat(33), 'RangeError'],
  [`${'a'.repeat(32)}\n`, 'RangeError'],
]
const ID = 'a'.repeat(32)
// eslint-disable-next-line no-sparse-arrays
const HOLES: unknown = [, ,]
const NO_LISTS: readonly Bad[] = [
  [null, 'TypeError'],
  [HOLES, 'TypeError'],
  [undefined, 'TypeError'],
  [ID, 'TypeError'],
  [[], 'RangeError'],
  [[ID, ID], 'RangeError'],
  [[ID, ID.toUpperCase()], 'RangeError'],
  [[ID, 'x'], 'RangeError'],
  [[7], 'TypeError'],
  [Array.from({ length: 1_001 }, (_, i) => i.toString(16).padStart(32, '0')), 'RangeError'],
]
const NO_OPTIONS: readonly Bad[] = [
  [null, 'TypeError'],
  [{ leaseTime: null }, 'TypeError'],
  [{ signal: null }, 'TypeError'],
  [{ within: {} }, 'TypeError'],
  [{ minHold: 5 }, 'TypeError'],
  [{ leasetime: 5 }, 'TypeError'],
  [{ leaseTime: 0 }, 'RangeError'],
  [{ waitTime: -1 }, 'RangeError'],
  [[], 'TypeError'],
]

type Call = (semaphore: PermitSemaphore, value: never) => Promise<unknown>

const CALLS: readonly (readonly [what: string, call: Call, bad: readonly Bad[]])[] = [
  ['acquire', (s, value) => s.acquire(value), [...NOT_POSITIVE, [1_001, 'RangeError'], ...NO_OPTIONS]],
  ['tryAcquire', (s, value) => s.tryAcquire(value), [...NOT_POSITIVE, [1_001, 'RangeError']]],
  ['acquire with options', (s, value) => s.acquire(1, value), NO_OPTIONS],
  ['using', (s, value) => s.using(value, () => 1), [...NOT_POSITIVE, ...NO_OPTIONS]],
  ['tryUsing', (s, value) => s.tryUsing(1, value, () => 1), NO_OPTIONS],
  [
    'using without work',
    (s, value) => s.using(value),
    [
      [1, 'TypeError'],
      [undefined, 'TypeError'],
    ],
  ],
  ['release', (s, value) => s.release(value), NO_IDS],
  ['remainingTime', (s, value) => s.remainingTime(value), NO_IDS],
  ['updateLeaseTime', (s, value) => s.updateLeaseTime(value, 5), NO_IDS],
  [
    'updateLeaseTime by',
    (s, value) => s.updateLeaseTime(ID, value),
    [
      [undefined, 'TypeError'],
      [null, 'TypeError'],
      ['5', 'TypeError'],
      [0, 'RangeError'],
      [-1, 'RangeError'],
      [Infinity, 'RangeError'],
    ],
  ],
  ['releaseAll', (s, value) => s.releaseAll(value), NO_LISTS],
  ['tryRelease', (s, value) => s.tryRelease(value), NO_LISTS],
  ['trySet', (s, value) => s.trySet(value), [...NO_NUMBERS, [undefined, 'TypeError'], [-1, 'RangeError']]],
  ['set', (s, value) => s.set(value), [...NO_NUMBERS, [undefined, 'TypeError'], [-1, 'RangeError']]],
  ['add', (s, value) => s.add(value), [...NO_NUMBERS, [undefined, 'TypeError'], [0, 'RangeError']]],
]

/** What is refused before any command, and what is in the way. */
export function badPermits(stage: Stage, semaphore: Semaphores): void {
  describe('bad input', () => {
    test.for(CALLS)('%s refuses it before any command', async ([, call, bad]) => {
      const mine = await semaphore(stage.name(), { permits: 3 })
      const before = await stage.world.operations()
      for (const [value, name] of bad)
        await expect(call(mine, value as never), inspect(value)).rejects.toMatchObject({ name })
      expect(await stage.world.operations()).toBe(before)
    })

    test('as does the making of one', async () => {
      const holdfast = await stage.world.holdfast()
      for (const [value, name] of NOT_POSITIVE)
        expect(() => holdfast.permitSemaphore('x', { permits: value as never })).toThrow(
          expect.objectContaining({ name }) as Error,
        )
      expect(() => holdfast.permitSemaphore('')).toThrow(RangeError)
      expect(() => holdfast.permitSemaphore('x', { permit: 3 } as never)).toThrow(TypeError)
      expect(() => holdfast.permitSemaphore('x', 3 as never)).toThrow(TypeError)
    })
  })

  test("somebody's data under the name is told and left alone", async () => {
    const mine = await semaphore(stage.name(), { permits: 3 })
    await stage.world.storeData(mine.name, 'list')
    const before = await stage.world.read(mine.name)
    for (const call of [
      () => mine.acquire(),
      () => mine.tryAcquire({ waitTime: 60_000 }),
      () => mine.available(),
      () => mine.total(),
      () => mine.acquired(),
      () => mine.trySet(1),
      () => mine.set(1),
      () => mine.add(1),
      () => mine.release(ID),
      () => mine.tryRelease([ID]),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'HOLDFAST_WRONG_TYPE', key: mine.name })
    expect(await stage.world.read(mine.name)).toEqual(before)
  })
}
