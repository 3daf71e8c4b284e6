import { afterEach, describe, expect, test, vi } from 'vitest'
import { constantBackoff, exponentialBackoff } from '../../src/index.js'
import { Pauses } from '../../src/lease/backoff.js'

afterEach(() => {
  vi.restoreAllMocks()
})

/** The first pauses of a fresh sequence, with chance as it is told. */
function pauses(policy = exponentialBackoff(), random = 0, count = 12): number[] {
  vi.spyOn(Math, 'random').mockReturnValue(random)
  const sequence = policy.sequence()
  return Array.from({ length: count }, () => sequence.next())
}

describe('exponentialBackoff', () => {
  test('begins with 1 ms, doubles, and stays at 128 ms', () => {
    expect(pauses()).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 128, 128, 128, 128])
  })

  test('adds a random number below the count of pauses so far', () => {
    // 1; 2 + 0; 4 + 1; 10 + 2; 24 + 3; 54 + 4; …
    expect(pauses(exponentialBackoff(), 0.999_999)).toEqual([
      1, 2, 5, 12, 27, 58, 121, 128, 128, 128, 128, 128,
    ])
  })

  test('always stays between these two', () => {
    const least = pauses()
    const most = pauses(exponentialBackoff(), 0.999_999)
    vi.restoreAllMocks()
    for (let i = 0; i < 500; i++) {
      const sequence = exponentialBackoff().sequence()
      const drawn = least.map(() => sequence.next())
      drawn.forEach((ms, k) => {
        expect(ms).toBeGreaterThanOrEqual(least[k] ?? NaN)
        expect(ms).toBeLessThanOrEqual(most[k] ?? NaN)
      })
    }
  })

  test('goes by its options', () => {
    expect(pauses(exponentialBackoff({ initial: 5, factor: 3, max: 100 }), 0, 5)).toEqual([
      5, 15, 45, 100, 100,
    ])
    expect(pauses(exponentialBackoff({ initial: 10, factor: 1.5, max: 40 }), 0, 5)).toEqual([
      10, 15, 23, 35, 40,
    ])
    expect(pauses(exponentialBackoff({ factor: 1, max: 1 }), 0.9, 3)).toEqual([1, 1, 1])
    expect(
      pauses(exponentialBackoff({ initial: undefined, factor: undefined, max: undefined }), 0, 3),
    ).toEqual([1, 2, 4])
  })

  test('each sequence begins anew', () => {
    const policy = exponentialBackoff()
    expect(pauses(policy, 0, 4)).toEqual([1, 2, 4, 8])
    expect(pauses(policy, 0, 4)).toEqual([1, 2, 4, 8])
  })

  test.for([
    [{ initial: 0 }, RangeError],
    [{ initial: 129 }, RangeError],
    [{ initial: '1' }, TypeError],
    [{ factor: 0.5 }, RangeError],
    [{ factor: NaN }, TypeError],
    [{ factor: Infinity }, RangeError],
    [{ factor: '2' }, TypeError],
    [{ max: 0 }, RangeError],
    [{ max: Infinity }, RangeError],
    [{ maximum: 5 }, TypeError],
    [null, TypeError],
  ] as const)('refuses %o', ([options, kind]) => {
    expect(() => exponentialBackoff(options as object)).toThrow(kind)
  })
})

describe('constantBackoff', () => {
  test('is 64 ms, or what is asked for', () => {
    expect(pauses(constantBackoff(), 0.5, 3)).toEqual([64, 64, 64])
    expect(pauses(constantBackoff(7.2), 0.5, 3)).toEqual([8, 8, 8])
  })

  test.for([0, -1, Infinity, NaN, '5', null])('refuses %s', (ms) => {
    expect(() => constantBackoff(ms as number)).toThrow(/ms must be/)
  })
})

describe('the pauses of one call', () => {
  test('ask for a sequence with the first pause, and once; fractions are rounded up', () => {
    const sequence = vi.fn(() => ({ next: () => 1.2 }))
    const mine = new Pauses({ sequence })
    expect(sequence).not.toHaveBeenCalled()
    expect([mine.next(), mine.next()]).toEqual([2, 2])
    expect(sequence).toHaveBeenCalledOnce()
  })

  test('refuse what is no pause, and what is no sequence', () => {
    for (const ms of ['5', undefined, null, NaN])
      expect(() => new Pauses({ sequence: () => ({ next: () => ms as number }) }).next()).toThrow(TypeError)
    for (const ms of [0, -1, Infinity])
      expect(() => new Pauses({ sequence: () => ({ next: () => ms }) }).next()).toThrow(RangeError)
    for (const sequence of [undefined, 5, {}, { next: 5 }])
      expect(() => new Pauses({ sequence: () => sequence as never }).next()).toThrow(/must give an object/)
  })
})
