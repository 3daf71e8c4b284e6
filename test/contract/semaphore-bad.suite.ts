import { expect, test } from 'vitest'
import type { Semaphore, WaitOptions } from '../../src/index.js'
import type { Stage } from './world.js'

const MOST = Number.MAX_SAFE_INTEGER
const work = (): number => 0

/** Numbers, options and arguments of a semaphore that are refused, before anything is sent. */
export function badPermits(stage: Stage): void {
  badNumbers(stage)
  badOrders(stage)
  tooMany(stage)
}

function badNumbers(stage: Stage): void {
  const WRONG = [
    [0, RangeError, 'permits must be a whole number from 1 to 9007199254740991, but is 0'],
    [-1, RangeError, 'but is -1'],
    [1.5, RangeError, 'but is 1.5'],
    [MOST + 1, RangeError, 'but is 9007199254740992'],
    [Infinity, RangeError, 'but is Infinity'],
    [NaN, TypeError, 'permits must be a number, but is NaN'],
    ['2', TypeError, 'permits must be a number, but is the string "2"'],
    [null, TypeError, 'permits must be a number, but is null'],
    [[2], TypeError, 'permits must be a number, but is an array'],
    [2n, TypeError, 'permits must be a number, but is 2'],
  ] as const

  test.each(WRONG)('%s permits are refused before any I/O', async (value, kind, message) => {
    const holdfast = await stage.world.holdfast()
    const semaphore = holdfast.semaphore(stage.name(), { permits: 1 })
    const permits = value as number
    const before = await stage.world.operations()
    for (const call of [
      () => semaphore.acquire(permits),
      () => semaphore.tryAcquire(permits),
      () => semaphore.release(permits),
      () => semaphore.releaseIfExists(permits),
    ]) {
      await expect(call()).rejects.toThrow(message)
      await expect(call()).rejects.toBeInstanceOf(kind)
    }
    expect(() => holdfast.semaphore('x', { permits })).toThrow(message)
    expect(await stage.world.operations()).toBe(before)
  })

  test('what may be zero or negative, and what else is wrong', async () => {
    const holdfast = await stage.world.holdfast()
    const semaphore = holdfast.semaphore(stage.name())
    const before = await stage.world.operations()
    await expect(semaphore.add(0)).rejects.toThrow('permits must be a whole number other than 0, but is 0')
    await expect(semaphore.add(0.5)).rejects.toThrow('permits must be a whole number from -9007199254740991')
    await expect(semaphore.trySet(-1)).rejects.toThrow('permits must be a whole number from 0 to')
    await expect(semaphore.trySet(1, { ttl: 0 })).rejects.toThrow('ttl must be from 1 to')
    await expect(semaphore.trySet(1, { TTL: 5 } as never)).rejects.toThrow(
      `Unknown key 'TTL' in trySet options`,
    )
    await expect(semaphore.acquire(1, { waitTime: -1 })).rejects.toThrow('waitTime must be from 0')
    await expect(semaphore.acquire(1, { leaseTime: 5 } as WaitOptions)).rejects.toThrow(
      `Unknown key 'leaseTime' in wait options; known are waitTime, signal, pollInterval`,
    )
    await expect(semaphore.using(1, {}, 'x' as never)).rejects.toThrow('The callback must be a function')
    await expect(semaphore.tryAcquire(1, null as never)).rejects.toThrow('wait options must be an object')
    expect(() => holdfast.semaphore('x', { permit: 1 } as never)).toThrow(
      `Unknown key 'permit' in semaphore options`,
    )
    expect(() => holdfast.semaphore('')).toThrow(RangeError)
    expect(await stage.world.operations()).toBe(before)
  })
}

/** A call that the types do not allow. */
function calling(semaphore: Semaphore, name: keyof Semaphore, given: readonly unknown[]): Promise<unknown> {
  const method = Reflect.get(semaphore, name) as (...given: readonly unknown[]) => Promise<unknown>
  return method.apply(semaphore, [...given])
}

function badOrders(stage: Stage): void {
  const WRONG: readonly (readonly [words: string, given: readonly unknown[]])[] = [
    ['in this order, but here are an object, 3', [{ waitTime: 5 }, 3]],
    ['in this order, but here are an object, an object', [{}, {}]],
    ['in this order, but here are 1, an object, 5', [1, {}, 5]],
    ['permits must be a number, but is an array', [[2]]],
    ['permits must be a number, but is null', [null, {}]],
    ['wait options must be an object, but are 4', [3, 4]],
    ['wait options must be an object, but are null', [3, null]],
  ]

  test.each(WRONG)('arguments in a wrong order are refused before any I/O: %s', async (words, given) => {
    const semaphore = (await stage.world.holdfast()).semaphore(stage.name(), { permits: 3 })
    const before = await stage.world.operations()
    for (const [name, args] of [
      ['acquire', given],
      ['tryAcquire', given],
      ['using', [...given, work]],
      ['tryUsing', [...given, work]],
    ] as const) {
      const call = calling(semaphore, name, args)
      await expect(call, name).rejects.toThrow(words)
      await expect(call, name).rejects.toBeInstanceOf(TypeError)
    }
    expect(await stage.world.operations()).toBe(before)
  })

  test.each([[[work, 3]], [[work, {}]], [[3, work, {}]], [[]]])(
    'a callback that does not come last is refused before any I/O',
    async (given) => {
      const semaphore = (await stage.world.holdfast()).semaphore(stage.name(), { permits: 3 })
      const before = await stage.world.operations()
      for (const name of ['using', 'tryUsing'] as const) {
        const call = calling(semaphore, name, given)
        await expect(call).rejects.toThrow('The callback must be a function and come last, but there is')
      }
      expect(await stage.world.operations()).toBe(before)
    },
  )
}

function tooMany(stage: Stage): void {
  test('more permits than the object knows of are refused before any I/O, not waited for', async () => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast()
    const [semaphore, open] = [holdfast.semaphore(name, { permits: 3 }), holdfast.semaphore(name)]
    const before = await stage.world.operations()
    for (const call of [
      () => semaphore.acquire(4),
      () => semaphore.tryAcquire(4),
      () => semaphore.using(4, work),
      () => semaphore.tryUsing(4, { waitTime: 5 }, work),
    ]) {
      await expect(call()).rejects.toThrow(`permits must not be more than the semaphore's own (3), but is 4`)
      await expect(call()).rejects.toBeInstanceOf(RangeError)
    }
    expect(await stage.world.operations()).toBe(before)
    // Without the option nobody knows what the number may come to.
    await (await semaphore.acquire(3)).release()
    expect(await open.tryAcquire(4)).toBeNull()
    const waiter = open.acquire(4)
    await semaphore.add(1)
    expect(await stage.world.settled(waiter)).toMatchObject({ permits: 4 })
  })
}
