/** Permits with leases, group H: what is lost, counted twice, never given, or taken from its holder. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.js'
import type { PermitSemaphore } from '../../src/index.js'
import { PeerPermits, permitId } from '../peer/permit-semaphore.js'
import { eventually } from '../support/eventually.js'
import { raw } from '../support/raw.js'
import { Child } from './child.js'
import { openScene, type Scene } from './scene.js'
import { expected, IDLE } from './support/around.js'

const NAME = 'downloads'
const LEASES = '{downloads}:timeout'
const CHANNEL = 'redisson_sc:{downloads}'
/** No look by itself in the lifetime of a test. */
const AGES = 600_000

const counts = async (semaphore: PermitSemaphore) => [await semaphore.available(), await semaphore.total()]

test('fault 80: the permits of a process that was killed come back by themselves', async () => {
  await using scene = await openScene()
  await using child = new Child('holds-permits', [String(scene.port), '1000'])
  await child.printed('holds 2')
  const semaphore = scene.holdfast().permitSemaphore(NAME)
  // They are renewed as long as the process lives.
  await sleep(1_500)
  expect(await counts(semaphore)).toEqual([1, 3])
  const waiter = semaphore.acquire(3)
  child.kill('SIGKILL')
  expect((await waiter).ids).toHaveLength(3)
  expect(await counts(semaphore)).toEqual([0, 3])
})

test('fault 81: permits that are given back twice, or were never taken, do not count', async () => {
  await using scene = await openScene()
  const semaphore = scene.holdfast().permitSemaphore(NAME, { permits: 3 })
  const other = scene.holdfast().permitSemaphore(NAME)
  const lease = await semaphore.acquire(2)
  const [id = ''] = lease.ids
  await other.release(id)
  for (const unknown of [id, permitId()])
    await expect(other.release(unknown)).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
  expect(await other.tryRelease([...lease.ids, permitId()])).toBe(1)
  expect(await lease.release()).toBe('stolen')
  expect(await counts(semaphore)).toEqual([3, 3])
})

test('fault 82: a hundred starters agree on one number, whatever is out', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  const others = [scene.holdfast(), scene.holdfast(), scene.holdfast()]
  const semaphore = holdfast.permitSemaphore(NAME, { permits: 5 })
  const lease = await semaphore.acquire(5)
  const starters = Array.from({ length: 100 }, (_, i) =>
    (others[i % 3] ?? holdfast).permitSemaphore(NAME, { permits: 5 }),
  )
  const begun = await Promise.all(
    starters.map(async (starter, i) => {
      if (i % 4 === 0) return starter.trySet(5)
      if (i % 4 === 1) await starter.set(5)
      return i % 4 === 2 && (await starter.tryAcquire()) !== null
    }),
  )
  expect(begun).not.toContain(true)
  expect(await counts(semaphore)).toEqual([0, 5])
  await lease.release()
  expect(await counts(semaphore)).toEqual([5, 5])
})

test('fault 83: a semaphore that nobody has begun says so at once', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  const error = { code: 'HOLDFAST_NOT_INITIALISED' }
  await expect(holdfast.permitSemaphore(NAME).acquire()).rejects.toMatchObject(error)
  expect((await holdfast.permitSemaphore(NAME, { permits: 1 }).acquire()).held).toBe(true)
  // Nor is it waited for when the number goes away meanwhile.
  const waiting = expected(holdfast.permitSemaphore(NAME).acquire({ pollInterval: 50 }))
  await eventually(() => holdfast.stats().contests === 1, 'it waits')
  await scene.command('DEL', NAME)
  await expect(waiting).rejects.toMatchObject(error)
})

