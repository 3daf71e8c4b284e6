/** Permits without owners, group H: numbers that go wrong, and waiters that are not told. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.js'
import { Child } from './child.js'
import { openScene, watch } from './scene.js'
import { about, IDLE, untilHeard } from './support/around.js'

const NAME = 'downloads'
const CHANNEL = `redisson_sc:{${NAME}}`

test('fault 80: bare permits of a process that was killed are missing until somebody adds them', async () => {
  await using scene = await openScene()
  const semaphore = scene.holdfast().semaphore(NAME, { permits: 2 })
  await using child = new Child('takes-permits', [String(scene.port), NAME])
  await child.printed('taken')
  child.kill('SIGKILL')
  await child.ended
  expect(await semaphore.available()).toBe(0)
  const waiter = semaphore.acquire()
  await untilHeard(scene, CHANNEL)
  // What an operator does about it.
  await scene.holdfast().semaphore(NAME).add(2)
  expect((await waiter).permits).toBe(1)
})

test('fault 81: a handle of bare permits gives them back once, and not to the next number', async () => {
  await using scene = await openScene()
  const semaphore = scene.holdfast().semaphore(NAME, { permits: 2 })
  const [first, second] = [await semaphore.acquire(), await semaphore.acquire()]
  await Promise.all([first.release(), first.release(), first[Symbol.asyncDispose]()])
  expect(await semaphore.available()).toBe(1)
  // The number is begun anew: what is given back was not taken from this one, but that it is missing can be told.
  await scene.command('DEL', NAME)
  expect(await second.release()).toBe('gone')
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

test('fault 82: a hundred starters begin a number of bare permits once', async () => {
  await using scene = await openScene()
  const starters = Array.from({ length: 4 }, () => scene.holdfast())
  const grants = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      starters[i % 4]
        ?.semaphore(NAME, { permits: 5 })
        .tryAcquire()
        .then((grant) => grant ?? undefined),
    ),
  )
  const taken = grants.filter((grant) => grant !== undefined)
  expect(taken).toHaveLength(5)
  expect(await scene.command('GET', NAME)).toBe('0')
  // None are free, but the number is set: nobody begins it again.
  expect(await scene.holdfast().semaphore(NAME).trySet(5)).toBe(false)
  await Promise.all(taken.map((grant) => grant.release()))
  expect(await scene.command('GET', NAME)).toBe('5')
})

test('fault 83: bare permits that nobody has counted are an error at once', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  const semaphore = holdfast.semaphore(NAME)
  await expect(semaphore.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_NOT_INITIALISED', lock: NAME })
  await expect(semaphore.tryAcquire(1, { waitTime: 60_000 })).rejects.toMatchObject({
    code: 'HOLDFAST_NOT_INITIALISED',
  })
  expect(holdfast.stats()).toEqual(IDLE)
  expect((await holdfast.semaphore(NAME, { permits: 3 }).acquire()).permits).toBe(1)
})

test.each(['one step', 'two steps'] as const)(
  'fault 84: a waiter for two bare permits gets them, freed in %s',
  async (how) => {
    await using scene = await openScene()
    const [ours, theirs] = [scene.holdfast(), scene.holdfast()]
    const sizes = how === 'one step' ? [2] : [1, 1]
    const semaphore = ours.semaphore(NAME, { permits: 2 })
    const held = await Promise.all(sizes.map((size) => semaphore.acquire(size)))
    const wakeups = scene.hear('holdfast:wakeup')
    const waiter = theirs.semaphore(NAME).acquire(2)
    await untilHeard(scene, CHANNEL)
    await eventually(() => about(wakeups, NAME).some(({ cause }) => cause === 'resync'), 'it has looked')
    for (const grant of held) await grant.release()
    expect((await waiter).permits).toBe(2)
    // A message has woken it, not the time.
    expect(about(wakeups, NAME).at(-1)).toMatchObject({ cause: 'message' })
  },
)

test('fault 84: large and small requests for bare permits all come to their turn', async () => {
  await using scene = await openScene()
  const holdfasts = [scene.holdfast(), scene.holdfast(), scene.holdfast()]
  await holdfasts[0]?.semaphore(NAME).trySet(3)
  let taken = 0
  let most = 0
  const sizes = Array.from({ length: 90 }, (_, i) => (i % 3) + 1)
  await Promise.all(
    sizes.map((size, i) =>
      holdfasts[i % 3]?.semaphore(NAME).using(size, { waitTime: 60_000 }, async () => {
        taken += size
        most = Math.max(most, taken)
        await sleep(2)
        taken -= size
      }),
    ),
  )
  expect(most).toBeLessThanOrEqual(3)
  expect(await scene.command('GET', NAME)).toBe('3')
  for (const holdfast of holdfasts) expect(holdfast.stats()).toEqual(IDLE)
})

test('fault 84: a caller that holds what a larger request waits for gets the rest of its own', async () => {
  await using scene = await openScene()
  const semaphore = scene.holdfast().semaphore(NAME, { permits: 3 })
  const held = await semaphore.acquire(2)
  const large = semaphore.acquire(3)
  const state = watch(large)
  await untilHeard(scene, CHANNEL)
  const rest = await semaphore.acquire()
  expect(state.settled).toBe(false)
  await Promise.all([held.release(), rest.release()])
  expect((await large).permits).toBe(3)
})

test('fault 85: bare permits that come free while the subscriber is cut off are found', async () => {
  await using scene = await openScene()
  const [ours, theirs] = [scene.holdfast(), scene.holdfast()]
  const held = await theirs.semaphore(NAME, { permits: 1 }).acquire()
  const wakeups = scene.hear('holdfast:wakeup')
  const waiter = ours.semaphore(NAME).acquire()
  await untilHeard(scene, CHANNEL)
  await eventually(() => about(wakeups, NAME).some(({ cause }) => cause === 'resync'), 'it has looked')
  const before = about(wakeups, NAME).length
  await scene.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await held.release()
  expect((await waiter).permits).toBe(1)
  expect(about(wakeups, NAME).length).toBeGreaterThan(before)
})

test('fault 85: a waiter for bare permits that may not subscribe looks by itself', async () => {
  await using scene = await openScene()
  await scene.command('ACL', 'SETUSER', 'deaf', 'on', '>secret', '~*', '+@all', 'resetchannels')
  const deaf = scene.holdfast({}, scene.ioredis({ username: 'deaf', password: 'secret' }))
  const diagnoses = scene.hear('holdfast:diagnosis')
  const held = await scene.holdfast().semaphore(NAME, { permits: 1 }).acquire()
  const waiter = deaf.semaphore(NAME).acquire()
  await eventually(() => diagnoses.some(({ kind }) => kind === 'subscribe-failed'), 'it is told')
  await held.release()
  const grant = await waiter
  await grant.release()
  expect(diagnoses.map(({ kind }) => kind)).toContain('unannounced')
  expect(await scene.command('GET', NAME)).toBe('1')
})

test('fault 88: many waiters for many names of one permit are all served, in the order of their coming', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  const order = new Map<string, number[]>()
  const names = Array.from({ length: 100 }, (_, i) => `limit:${i}`)
  await Promise.all(
    names.flatMap((name) =>
      Array.from({ length: 20 }, (_, i) =>
        holdfast.semaphore(name, { permits: 1 }).using(1, { waitTime: 60_000 }, async () => {
          order.set(name, [...(order.get(name) ?? []), i])
          await sleep(1)
        }),
      ),
    ),
  )
  const expected = Array.from({ length: 20 }, (_, i) => i)
  for (const name of names) expect(order.get(name)).toEqual(expected)
  expect(holdfast.stats()).toEqual(IDLE)
})

test('fault 90: bare permits whose number was removed, or has expired, are begun anew, or the error is clear', async () => {
  await using scene = await openScene()
  const [begins, knows] = [scene.holdfast().semaphore(NAME, { permits: 2 }), scene.holdfast().semaphore(NAME)]
  await begins.acquire(2)
  const waiter = knows.acquire(1, { pollInterval: 50 })
  await untilHeard(scene, CHANNEL)
  await scene.command('DEL', NAME)
  await expect(waiter).rejects.toMatchObject({ code: 'HOLDFAST_NOT_INITIALISED' })
  await begins.acquire(2)
  const second = begins.acquire(1, { pollInterval: 50 })
  await scene.command('PEXPIRE', NAME, 1)
  expect((await second).permits).toBe(1)
  expect(await scene.command('GET', NAME)).toBe('1')
})
