/** Acquiring, group C: commands that run twice, or for nobody. */
import { describe, expect, test } from 'vitest'
import { UnavailableError } from '../../src/index.js'
import { NODE_REDIS_5, NODE_REDIS_6, IOREDIS_5, IOREDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import type { Reply, Request } from '../support/proxy.js'
import { openScene, type Scene } from './scene.js'

const NAME = 'orders:42'

/** Teaches the server the scripts, so that every call is one EVALSHA. */
async function teach(scene: Scene): Promise<void> {
  const holdfast = scene.holdfast()
  for (const lock of [holdfast.lock('teach'), holdfast.mutex('teach too')]) {
    const lease = await lock.acquire({ waitTime: 0 })
    await lease.extend(20_000)
    await lease.release()
  }
}

/** A script call whose first key is this one. */
function about(name: string): (request: Request) => boolean {
  return ({ name: command, words }) => command === 'EVALSHA' && words[3] === name
}

function answering(name: string): (reply: Reply) => boolean {
  return ({ request }) => request !== undefined && about(name)(request)
}

describe.each([IOREDIS_5, IOREDIS_6])('$name sends again what got no answer', (variant) => {
  test('fault 29: an acquire that the client sends twice is freed by one release', async () => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const client = await open(variant, proxy.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast({}, client.raw as object)
    proxy.dropReply(answering(NAME))

    const lease = await holdfast.lock(NAME).acquire()
    expect(proxy.count(about(NAME))).toBe(2)
    expect(await scene.command('HGETALL', NAME)).toEqual([lease.owner, '1'])
    expect(await lease.release()).toBe('released')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  })
})

test('fault 29: a nested acquire that runs twice counts once', async () => {
  await using scene = await openScene()
  await teach(scene)
  const proxy = await scene.proxy()
  const lock = scene.holdfast({}, scene.ioredis({ port: proxy.port })).lock(NAME)

  const lease = await lock.acquire()
  proxy.dropReply(answering(NAME))
  const nested = await lock.acquire({ within: lease })
  expect(proxy.count(about(NAME))).toBe(3)
  expect(await scene.command('HGETALL', NAME)).toEqual([lease.owner, '2'])
  await nested.release()
  expect(await scene.command('HGETALL', NAME)).toEqual([lease.owner, '1'])
  await lease.release()
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

test('fault 29: an acquire of a mutex that runs twice is granted', async () => {
  await using scene = await openScene()
  await teach(scene)
  const proxy = await scene.proxy()
  const mutex = scene.holdfast({}, scene.ioredis({ port: proxy.port })).mutex(NAME)
  proxy.dropReply(answering(NAME))

  const lease = await mutex.acquire({ waitTime: 5_000 })
  expect(proxy.count(about(NAME))).toBe(2)
  expect(await scene.command('GET', NAME)).toBe(lease.owner)
  expect(await lease.release()).toBe('released')
})

test('fault 30: what the client gave up and the server then does is undone', async () => {
  await using scene = await openScene()
  await teach(scene)
  const holdfast = scene.holdfast({}, scene.ioredis({ commandTimeout: 200 }))
  const lock = holdfast.lock(NAME)
  expect(await lock.isLocked()).toBe(false)
  const released = scene.hear('holdfast:release')

  await scene.command('CLIENT', 'PAUSE', 600, 'WRITE')
  await expect(lock.tryAcquire()).rejects.toMatchObject({
    code: 'HOLDFAST_UNAVAILABLE',
    outcome: 'unknown',
  })
  expect(holdfast.stats().compensating).toBe(1)
  await eventually(() => holdfast.stats().compensating === 0, 'the acquire is undone')
  expect(await scene.command('EXISTS', NAME)).toBe(0)
  // The server did run it: there is a tombstone, and somebody else can have the lock at once.
  expect(await scene.command('KEYS', 'redisson_unlock_latch:*')).toHaveLength(1)
  expect(await scene.holdfast().lock(NAME).tryAcquire()).not.toBeNull()
  expect(released).toEqual([])
})

describe.each([NODE_REDIS_5, NODE_REDIS_6])('$name rejects what got no answer', (variant) => {
  test('fault 30: an acquire that was done but rejected is undone', async () => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const client = await open(variant, proxy.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast({}, client.raw as object)
    proxy.dropReply(answering(NAME))

    const error: unknown = await holdfast
      .lock(NAME)
      .tryAcquire()
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(UnavailableError)
    expect(error).toMatchObject({ outcome: 'unknown', lock: NAME })
    await eventually(() => holdfast.stats().compensating === 0, 'the acquire is undone')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  })
})

test.each(['lock', 'mutex'] as const)(
  'fault 30: a copy of a %s acquire that arrives after it was undone changes nothing',
  async (family) => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const holdfast = scene.holdfast({ commandTimeout: 300 }, scene.ioredis({ port: proxy.port }))
    // The request stays in the network, and the undoing overtakes it over a new link.
    const gate = proxy.holdRequests(about(NAME))
    await expect(holdfast[family](NAME).tryAcquire()).rejects.toThrow(UnavailableError)
    const late = gate.held[0]
    if (late === undefined) throw new Error('nothing was held')
    gate.drop()
    proxy.cutAll()
    await eventually(() => holdfast.stats().compensating === 0, 'the acquire is undone')

    const reply = await proxy.sendAgain(late)
    expect(reply).toBe(-2)
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  },
)
