import { describe, expect, test } from 'vitest'
import type { CountDownLatch, WaitOptions } from '../../src/index.js'
import { hear } from './hear.js'
import { Watched } from './together.js'
import type { Stage } from './world.js'

const IDLE = { held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 }

/** All that the latch promises. */
export function latchSuite(stage: Stage): void {
  describe('CountDownLatch', () => {
    counting(stage)
    waitingAtLatch(stage)
    ending(stage)
    badCounts(stage)
    otherData(stage)
    observingLatch(stage)
    stage.slowTests()
  })
}

/** A latch on a Holdfast of its own. */
async function latchOf(stage: Stage, name: string): Promise<CountDownLatch> {
  return (await stage.world.holdfast()).countDownLatch(name)
}

function counting(stage: Stage): void {
  test('is set once, counted down, and gone at zero', async () => {
    const name = stage.name()
    const [one, other] = [await latchOf(stage, name), await latchOf(stage, name)]
    expect(one.name).toBe(name)
    expect(await one.trySetCount(2)).toBe(true)
    expect(await other.trySetCount(5)).toBe(false)
    expect(await stage.world.read(name)).toEqual({ value: '2', ttlMs: -1 })
    expect(await other.countDown()).toBe(1)
    expect(await one.getCount()).toBe(1)
    expect(await one.countDown()).toBe(0)
    expect(await stage.world.read(name)).toBeUndefined()
    expect(await other.trySetCount(5)).toBe(true)
  })

  test('an open one stays open', async () => {
    const name = stage.name()
    const latch = await latchOf(stage, name)
    expect(await latch.getCount()).toBe(0)
    expect(await latch.countDown()).toBe(0)
    expect(await stage.world.read(name)).toBeUndefined()
  })

  test('a count of zero is open, and does not keep the next one from being set', async () => {
    const name = stage.name()
    const latch = await latchOf(stage, name)
    expect(await latch.trySetCount(0)).toBe(true)
    expect(await stage.world.read(name)).toBeUndefined()
    expect(await stage.world.settled(latch.tryWait())).toBe(true)
    expect(await latch.countDown()).toBe(0)
    expect(await latch.getCount()).toBe(0)
    expect(await latch.trySetCount(2)).toBe(true)
    expect(await latch.trySetCount(0)).toBe(false)
    expect(await latch.getCount()).toBe(2)
  })

  test('is deleted once', async () => {
    const latch = await latchOf(stage, stage.name())
    await latch.trySetCount(3)
    expect(await latch.delete()).toBe(true)
    expect(await latch.delete()).toBe(false)
    expect(await latch.getCount()).toBe(0)
  })

  test('many count down at once, each once', async () => {
    const name = stage.name()
    const all = await Promise.all([1, 2, 3].map(() => latchOf(stage, name)))
    await all[0]?.trySetCount(30)
    const left = await Promise.all(
      all.flatMap((latch) => Array.from({ length: 10 }, () => latch.countDown())),
    )
    expect([...left].sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, i) => i))
  })
}

function waitingAtLatch(stage: Stage): void {
  test('a latch that is open, or was never set, lets everybody through at once', async () => {
    const latch = await latchOf(stage, stage.name())
    await stage.world.settled(latch.wait())
    expect(await stage.world.settled(latch.tryWait())).toBe(true)
  })

  test('all waiters of all processes are told', async () => {
    const name = stage.name()
    const [one, other] = [await latchOf(stage, name), await latchOf(stage, name)]
    await one.trySetCount(1)
    const waits = [one, other].flatMap((latch) => Array.from({ length: 5 }, () => new Watched(latch.wait())))
    await stage.world.pass(50)
    expect(waits.some(({ state }) => state !== 'pending')).toBe(false)
    await one.countDown()
    await stage.world.settled(Promise.all(waits.map(({ promise }) => promise)))
  })

  test('deleting lets them go', async () => {
    const name = stage.name()
    const [one, other] = [await latchOf(stage, name), await latchOf(stage, name)]
    await one.trySetCount(9)
    const waits = [one.wait(), other.wait(), other.tryWait({ waitTime: 60_000 })]
    await stage.world.pass(50)
    await other.delete()
    expect(await stage.world.settled(Promise.all(waits))).toEqual([undefined, undefined, true])
  })

  test('waitTime ends the waiting', async () => {
    const name = stage.name()
    const latch = await latchOf(stage, name)
    await latch.trySetCount(2)
    expect(await stage.world.settled(latch.tryWait())).toBe(false)
    expect(await stage.world.settled(latch.tryWait({ waitTime: 50 }))).toBe(false)
    const error: unknown = await stage.world.settled(latch.wait({ waitTime: 120 })).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'HOLDFAST_WAIT_TIMEOUT', lock: name })
    expect(String(error)).toMatch(/2 to go.*120 ms/)
  })

  test('round after round', async () => {
    const name = stage.name()
    const [one, other] = [await latchOf(stage, name), await latchOf(stage, name)]
    for (let round = 0; round < 20; round++) {
      expect(await one.trySetCount(2)).toBe(true)
      const waits = [one.wait(), other.wait()]
      await Promise.all([one.countDown(), other.countDown()])
      await stage.world.settled(Promise.all(waits))
    }
  })

  stage.slow('without messages it looks by itself', async () => {
    const name = stage.name()
    const deaf = (await stage.world.holdfast({ subscriber: 'off' })).countDownLatch(name)
    await deaf.trySetCount(1)
    const wait = new Watched(deaf.wait())
    await stage.world.pass(800)
    expect(wait.state).toBe('pending')
    await (await latchOf(stage, name)).countDown()
    await stage.world.settled(wait.promise)
  })
}

