/** Acquiring, group C: who holds what, and the same lock twice in one call tree. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Holdfast, ManualClock, SelfHeldError, WaitTimeoutError } from '../../src/index.js'
import { Child } from './child.js'
import { Door, openScene, watch, type Scene } from './scene.js'

const NAME = 'orders:42'

test('fault 36: the same lock inside its own callback enters once more', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast().lock(NAME)
  const result = await lock.using((outer) =>
    lock.using(async (inner) => {
      expect(await scene.command('HGETALL', NAME)).toEqual([outer.owner, '2'])
      return [inner.owner === outer.owner, inner.holdCount]
    }),
  )
  expect(result).toEqual([true, 2])
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

test('fault 36: a lock that does not re-enter says so at once', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  for (const lock of [holdfast.mutex('a mutex'), holdfast.lock('a lock', { reentrant: false })]) {
    await lock.using(async () => {
      await expect(lock.using(() => undefined)).rejects.toThrow(SelfHeldError)
      await expect(lock.acquire()).rejects.toThrow(SelfHeldError)
    })
  }
})

test('fault 36: waiting for a lock that the same tree took by acquire names both places', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast({ lockWatchdogTimeout: 300 }).lock(NAME)
  const diagnoses = scene.hear('holdfast:diagnosis')
  const warnings: Error[] = []
  const warned = (warning: Error): void => {
    warnings.push(warning)
  }
  process.on('warning', warned)
  scene.atEnd(() => process.off('warning', warned))

  const lease = await lock.acquire()
  await expect(lock.acquire({ waitTime: 600 })).rejects.toThrow(WaitTimeoutError)
  const told = diagnoses.filter(({ kind }) => kind === 'self-wait')
  expect(told).toHaveLength(1)
  const places = told[0]?.message.match(/c-acquire-owner\.test\.ts:\d+/g)
  expect(new Set(places).size).toBe(2)
  expect(warnings.map(({ message }) => message)).toEqual([told[0]?.message])
  await lease.release()
})

test('fault 36: a sibling that never ends is not waited for without end', async () => {
  const clock = new ManualClock()
  const holdfast = await Holdfast.connect('memory:', { clock })
  const lock = holdfast.lock(NAME)
  const forEver = new Door()
  const parent = lock.using(async () => {
    const first = lock.using(() => forEver.opened)
    const second = lock.using(() => undefined)
    const state = watch(second)
    await clock.advance(29_999)
    expect(state.settled).toBe(false)
    await clock.advance(1)
    await expect(second).rejects.toMatchObject({ code: 'HOLDFAST_SELF_HELD' })
    forEver.open()
    await first
  })
  await parent
})

/** Counts how many are inside at once. */
class Inside {
  now = 0
  most = 0

  async work(ms = 1): Promise<void> {
    this.now += 1
    this.most = Math.max(this.most, this.now)
    await sleep(ms)
    this.now -= 1
  }
}

test('fault 37: a hundred callers of one process exclude each other', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  const inside = new Inside()
  const owners = new Set<string>()
  const all = Array.from({ length: 100 }, () =>
    holdfast.lock(NAME).using(async ({ owner }) => {
      owners.add(owner)
      await inside.work()
    }),
  )
  await Promise.all(all)
  expect(inside.most).toBe(1)
  expect(owners.size).toBe(100)
})

test('fault 37: nested uses that run side by side take turns', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast().lock(NAME)
  const inside = new Inside()
  await lock.using(async (parent) => {
    const nested = Array.from({ length: 5 }, () =>
      lock.using(async (lease) => {
        expect(lease.owner).toBe(parent.owner)
        expect(await scene.command('HGET', NAME, lease.owner)).toBe('2')
        await inside.work(10)
      }),
    )
    await Promise.all(nested)
  })
  expect(inside.most).toBe(1)
})