test.each(['one step', 'two steps'])(
  'fault 84: a waiter for two permits gets them, freed in %s',
  async (how) => {
    await using scene = await openScene()
    const semaphore = scene.holdfast().permitSemaphore(NAME, { permits: 2 })
    const held =
      how === 'one step'
        ? [await semaphore.acquire(2)]
        : [await semaphore.acquire(), await semaphore.acquire()]
    const mine = scene.holdfast().permitSemaphore(NAME)
    const waiter = mine.acquire(2, { pollInterval: AGES })
    await heard(scene)
    const wakeups = scene.hear('holdfast:wakeup')
    for (const [i, lease] of held.entries()) {
      await lease.release()
      if (i === held.length - 1) continue
      await eventually(() => wakeups.length > i, 'the waiter is told')
      // Behind its attempt on the same link.
      expect(await mine.available()).toBe(1)
    }
    expect((await waiter).ids).toHaveLength(2)
  },
)

test('fault 84: a small request goes past a large one that waits for what its caller holds', async () => {
  await using scene = await openScene()
  const [one, other] = [scene.holdfast(), scene.holdfast()]
  const semaphore = one.permitSemaphore(NAME, { permits: 3 })
  // In both processes somebody holds a permit, waits for a second one, and gives back the first only after it.
  const theirs = other.permitSemaphore(NAME)
  const [mine, held] = [await semaphore.acquire(), await theirs.acquire()]
  const large = [semaphore.acquire(3, { pollInterval: AGES }), theirs.acquire(3, { pollInterval: AGES })]
  await eventually(() => one.stats().contests + other.stats().contests === 2, 'the large ones wait')
  for (const [from, lease] of [
    [semaphore, mine],
    [theirs, held],
  ] as const) {
    const second = await from.acquire({ pollInterval: AGES })
    await Promise.all([second.release(), lease.release()])
  }
  const first = await Promise.race(large)
  await first.release()
  for (const waiter of large) expect((await waiter).ids).toHaveLength(3)
})

test('fault 84: large and small requests of several processes all come to their turn', async () => {
  await using scene = await openScene()
  const processes = Array.from({ length: 3 }, () => scene.holdfast().permitSemaphore(NAME, { permits: 3 }))
  let [inside, most] = [0, 0]
  const work = (permits: number) => async () => {
    inside += permits
    most = Math.max(most, inside)
    await sleep(2)
    inside -= permits
  }
  const all = processes.flatMap((semaphore) =>
    Array.from({ length: 20 }, (_, i) => semaphore.using(1 + (i % 3), work(1 + (i % 3)))),
  )
  await Promise.all(all)
  expect(most).toBeLessThanOrEqual(3)
  expect(await processes[0]?.available()).toBe(3)
})

test('fault 85: a waiter looks at the time at which the next permit expires', async () => {
  await using scene = await openScene()
  const semaphore = scene.holdfast().permitSemaphore(NAME, { permits: 2 })
  await semaphore.acquire({ leaseTime: AGES })
  await semaphore.acquire({ leaseTime: 300 })
  const wakeups = scene.hear('holdfast:wakeup')
  const waiter = scene.holdfast().permitSemaphore(NAME).acquire({ pollInterval: AGES })
  expect((await waiter).held).toBe(true)
  expect(wakeups.at(-1)).toMatchObject({ cause: 'expiry' })
})

test('fault 86: what has expired is available, before anybody takes it', async () => {
  await using scene = await openScene()
  const semaphore = scene.holdfast().permitSemaphore(NAME, { permits: 3 })
  const { ids } = await semaphore.acquire(2, { leaseTime: 100 })
  await sleep(150)
  const messages = await listen(scene)
  expect(await semaphore.available()).toBe(3)
  expect(await semaphore.acquired()).toBe(0)
  expect(await semaphore.remainingTime(ids[0] ?? '')).toBe(0)
  expect(await messages.take()).toEqual([{ channel: CHANNEL, payload: '3' }])
})

test('fault 87: a list with two expired and three live permits is given back as a whole, or by what is left', async () => {
  await using scene = await openScene()
  const semaphore = scene.holdfast().permitSemaphore(NAME, { permits: 5 })
  const expired = await semaphore.acquire(2, { leaseTime: 100 })
  const live = await semaphore.acquire(3, { leaseTime: AGES })
  await sleep(150)
  const ids = [...expired.ids, ...live.ids]
  await expect(semaphore.releaseAll(ids)).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
  expect(await scene.command('ZCARD', LEASES)).toBe(5)
  expect(await semaphore.tryRelease(ids)).toBe(3)
  expect(await counts(semaphore)).toEqual([5, 5])
})