function ending(stage: Stage): void {
  test('an abort ends the waiting with its reason, before any I/O if it was there before', async () => {
    const latch = await latchOf(stage, stage.name())
    await latch.trySetCount(1)
    const controller = new AbortController()
    const reason = new Error('not any more')
    const [first, second] = [
      new Watched(latch.wait({ signal: controller.signal })),
      new Watched(latch.wait()),
    ]
    await stage.world.pass(30)
    controller.abort(reason)
    await expect(first.promise).rejects.toBe(reason)
    expect(second.state).toBe('pending')
    const before = await stage.world.operations()
    await expect(latch.wait({ signal: controller.signal })).rejects.toBe(reason)
    await expect(latch.tryWait({ signal: controller.signal })).rejects.toBe(reason)
    expect(await stage.world.operations()).toBe(before)
    await latch.countDown()
    await stage.world.settled(second.promise)
  })

  test('closing ends the waiting', async () => {
    const holdfast = await stage.world.holdfast()
    const latch = holdfast.countDownLatch(stage.name())
    await latch.trySetCount(1)
    const wait = new Watched(latch.wait())
    await stage.world.pass(30)
    await stage.world.settled(holdfast.close())
    await expect(wait.promise).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    expect(holdfast.stats()).toEqual(IDLE)
    for (const call of [() => latch.wait(), () => latch.countDown(), () => latch.getCount()])
      await expect(call()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  })
}

function badCounts(stage: Stage): void {
  test.each([
    [-1, RangeError, 'count must be a whole number from 0 to 9007199254740991, but is -1'],
    [0.5, RangeError, 'but is 0.5'],
    [2 ** 53, RangeError, 'but is 9007199254740992'],
    [NaN, TypeError, 'count must be a number, but is NaN'],
    ['3', TypeError, 'count must be a number, but is the string "3"'],
    [undefined, TypeError, 'count must be a number, but is undefined'],
  ] as const)('a count of %s is refused before any I/O', async (value, kind, message) => {
    const latch = await latchOf(stage, stage.name())
    const before = await stage.world.operations()
    const call = latch.trySetCount(value as number)
    await expect(call).rejects.toThrow(message)
    await expect(call).rejects.toBeInstanceOf(kind)
    expect(await stage.world.operations()).toBe(before)
  })

  test('wrong options are refused before any I/O', async () => {
    const latch = await latchOf(stage, stage.name())
    const before = await stage.world.operations()
    await expect(latch.wait({ waitTime: NaN })).rejects.toThrow('waitTime must be a number')
    await expect(latch.tryWait({ timeout: 5 } as WaitOptions)).rejects.toThrow(
      `Unknown key 'timeout' in wait options`,
    )
    await expect(latch.wait({ pollInterval: 0 })).rejects.toThrow('pollInterval must be from 1')
    expect(await stage.world.operations()).toBe(before)
  })
}

function otherData(stage: Stage): void {
  test.each(['list', 'hash'] as const)('a %s under the name is named and left alone', async (type) => {
    const name = stage.name()
    const latch = await latchOf(stage, name)
    await stage.world.storeData(name, type)
    const before = await stage.world.read(name)
    for (const call of [
      () => latch.trySetCount(1),
      () => latch.countDown(),
      () => latch.getCount(),
      () => latch.wait(),
      () => latch.tryWait(),
      () => latch.delete(),
    ])
      await expect(stage.world.settled<unknown>(call())).rejects.toMatchObject({
        code: 'HOLDFAST_WRONG_TYPE',
        key: name,
      })
    expect(await stage.world.read(name)).toEqual(before)
  })
}

function observingLatch(stage: Stage): void {
  test('tells what it does', async () => {
    const name = stage.name()
    const heard = {
      start: hear('holdfast:acquire:start', name),
      wait: hear('holdfast:acquire:wait', name),
      granted: hear('holdfast:acquire:granted', name),
      timeout: hear('holdfast:acquire:timeout', name),
      wakeup: hear('holdfast:wakeup', name),
    }
    const [one, other] = [await latchOf(stage, name), await latchOf(stage, name)]
    await one.trySetCount(1)
    const wait = one.wait()
    await stage.world.settled(other.tryWait())
    await stage.world.pass(50)
    await other.countDown()
    await stage.world.settled(wait)
    expect([heard.start.length, heard.granted.length, heard.timeout.length]).toEqual([2, 1, 1])
    expect(heard.wait.length).toBeGreaterThanOrEqual(1)
    expect(heard.wakeup.map(({ cause }) => cause)).toContain('message')
  })
}
