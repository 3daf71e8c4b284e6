import { describe, expect, test } from 'vitest'
import type { AcquireOptions, ExclusiveLock } from '../../src/index.js'
import type { KindStage } from './world.js'

type Bad = readonly [option: string, value: unknown, error: 'TypeError' | 'RangeError', message: string]

const timesFrom = (option: string, least: 0 | 1, most: number): Bad[] => [
  [option, NaN, 'TypeError', `${option} must be a number, but is NaN`],
  [option, '5', 'TypeError', `${option} must be a number, but is the string "5"`],
  [option, null, 'TypeError', `${option} must be a number, but is null`],
  [option, 5n, 'TypeError', `${option} must be a number, but is 5`],
  [option, {}, 'TypeError', `${option} must be a number, but is an object`],
  [option, -1, 'RangeError', `${option} must be from ${least} to ${most}, but is -1`],
  [option, -Infinity, 'RangeError', `${option} must be from ${least} to ${most}, but is -Infinity`],
  ...(least === 1
    ? [[option, 0, 'RangeError', `${option} must be from 1 to ${most}, but is 0`] as const]
    : []),
  ...(most === Infinity
    ? []
    : [
        [
          option,
          Infinity,
          'RangeError',
          `${option} must be from ${least} to ${most}, but is Infinity`,
        ] as const,
      ]),
]

const LONGEST = Number.MAX_SAFE_INTEGER

const ofAcquiring: readonly Bad[] = [
  ...timesFrom('waitTime', 0, Infinity),
  ...timesFrom('leaseTime', 1, LONGEST),
  ...timesFrom('minHold', 0, LONGEST),
  ...timesFrom('maxHold', 1, Infinity),
  ...timesFrom('pollInterval', 1, LONGEST),
  ['signal', {}, 'TypeError', 'signal must be an AbortSignal, but is an object'],
  ['signal', null, 'TypeError', 'signal must be an AbortSignal, but is null'],
  ['leasetime', 5, 'TypeError', `Unknown key 'leasetime' in acquire options; known are waitTime, leaseTime`],
  ['ttl', 5, 'TypeError', `Unknown key 'ttl' in acquire options`],
]

const ofHoldfast: readonly Bad[] = [
  ...timesFrom('commandTimeout', 1, LONGEST),
  ...timesFrom('fairLockWaitTimeout', 1, LONGEST),
  ...timesFrom('unavailableAfter', 0, Infinity),
  ...timesFrom('maxHold', 1, Infinity),
  ['lockWatchdogTimeout', 29, 'RangeError', `lockWatchdogTimeout must be from 30 to ${LONGEST}, but is 29`],
  ['lockWatchdogTimeout', Infinity, 'RangeError', 'but is Infinity'],
  ['clockDrift', 0.6, 'RangeError', 'clockDrift must be from 0 to 0.5, but is 0.6'],
  ['clockDrift', '1%', 'TypeError', 'clockDrift must be a number, but is the string "1%"'],
  ['keyPrefix', 7, 'TypeError', 'keyPrefix must be a valid string, but is 7'],
  ['keyPrefix', '\udc00', 'TypeError', 'keyPrefix must be a valid string'],
  ['nameMapper', 'x', 'TypeError', 'nameMapper must be a function, but is the string "x"'],
  ['subscriber', true, 'TypeError', `subscriber must be 'auto', 'off' or a client, but is true`],
  ['defaults', { waitTime: -1 }, 'RangeError', 'defaults.waitTime must be from 0 to Infinity, but is -1'],
  ['defaults', { leaseTime: 0 }, 'RangeError', 'defaults.leaseTime must be from 1'],
  ['defaults', null, 'TypeError', 'defaults must be an object, but are null'],
  ['defaults', { maxHold: 5 }, 'TypeError', `Unknown key 'maxHold' in defaults`],
  ['watchdogTimeout', 5, 'TypeError', `Unknown key 'watchdogTimeout' in Holdfast options`],
]

