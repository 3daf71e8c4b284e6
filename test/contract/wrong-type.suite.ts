import { describe, expect, test } from 'vitest'
import type { ExclusiveLock } from '../../src/index.js'
import { lockOf, STRANGER, TRAITS, type KindStage } from './world.js'

const calls: readonly (readonly [name: string, call: (lock: ExclusiveLock) => Promise<unknown>])[] = [
  ['acquire', (lock) => lock.acquire()],
  ['acquire with a waitTime', (lock) => lock.acquire({ waitTime: 10_000 })],
  ['tryAcquire', (lock) => lock.tryAcquire()],
  ['using', (lock) => lock.using(() => 0)],
  ['tryUsing', (lock) => lock.tryUsing(() => 0)],
  ['isLocked', (lock) => lock.isLocked()],
  ['isHeldBy', (lock) => lock.isHeldBy(STRANGER)],
  ['remainingTime', (lock) => lock.remainingTime()],
  ['forceRelease', (lock) => lock.forceRelease()],
]

/** Somebody's data under the lock's name: said clearly, and never touched. */
export function wrongType({ stage, kind, lock }: KindStage): void {
  describe.for(['list', 'hash'] as const)('a %s of somebody else under the name', (type) => {
    test('is WrongTypeError for every call, and stays as it is', async () => {
      const name = stage.name()
      await stage.world.storeData(name, type)
      const before = await stage.world.read(name)
      const mine = await lock(name, { keyPrefix: '' })
      for (const [what, call] of calls) {
        await expect(stage.world.settled(call(mine)), what).rejects.toMatchObject({
          name: 'WrongTypeError',
          code: 'HOLDFAST_WRONG_TYPE',
          lock: name,
          key: name,
        })
      }
      expect(await stage.world.read(name)).toEqual(before)
    })

    test('that comes while a caller waits ends the waiting', async () => {
      const name = stage.name()
      await (await lock(name)).acquire()
      const waiter = (await lock(name)).acquire({ pollInterval: 20 })
      waiter.catch(() => undefined)
      await stage.world.pass(30)
      await stage.world.storeData(name, type)
      await expect(stage.world.settled(waiter)).rejects.toMatchObject({ code: 'HOLDFAST_WRONG_TYPE' })
    })
  })

  test('the other kind of lock under the name is wrong too', async () => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast()
    const lease = await lockOf(TRAITS[kind].hash ? 'mutex' : 'lock', holdfast, name).acquire()
    const before = (await stage.world.read(name))?.value
    const mine = await lock(name)
    for (const [what, call] of calls)
      await expect(stage.world.settled(call(mine)), what).rejects.toMatchObject({
        code: 'HOLDFAST_WRONG_TYPE',
      })
    expect((await stage.world.read(name))?.value).toEqual(before)
    expect(await lease.release()).toBe('released')
  })

  const sides = kind === 'read' || kind === 'write' ? [] : (['read', 'write'] as const)
  test.for(sides)('so is a read/write lock, while it is held to %s', async (side) => {
    const name = stage.name()
    const lease = await (await stage.world.holdfast()).readWriteLock(name)[side].acquire()
    const mine = await lock(name)
    for (const [what, call] of calls)
      await expect(stage.world.settled(call(mine)), what).rejects.toMatchObject({
        code: 'HOLDFAST_WRONG_TYPE',
      })
    expect(lease.held).toBe(true)
    expect(await lease.release()).toBe('released')
    expect(await stage.world.settled(mine.using(() => 'free'))).toBe('free')
  })

  test('the key in the error is the one in the engine', async () => {
    const name = stage.name()
    await stage.world.storeData(`shop:${name}`, 'list')
    const mine = await lock(name, { keyPrefix: 'shop:' })
    await expect(mine.acquire()).rejects.toMatchObject({ lock: name, key: `shop:${name}` })
  })
}
