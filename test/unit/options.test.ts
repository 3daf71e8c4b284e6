import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.js'
import { checkName, describe as inWords, duration, refuseUnknown } from '../../src/option-checks.js'
import { resolveAcquireOptions, resolveHoldfastOptions } from '../../src/options.js'

describe('the settings of a Holdfast', () => {
  test('have defaults', () => {
    const settings = resolveHoldfastOptions()
    expect({ ...settings, nameMapper: undefined }).toEqual({
      keyPrefix: '',
      nameMapper: undefined,
      lockWatchdogTimeout: 30_000,
      fairLockWaitTimeout: 300_000,
      commandTimeout: 3_000,
      unavailableAfter: 10_000,
      maxHold: Infinity,
      clockDrift: 0.01,
      replication: { acks: 'any', timeoutMs: 1_000, explicit: false },
      shardedPubSub: 'auto',
      subscriber: 'auto',
      waitTime: undefined,
      leaseTime: undefined,
      clock: systemClock,
    })
    expect(settings.nameMapper('a name')).toBe('a name')
    expect(Object.isFrozen(settings)).toBe(true)
  })

  test('are not those of the object that was given, when it changes later', () => {
    const options = { commandTimeout: 50 }
    const settings = resolveHoldfastOptions(options)
    options.commandTimeout = 70
    expect(settings.commandTimeout).toBe(50)
  })

  test('undefined means omitted', () => {
    const nothing = {
      keyPrefix: undefined,
      nameMapper: undefined,
      lockWatchdogTimeout: undefined,
      fairLockWaitTimeout: undefined,
      commandTimeout: undefined,
      unavailableAfter: undefined,
      maxHold: undefined,
      clockDrift: undefined,
      subscriber: undefined,
      defaults: undefined,
      clock: undefined,
    }
    expect(resolveHoldfastOptions(nothing)).toEqual(resolveHoldfastOptions())
  })

  test.each([30, 31.5, Number.MAX_SAFE_INTEGER])(
    'a watchdog time-out of %d is taken',
    (lockWatchdogTimeout) => {
      expect(resolveHoldfastOptions({ lockWatchdogTimeout }).lockWatchdogTimeout).toBe(
        Math.ceil(lockWatchdogTimeout),
      )
    },
  )
})

describe('the options of a call', () => {
  const settings = resolveHoldfastOptions()

  test('have defaults, others for trying', () => {
    const rest = {
      leaseMs: undefined,
      signal: undefined,
      within: undefined,
      minHoldMs: 0,
      maxHoldMs: Infinity,
      pollMs: undefined,
    }
    for (const options of [undefined, {}]) {
      expect(resolveAcquireOptions(options, settings, false)).toEqual({ ...rest, waitTimeMs: Infinity })
      expect(resolveAcquireOptions(options, settings, true)).toEqual({ ...rest, waitTimeMs: 0 })
    }
  })

  test('come before the defaults of the Holdfast, and those before ours', () => {
    const mine = resolveHoldfastOptions({ defaults: { waitTime: 5, leaseTime: 7 }, maxHold: 9 })
    expect(resolveAcquireOptions(undefined, mine, false)).toMatchObject({
      waitTimeMs: 5,
      leaseMs: 7,
      maxHoldMs: 9,
    })
    expect(resolveAcquireOptions(undefined, mine, true)).toMatchObject({ waitTimeMs: 0, leaseMs: 7 })
    const options = { waitTime: 1, leaseTime: 2, maxHold: 3 }
    expect(resolveAcquireOptions(options, mine, true)).toMatchObject({
      waitTimeMs: 1,
      leaseMs: 2,
      maxHoldMs: 3,
    })
  })

  test('minHold may be as long as the lease, from wherever that comes', () => {
    const mine = resolveHoldfastOptions({ defaults: { leaseTime: 7 } })
    expect(resolveAcquireOptions({ minHold: 7 }, mine, false)).toMatchObject({ minHoldMs: 7 })
    expect(() => resolveAcquireOptions({ minHold: 8 }, mine, false)).toThrow(RangeError)
    expect(resolveAcquireOptions({ minHold: 8, leaseTime: 8 }, mine, false)).toMatchObject({ leaseMs: 8 })
    expect(resolveAcquireOptions({ minHold: 8 }, settings, false)).toMatchObject({ leaseMs: undefined })
  })

  test('a signal is known by its shape', () => {
    const listen = () => undefined
    const shape = { aborted: false, addEventListener: listen, removeEventListener: listen }
    const options = { signal: shape as unknown as AbortSignal }
    expect(resolveAcquireOptions(options, settings, false).signal).toBe(shape)
  })
})

describe('times', () => {
  const range = { min: 1, max: Number.MAX_SAFE_INTEGER }

  test('are taken inside their range and rounded up', () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: Number.MAX_SAFE_INTEGER, noNaN: true }), (ms) => {
        const taken = duration(ms, 'ms', range) ?? NaN
        expect(Number.isInteger(taken)).toBe(true)
        expect(taken).toBeGreaterThanOrEqual(ms)
        expect(taken - ms).toBeLessThan(1)
      }),
    )
  })

  test('are refused outside of it, with option, bound and value', () => {
    const outside = fc.oneof(
      fc.double({ max: 0.999, noNaN: true }),
      fc.constant(Infinity),
      fc.double({ min: 2 ** 54, noNaN: true }),
    )
    fc.assert(
      fc.property(outside, (ms) => {
        expect(() => duration(ms, 'the time', range)).toThrow(
          `the time must be from 1 to 9007199254740991, but is ${String(ms)}`,
        )
      }),
    )
  })

  test('are refused when they are no numbers', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.boolean(), fc.constant(null), fc.object(), fc.bigInt()),
        (value) => {
          expect(() => duration(value as unknown as number, 'the time', range)).toThrow(TypeError)
        },
      ),
    )
  })
})

describe('names', () => {
  test('are good when they are text of 1 to 1024 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 1_200 }), (name) => {
        if (Buffer.byteLength(name) <= 1_024) expect(checkName(name)).toBe(name)
        else expect(() => checkName(name)).toThrow(RangeError)
      }),
    )
  })

  test('with a lone surrogate are not', () => {
    const text = fc.string({ maxLength: 5 })
    fc.assert(
      fc.property(text, fc.integer({ min: 0xd800, max: 0xdfff }), text, (before, unit, after) => {
        expect(() => checkName(before + String.fromCharCode(unit) + after)).toThrow(/lone surrogate/)
      }),
    )
  })
})

test('unknown keys are refused, those of the prototype are none', () => {
  const known = new Set(['a', 'b'])
  expect(() => refuseUnknown({ a: 1, c: 2 }, known, 'options')).toThrow(
    "Unknown key 'c' in options; known are a, b",
  )
  expect(() => refuseUnknown(Object.create({ c: 2 }) as object, known, 'options')).not.toThrow()
  for (const value of [null, [], 'a', 5])
    expect(() => refuseUnknown(value as object, known, 'options')).toThrow(/options must be an object/)
})

test('values are described in a few words', () => {
  const values = [null, undefined, 'a "b"', 5, true, 7n, [], {}, () => 0, Symbol('x')]
  expect(values.map(inWords)).toEqual([
    'null',
    'undefined',
    String.raw`the string "a \"b\""`,
    '5',
    'true',
    '7',
    'an array',
    'an object',
    'a function',
    'a symbol',
  ])
})