test('fault 88: many waiters for many names are all served, and in the order of their coming', async () => {
  await using scene = await openScene()
  const [one, other] = [scene.holdfast(), scene.holdfast()]
  const names = Array.from({ length: 30 }, (_, i) => `${NAME}:${i}`)
  const orders = new Map(names.map((name) => [name, new Map([one, other].map((it) => [it, [] as number[]]))]))
  const calls = names.flatMap((name) =>
    Array.from({ length: 20 }, (_, i) => {
      const holdfast = i % 2 === 0 ? one : other
      return holdfast.permitSemaphore(name, { permits: 1 }).using({ waitTime: 30_000 }, async () => {
        orders.get(name)?.get(holdfast)?.push(i)
        await sleep(2)
      })
    }),
  )
  await Promise.all(calls)
  for (const order of orders.values())
    for (const served of order.values()) expect(served).toEqual([...served].sort((a, b) => a - b))
  expect([one.stats(), other.stats()]).toEqual([IDLE, IDLE])
})

describe.each([60_000, -60_000])('a process whose clock is off by %i ms', (skewMs) => {
  const wrong = { ...systemClock, wall: () => Date.now() + skewMs }

  test('fault 89: takes nothing from others, and loses nothing to them', async () => {
    await using scene = await openScene()
    const mine = scene
      .holdfast({ clock: wrong, lockWatchdogTimeout: 600 })
      .permitSemaphore(NAME, { permits: 2 })
    const right = scene.holdfast().permitSemaphore(NAME)
    const leases = [await mine.acquire(), await right.acquire({ leaseTime: 30_000 })]
    const peer = new PeerPermits(await connection(scene), NAME)
    // Longer than the lease of the first, which is renewed meanwhile.
    for (let i = 0; i < 8; i++) {
      await sleep(150)
      expect(await mine.tryAcquire()).toBeNull()
      expect(await right.tryAcquire()).toBeNull()
      expect(await peer.tryAcquire()).toMatchObject({ ids: undefined })
      expect([await mine.acquired(), await right.acquired()]).toEqual([2, 2])
    }
    expect(leases.map(({ held }) => held)).toEqual([true, true])
    for (const lease of leases) expect(await lease.release()).toBe('released')
    expect(await counts(right)).toEqual([2, 2])
  })
})

describe.each([NAME, LEASES])('%s goes away', (key) => {
  test('fault 90: half a semaphore is told or mended', async () => {
    await using scene = await openScene()
    const semaphore = scene.holdfast({ lockWatchdogTimeout: 600 }).permitSemaphore(NAME, { permits: 3 })
    const lease = await semaphore.acquire(2)
    await scene.command('DEL', key)
    if (key === NAME) {
      // The permits that are out count, so that there are not more of them than before.
      expect((await semaphore.acquire()).held).toBe(true)
      expect(await semaphore.tryAcquire()).toBeNull()
      expect(await lease.release()).toBe('released')
      expect(await counts(semaphore)).toEqual([2, 3])
    } else {
      await eventually(() => !lease.held, 'the holder is told')
      expect(await lease.release()).toBe('stolen')
      // What was out is lost to the number until it is set.
      expect(await counts(semaphore)).toEqual([1, 1])
      await semaphore.set(3)
      expect(await counts(semaphore)).toEqual([3, 3])
    }
  })
})

function heard(scene: Scene): Promise<void> {
  return eventually(async () => {
    const [, count] = (await scene.command('PUBSUB', 'NUMSUB', CHANNEL)) as [string, number]
    return count > 0
  }, 'somebody listens')
}

async function connection(scene: Scene): ReturnType<typeof raw> {
  const link = await raw(scene.port)
  scene.atEnd(() => link[Symbol.asyncDispose]())
  return link
}

async function listen(
  scene: Scene,
): Promise<Awaited<ReturnType<Awaited<ReturnType<typeof raw>>['subscribe']>>> {
  return (await connection(scene)).subscribe(CHANNEL)
}
