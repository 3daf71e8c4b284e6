/** Wake-up by messages, group D: messages that come too early, or not at all. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Holdfast } from '../../src/index.js'
import { IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import type { Proxy, Request } from '../support/proxy.js'
import { channelOf, openScene, type Scene } from './scene.js'

const NAME = 'orders:42'
/** With messages, no look by time comes before a test gives up. */
const NO_LOOKS = { pollInterval: 3_600_000 }
/** Holders live longer than any test, so that no expiry helps out. */
const LONG = { lockWatchdogTimeout: 3_600_000 }

function attempts({ name, words }: Request): boolean {
  return name === 'EVALSHA' && words[3] === NAME
}

async function subscribers(scene: Scene, name: string = NAME): Promise<number> {
  const [, count] = (await scene.command('PUBSUB', 'NUMSUB', channelOf(name))) as [string, number]
  return count
}

/** A waiter that listens. */
async function startWaiter(scene: Scene, holdfast: Holdfast): Promise<{ readonly got: Promise<unknown> }> {
  const got = holdfast.lock(NAME).acquire(NO_LOOKS)
  got.catch(() => undefined)
  await eventually(async () => (await subscribers(scene)) === 1, 'the waiter listens')
  return { got }
}

/** The waiter sleeps: nothing is asked for a while. */
async function untilAsleep(proxy: Proxy): Promise<void> {
  await eventually(async () => {
    const before = proxy.count(attempts)
    await sleep(100)
    return before > 0 && proxy.count(attempts) === before
  }, 'it sleeps')
}

/** Lets a holder release to a waiter again and again, until it was the message that woke the waiter. */
async function untilMessagesArrive(scene: Scene, holder: Holdfast, waiter: Holdfast): Promise<void> {
  const woken = scene.hear('holdfast:wakeup')
  await eventually(async () => {
    const before = woken.length
    const held = await holder.lock(NAME).acquire()
    const { got } = await startWaiter(scene, waiter)
    await held.release()
    await got
    await waiter.lock(NAME).forceRelease()
    return woken.slice(before).at(-1)?.cause === 'message'
  }, 'a message wakes the waiter')
}

test('fault 44: a release between the failed try and the subscription is not missed', async () => {
  await using scene = await openScene()
  const holder = await scene.holdfast(LONG).lock(NAME).acquire()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast(LONG, scene.ioredis({ port: proxy.port }))
  const confirmations = proxy.holdReplies('SUBSCRIBE')
  const got = holdfast.lock(NAME).acquire(NO_LOOKS)
  await confirmations.caught()

  // The waiter's look of now has the answer 'busy', which is on its way while the lock is freed.
  const answers = proxy.holdReplies(({ request }) => request !== undefined && attempts(request))
  await answers.caught()
  await holder.release()
  confirmations.release()
  await eventually(async () => (await subscribers(scene)) === 1, 'the waiter is subscribed')
  await scene.command('PING')
  answers.release()
  expect((await got).held).toBe(true)
})

test('fault 44: the confirmation of the subscription is a reason to try again', async () => {
  await using scene = await openScene()
  const holder = await scene.holdfast(LONG).lock(NAME).acquire()
  const proxy = await scene.proxy()
  const woken = scene.hear('holdfast:wakeup')
  const holdfast = scene.holdfast(LONG, scene.ioredis({ port: proxy.port }))
  const requests = proxy.holdRequests('SUBSCRIBE')
  const got = holdfast.lock(NAME).acquire(NO_LOOKS)
  await requests.caught()
  expect(await subscribers(scene)).toBe(0)
  requests.release()
  await eventually(() => woken.some(({ cause }) => cause === 'resync'), 'it tries again')
  await holder.release()
  expect((await got).held).toBe(true)
})

test('fault 44: while the subscription is not confirmed the waiter looks by itself', async () => {
  await using scene = await openScene()
  const holder = await scene.holdfast(LONG).lock(NAME).acquire()
  const proxy = await scene.proxy()
  proxy.holdRequests('SUBSCRIBE')
  const holdfast = scene.holdfast(LONG, scene.ioredis({ port: proxy.port }))
  const got = holdfast.lock(NAME).acquire(NO_LOOKS)
  await eventually(() => proxy.count('SUBSCRIBE') === 1, 'it subscribes')
  await holder.release()
  expect((await got).held).toBe(true)
  expect(await subscribers(scene)).toBe(0)
})