/** Arguments that are refused, before anything is sent. */
export function badOptions({ stage, kind, lock }: KindStage): void {
  const refusals = async (
    call: (lock: ExclusiveLock, options: AcquireOptions) => Promise<unknown>,
  ): Promise<void> => {
    const mine = await lock(stage.name())
    const before = await stage.world.operations()
    for (const [option, value, error, message] of ofAcquiring) {
      const refusal = call(mine, { [option]: value })
      const words = expect.stringContaining(message) as string
      await expect(refusal, `${option}: ${String(value)}`).rejects.toMatchObject({
        name: error,
        message: words,
      })
    }
    for (const options of [null, 5, 'x', []])
      await expect(call(mine, options as unknown as AcquireOptions)).rejects.toThrow(TypeError)
    expect(await stage.world.operations()).toBe(before)
  }

  describe('bad options are refused with option, bound and value, before any operation, by', () => {
    test('acquire', () => refusals((mine, options) => mine.acquire(options)))
    test('tryAcquire', () => refusals((mine, options) => mine.tryAcquire(options)))
    test('using', () => refusals((mine, options) => mine.using(options, () => 0)))
    test('tryUsing', () => refusals((mine, options) => mine.tryUsing(options, () => 0)))

    test.for(ofHoldfast)('the Holdfast: %s = %s', async ([option, value, error, message]) => {
      const words = expect.stringContaining(message) as string
      const making = stage.world.holdfast({ [option]: value })
      await expect(making).rejects.toMatchObject({ name: error, message: words })
    })
  })

  test('a minHold that is longer than the leaseTime is refused', async () => {
    const mine = await lock(stage.name(), { defaults: { leaseTime: 100 } })
    const message = 'minHold must not exceed leaseTime (100), but is 101'
    await expect(mine.acquire({ minHold: 101 })).rejects.toThrow(message)
    await expect(mine.acquire({ minHold: 101, leaseTime: 100 })).rejects.toThrow(RangeError)
  })

  test('a callback that is none is refused, before any operation', async () => {
    const mine = await lock(stage.name())
    const before = await stage.world.operations()
    const none = 'x' as unknown as () => void
    await expect(mine.using(none)).rejects.toThrow('The callback must be a function')
    await expect(mine.using({}, none)).rejects.toThrow(TypeError)
    await expect(mine.tryUsing({}, undefined as unknown as () => void)).rejects.toThrow(TypeError)
    expect(await stage.world.operations()).toBe(before)
  })

  test('extend refuses bad times, and the lease goes on', async () => {
    const lease = await (await lock(stage.name())).acquire()
    const before = await stage.world.operations()
    for (const ms of [0, -1, NaN, Infinity, '5', undefined, null])
      await expect(lease.extend(ms as number)).rejects.toThrow(/ms must be/)
    expect(await stage.world.operations()).toBe(before)
    expect(lease.held).toBe(true)
  })

  test('the longest times are taken', async () => {
    const name = stage.name()
    const mine = await lock(name, { maxHold: LONGEST, unavailableAfter: Infinity })
    const long = { waitTime: LONGEST, leaseTime: 10 ** 12, maxHold: LONGEST, pollInterval: LONGEST }
    const lease = await mine.acquire(long)
    expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(10 ** 12 - 60_000)
    const waiter = mine.acquire(long)
    await stage.world.pass(20)
    expect(lease.held).toBe(true)
    await lease.release()
    await stage.world.settled(waiter)
  })

  stage.slow('fractions are rounded up', async () => {
    const name = stage.name()
    const mine = await lock(name)
    const lease = await mine.acquire({ leaseTime: 59_999.2 })
    expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(50_000)
    // Readers do not wait for each other.
    if (kind !== 'read')
      await expect(stage.world.settled(mine.acquire({ waitTime: 249.5 }))).rejects.toThrow(
        'after waiting 250 ms',
      )
    await lease.extend(69_999.5)
    expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(60_000)
  })
}
