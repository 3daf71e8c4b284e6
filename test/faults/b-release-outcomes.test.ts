/** Ownership and release, group B: what a release tells, and whom it touches. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { LeaseLostError, ManualClock, NotHeldError } from '../../src/index.js'
import { IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { openScene, type Scene } from './scene.js'
import { IDLE, OTHER, ttl, untilUndone } from './support/around.js'
import { answers, sends, teach } from './support/sent.js'

const NAME = 'orders:42'
const FAMILIES = ['lock', 'mutex'] as const
type Family = (typeof FAMILIES)[number]

test.each(FAMILIES)('fault 18: a %s lease is given back from any other flow', async (family) => {
  await using scene = await openScene()
  const lock = scene.holdfast()[family](NAME)
  const fromTimer = await lock.acquire()
  const outcome = await new Promise((resolve) => setTimeout(() => resolve(fromTimer.release()), 1))
  expect(outcome).toBe('released')

  // Taken in the scope of one lease, given back in the flow of another thread's message.
  const fromMessage = await scene
    .holdfast()
    .lock('around')
    .using(() => lock.acquire())
  const worker = new Worker(`require('node:worker_threads').parentPort.postMessage('now')`, { eval: true })
  const exited = once(worker, 'exit')
  const told = new Promise((resolve) => {
    worker.once('message', () => resolve(fromMessage.release()))
  })
  expect(await told).toBe('released')
  await exited
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

/** Somebody else's hold under the name. */
async function takeOver(scene: Scene, family: Family): Promise<void> {
  await scene.command('DEL', NAME)
  await scene.command(...(family === 'lock' ? ['HSET', NAME, OTHER, 1] : ['SET', NAME, OTHER]))
  await scene.command('PEXPIRE', NAME, 60_000)
}

test.each(FAMILIES)(
  'fault 18: released, expired, stolen and never held are told apart (%s)',
  async (family) => {
    await using scene = await openScene()
    const clock = new ManualClock()
    const lock = scene.holdfast({ clock })[family](NAME)

    const released = await lock.acquire()
    expect(await released.release()).toBe('released')
    expect(await released.release()).toBe('released')
    expect(() => released.assertHeld()).toThrow(NotHeldError)

    const expired = await lock.acquire({ leaseTime: 10_000 })
    await clock.advance(10_000)
    expect(await expired.release()).toBe('expired')
    expect(() => expired.assertHeld()).toThrow(
      expect.objectContaining({ code: 'HOLDFAST_NOT_HELD' }) as Error,
    )
    await scene.untilGone(NAME)
    const passed = await lock.acquire({ leaseTime: 10_000 })
    await clock.advance(10_000)
    expect(() => passed.assertHeld()).toThrow(expect.objectContaining({ reason: 'expired' }) as Error)
    await passed.release()
    await scene.untilGone(NAME)

    const stolen = await lock.acquire()
    await takeOver(scene, family)
    expect(await stolen.release()).toBe('stolen')
    const robbed = scene.holdfast({ lockWatchdogTimeout: 120 })[family]('another')
    const lease = await robbed.acquire()
    await scene.command('DEL', 'another')
    await eventually(() => !lease.held, 'the loss is noticed')
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: 'stolen' }) as Error)
    await expect(lease.extend(1_000)).rejects.toThrow(LeaseLostError)

    // Of what is not held there is nothing that could be given back.
    expect(await lock.tryAcquire()).toBeNull()
  },
)

test.each(['ioredis', 'node-redis'] as const)(
  'fault 20: a release that comes too late is answered at once (%s)',
  async (library) => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const clock = new ManualClock()
    const client =
      library === 'ioredis' ? scene.ioredis({ port: proxy.port }) : await scene.nodeRedis(proxy.port)
    const holdfast = scene.holdfast({ clock }, client)
    const lease = await holdfast.lock(NAME).acquire({ leaseTime: 10_000 })
    await clock.advance(10_000)
    // Not even an answer of the server is needed.
    const gate = proxy.holdRequests()
    expect(await lease.release()).toBe('expired')
    gate.release()
    await scene.untilGone(NAME)
    expect(proxy.count(sends('release'))).toBe(1)

    // The key is gone earlier than anybody here could know: one round trip tells.
    const early = await holdfast.lock(NAME).acquire({ leaseTime: 10_000 })
    await scene.command('DEL', NAME)
    expect(await early.release()).toBe('stolen')
    expect(proxy.count(sends('release'))).toBe(2)
    expect(holdfast.stats()).toEqual(IDLE)
  },
)

test('fault 21: endless patience in acquiring is none in giving back', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ unavailableAfter: Infinity, commandTimeout: 200 })
  const lock = holdfast.lock(NAME)
  const expired = await lock.acquire({ waitTime: Infinity, leaseTime: 150 })
  const held = await holdfast.lock('another').acquire({ waitTime: Infinity })
  const controller = new AbortController()
  const third = await holdfast.lock('a third').acquire({ signal: controller.signal })
  await eventually(() => !expired.held, 'it is over')
  controller.abort()

  scene.server.pause()
  expect(await expired.release()).toBe('expired')
  expect(await held.release()).toBe('unknown')
  expect(await third.release()).toBe('unknown')
  expect(
    await holdfast
      .lock(NAME)
      .tryUsing(() => 'in vain')
      .catch((error: unknown) => error),
  ).toMatchObject({
    code: 'HOLDFAST_UNAVAILABLE',
  })
  scene.server.resume()
  // What got no answer goes on in the background.
  await untilUndone(holdfast)
  for (const name of [NAME, 'another', 'a third']) await scene.untilGone(name)
})