test('fault 37: a task that outlives its lease competes like anybody', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast().lock(NAME)
  const parentOver = new Door()
  let detached: Promise<string> = Promise.reject(new Error('was not started'))
  detached.catch(() => undefined)
  const parentOwner = await lock.using((lease) => {
    detached = parentOver.opened.then(() => lock.using((own) => own.owner))
    return lease.owner
  })
  const other = await scene.holdfast().lock(NAME).acquire()
  const state = watch(detached)
  parentOver.open()
  expect(await lock.tryAcquire()).toBeNull()
  expect(state.settled).toBe(false)
  await other.release()
  expect(await detached).not.toBe(parentOwner)
})

/** Every key with its TTL; -1: none. */
async function ttls(scene: Scene): Promise<ReadonlyMap<string, number>> {
  const keys = (await scene.command('KEYS', '*')) as string[]
  const all = new Map<string, number>()
  for (const key of keys) all.set(key, Number(await scene.command('PTTL', key)))
  return all
}

async function expectTtls(scene: Scene, keys: number): Promise<void> {
  const all = await ttls(scene)
  expect(all.size).toBe(keys)
  expect([...all.values()].every((ttl) => ttl > 0)).toBe(true)
}

test('fault 38: every step leaves a TTL', async () => {
  await using scene = await openScene()
  const renewed = scene.hear('holdfast:renew:ok')
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 600 })
  const lock = holdfast.lock(NAME)
  const mutex = holdfast.mutex('a mutex')
  const lease = await lock.acquire()
  const plain = await mutex.acquire()
  await expectTtls(scene, 2)
  const nested = await lock.acquire({ within: lease })
  await expectTtls(scene, 2)
  await expect.poll(() => renewed.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(2)
  await expectTtls(scene, 2)
  await nested.release()
  await expectTtls(scene, 2)
  await lease.extend(20_000)
  await plain.extend(20_000)
  await expectTtls(scene, 2)
  await lease.release()
  await plain.release()
  await expectTtls(scene, 0)
  for (const kept of [lock, mutex]) await (await kept.acquire({ minHold: 20_000 })).release()
  await expectTtls(scene, 2)
  await scene.command('CLIENT', 'PAUSE', 300, 'WRITE')
  const short = scene.holdfast({ commandTimeout: 50 })
  await expect(short.lock('undone').tryAcquire()).rejects.toThrow(/No answer/)
  await expect.poll(() => short.stats().compensating, { timeout: 10_000 }).toBe(0)
  await expectTtls(scene, 3)
})

test('fault 38: processes that are killed leave no key without TTL', async () => {
  await using scene = await openScene()
  let left = 0
  for (let kills = 0; kills < 4; kills++) {
    await using child = new Child('busy-holder', [String(scene.port)])
    await child.printed('working on d')
    await sleep(Math.random() * 50)
    child.kill('SIGKILL')
    await child.ended
    const all = [...(await ttls(scene)).values()]
    expect(all.filter((ttl) => ttl === -1)).toEqual([])
    left += all.length
    await scene.command('FLUSHALL')
  }
  expect(left).toBeGreaterThan(0)
})

test('fault 38: a waiter tells of a holder without TTL', async () => {
  await using scene = await openScene()
  const diagnoses = scene.hear('holdfast:diagnosis')
  await scene.command('HSET', NAME, '0a1b2c3d-0002-4000-8000-00000000dead:7', 1)
  await scene.command('SET', 'a mutex', 'somebody')
  const holdfast = scene.holdfast()
  expect(await holdfast.lock(NAME).tryAcquire({ waitTime: 100 })).toBeNull()
  expect(await holdfast.mutex('a mutex').tryAcquire({ waitTime: 100 })).toBeNull()
  // The end of the waiting may cut a look short, which is then undone.
  const told = diagnoses.filter(({ kind }) => kind !== 'compensating')
  expect(told.map(({ lock, kind }) => [lock, kind])).toEqual([
    [NAME, 'no-ttl'],
    ['a mutex', 'no-ttl'],
  ])
  expect(await holdfast.lock(NAME).remainingTime()).toBe(Infinity)
})