describe.each([IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6])('with $name', (variant) => {
  test('fault 45: a subscriber that was cut off listens again, and nothing of the gap is missed', async () => {
    await using scene = await openScene()
    const holder = scene.holdfast(LONG)
    const proxy = await scene.proxy()
    const client = await open(variant, proxy.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast(LONG, client.raw as object)
    await untilMessagesArrive(scene, holder, holdfast)

    // The gap: the link is cut, and its successor gets no confirmation yet.
    const held = await holder.lock(NAME).acquire()
    const { got } = await startWaiter(scene, holdfast)
    await untilAsleep(proxy)
    const gap = proxy.holdRequests('SUBSCRIBE')
    await scene.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await eventually(async () => (await subscribers(scene)) === 0, 'nobody listens')
    await held.release()
    await got
    await holdfast.lock(NAME).forceRelease()
    gap.release()
    await untilMessagesArrive(scene, holder, holdfast)
  })

  test('fault 45: a waiter that comes while the subscriber is away looks by itself', async () => {
    await using scene = await openScene()
    const holder = scene.holdfast(LONG)
    const proxy = await scene.proxy()
    const client = await open(variant, proxy.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast(LONG, client.raw as object)
    const held = await holder.lock(NAME).acquire()
    // Its channel stays for a moment after it has left.
    const controller = new AbortController()
    const before = holdfast.lock(NAME).acquire({ ...NO_LOOKS, signal: controller.signal })
    await eventually(async () => (await subscribers(scene)) === 1, 'it listens')
    controller.abort(new Error('enough'))
    await expect(before).rejects.toThrow('enough')
    proxy.holdRequests('SUBSCRIBE')
    await scene.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await eventually(async () => (await subscribers(scene)) === 0, 'nobody listens')

    const asked = proxy.count(attempts)
    const got = holdfast.lock(NAME).acquire(NO_LOOKS)
    await eventually(() => proxy.count(attempts) > asked + 3, 'it looks')
    await held.release()
    expect((await got).held).toBe(true)
  })

  test('fault 45: after a restart of the server waiters listen again', async () => {
    await using scene = await openScene()
    const client = await open(variant, scene.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast(LONG, client.raw as object)
    await scene.command('HSET', NAME, '0a1b2c3d-0001-4000-8000-00000000e15e:7', 1)
    const { got } = await startWaiter(scene, holdfast)
    // In good order: a server that is killed may accept one more link and reset it, on which node-redis 5 stays
    // `ready` and answers nothing any more.
    await scene.command('SHUTDOWN', 'NOSAVE').catch(() => undefined)
    await eventually(() => !scene.server.running, 'the server is down')
    await scene.server.start()
    await scene.reconnect()
    // The lock went with the server's memory, and the waiter finds out without a message.
    await got
    await holdfast.lock(NAME).forceRelease()
    await untilMessagesArrive(scene, scene.holdfast(LONG), holdfast)
  })
})

test('fault 46: a message sent while only the command link is back is made up for', async () => {
  await using scene = await openScene()
  const holder = await scene.holdfast(LONG).lock(NAME).acquire()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast(LONG, scene.ioredis({ port: proxy.port }))
  const { got } = await startWaiter(scene, holdfast)
  const before = proxy.count(attempts)
  // Commands get through again; subscriptions do not before the gate is opened.
  const gate = proxy.holdRequests('SUBSCRIBE')
  proxy.cutAll()
  await gate.caught()
  await eventually(() => proxy.count(attempts) > before, 'the command link is back')
  const answers = proxy.holdReplies(({ request }) => request !== undefined && attempts(request))
  await answers.caught()
  await holder.release()
  gate.release()
  await eventually(async () => (await subscribers(scene)) === 1, 'it listens again')
  answers.release()
  await got
})