test.each(FAMILIES)('fault 22: a late release of a %s leaves the next owner alone', async (family) => {
  await using scene = await openScene()
  const lock = scene.holdfast()[family](NAME)
  const late = [
    await lock.acquire(),
    await takenAfterRemoval(scene, family, { minHold: 5_000 }),
    await takenAfterRemoval(scene, family, { leaseTime: 20_000 }),
  ]
  await takeOver(scene, family)
  const image = await scene.command('DUMP', NAME)
  const messages = scene.hear('holdfast:release')
  for (const lease of late) expect(await lease.release()).toBe('stolen')
  expect(messages.map(({ outcome }) => outcome)).toEqual(['stolen', 'stolen', 'stolen'])
  expect(await scene.command('DUMP', NAME)).toEqual(image)
  expect(await ttl(scene, NAME)).toBeGreaterThan(55_000)
  expect(await lock.tryAcquire()).toBeNull()
})

async function takenAfterRemoval(scene: Scene, family: Family, options: object) {
  await scene.command('DEL', NAME)
  return scene.holdfast()[family](NAME).acquire(options)
}

describe.each([IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6])('with $name', (variant) => {
  test('fault 23: a release whose reply is lost was a release', async () => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const client = await open(variant, proxy.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast({}, client.raw as object)
    for (const family of FAMILIES) {
      const lease = await holdfast[family](NAME).acquire()
      const before = proxy.count(sends('release'))
      proxy.dropReply(answers('release'))
      expect(await lease.release()).toBe('released')
      expect(proxy.count(sends('release')) - before).toBe(2)
      expect(await scene.command('EXISTS', NAME)).toBe(0)
    }
    expect(holdfast.stats()).toEqual(IDLE)
  })

  test('fault 23: leaving whose reply is lost counts once', async () => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const client = await open(variant, proxy.port)
    scene.atEnd(() => client.destroy())
    const lock = scene.holdfast({}, client.raw as object).lock(NAME)
    const outer = await lock.acquire()
    const middle = await lock.acquire({ within: outer })
    const inner = await lock.acquire({ within: middle })
    expect(await scene.command('HGET', NAME, outer.owner)).toBe('3')
    proxy.dropReply(answers('leave'))
    expect(await inner.release()).toBe('still-held')
    expect(await scene.command('HGET', NAME, outer.owner)).toBe('2')
    expect(await middle.release()).toBe('still-held')
    expect(outer.held).toBe(true)
    expect(Number(await scene.command('HGET', NAME, outer.owner))).toBeGreaterThan(0)
    expect(await outer.release()).toBe('released')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  })
})

test('fault 23: a release that is repeated behind the next owner was a release', async () => {
  await using scene = await openScene()
  await teach(scene)
  const proxy = await scene.proxy()
  const lease = await scene
    .holdfast({}, scene.ioredis({ port: proxy.port }))
    .lock(NAME)
    .acquire()
  proxy.dropReply(answers('release'))
  const copies = proxy.holdRequests((request) => request.connection > 1 && sends('release')(request))
  const released = lease.release()
  await copies.caught()
  const next = await scene.holdfast().lock(NAME).acquire()
  copies.release()
  expect(await released).toBe('released')
  expect(await scene.command('HKEYS', NAME)).toEqual([next.owner])
})

test.each(FAMILIES)('fault 28: held is judged by the clock, isLocked by the server (%s)', async (family) => {
  await using scene = await openScene()
  const clock = new ManualClock()
  const lock = scene.holdfast({ clock })[family](NAME)
  const lease = await lock.acquire({ leaseTime: 10_000 })
  // One part in a hundred, and two milliseconds.
  await clock.advance(10_000 - 102 - 1)
  expect(lease.held).toBe(true)
  expect(lease.remaining).toBe(1)
  await clock.advance(1)
  expect([lease.held, lease.remaining, lease.holdCount]).toEqual([false, 0, 0])
  // The server's time did not pass.
  expect(await lock.isLocked()).toBe(true)
  expect(await lock.isHeldBy(lease.owner)).toBe(true)

  const gone = await scene.holdfast()[family]('another').acquire({ leaseTime: 10_000 })
  await scene.command('PEXPIRE', 'another', 1)
  await scene.untilGone('another')
  expect(gone.held).toBe(true)
  expect(await scene.holdfast()[family]('another').isLocked()).toBe(false)
  expect(await scene.holdfast()[family]('another').isHeldBy(gone.owner)).toBe(false)
})

test('fault 28: without a word from the server held ends with the lease', async () => {
  await using scene = await openScene()
  const lease = await scene.holdfast({ commandTimeout: 100 }).lock(NAME).acquire({ leaseTime: 400 })
  scene.server.pause()
  expect(lease.held).toBe(true)
  await eventually(() => !lease.held, 'it is over')
  await sleep(0)
  expect(lease.signal.reason).toMatchObject({ reason: 'expired' })
  scene.server.resume()
})

test('fault 28: nested holds are all held, and all over at once', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast().lock(NAME)
  const outer = await lock.acquire()
  const inner = await lock.acquire({ within: outer })
  expect([outer.held, inner.held, outer.holdCount, inner.holdCount]).toEqual([true, true, 2, 2])
  expect(await lock.holdCount()).toBe(2)
  await inner.release()
  expect([outer.held, inner.held, outer.holdCount, inner.holdCount]).toEqual([true, false, 1, 0])
  expect(await lock.holdCount(outer.owner)).toBe(1)
  await outer.release()
  expect([outer.held, await lock.holdCount()]).toEqual([false, 0])
})
