/** Wake-up by messages, group D: many names, prefixes, and connections that only take messages. */
import { describe, expect, test } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { raw } from '../support/raw.js'
import { Child } from './child.js'
import { channelOf, openScene, type Scene } from './scene.js'

const NAME = 'orders:42'
const LONG = { lockWatchdogTimeout: 3_600_000 }

function subscriberLinks(scene: Scene): Promise<number> {
  return scene.command('CLIENT', 'LIST', 'TYPE', 'pubsub').then((list) => String(list).split('\n').length - 1)
}

async function channels(scene: Scene): Promise<number> {
  return ((await scene.command('PUBSUB', 'CHANNELS')) as unknown[]).length
}

test('fault 48: two thousand contended names share one connection for messages', async () => {
  await using scene = await openScene()
  const holder = scene.holdfast(LONG)
  const holdfast = scene.holdfast(LONG)
  const names = Array.from({ length: 2_000 }, (_, index) => `name:${index}`)
  const held = await Promise.all(names.map((name) => holder.lock(name).acquire()))
  const waiting = names.map((name) => holdfast.lock(name).acquire({ pollInterval: 3_600_000 }))
  await eventually(async () => (await channels(scene)) === 2_000, 'all of them listen')
  expect(await subscriberLinks(scene)).toBe(1)

  await Promise.all(held.map((lease) => lease.release()))
  const leases = await Promise.all(waiting)
  expect(leases.every(({ held: still }) => still)).toBe(true)
  await Promise.all(leases.map((lease) => lease.release()))
  await eventually(async () => (await channels(scene)) === 0, 'nobody listens any more')
  expect(await subscriberLinks(scene)).toBeLessThanOrEqual(1)
})

test('fault 48: where subscribing is refused, waiters look by themselves', async () => {
  await using scene = await openScene()
  await scene.command('ACL', 'SETUSER', 'app', 'on', '>secret', 'allkeys', 'allcommands', 'resetchannels')
  const diagnoses = scene.hear('holdfast:diagnosis')
  const held = await scene.holdfast(LONG).lock(NAME).acquire()
  const app = scene.ioredis({ username: 'app', password: 'secret' })
  const got = scene.holdfast(LONG, app).lock(NAME).acquire()
  await eventually(() => diagnoses.some(({ kind }) => kind === 'subscribe-failed'), 'it is told')
  await held.release()
  expect((await got).held).toBe(true)
})

test('fault 50: a hundred thousand names leave nothing behind', async () => {
  await using scene = await openScene()
  await using child = new Child('many-names', [String(scene.port)], ['--expose-gc'])
  expect(await child.ended, child.errors).toEqual({ code: 0, signal: null })
  const said = JSON.parse(child.lines.at(-1) ?? '') as { grown: number; channels: number; stats: unknown }
  // Some waited with a subscription; 90,000 names of anything would take more than this.
  expect(said.channels).toBeGreaterThan(0)
  expect(said.grown).toBeLessThan(3_000_000)
  expect(said.stats).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
  expect(await channels(scene)).toBe(0)
  // What is left in the server are tombstones, which go by themselves.
  const keys = (await scene.command('KEYS', '*')) as string[]
  expect(keys.filter((key) => !key.startsWith('redisson_unlock_latch:'))).toEqual([])
  for (const key of keys) expect(await scene.command('PTTL', key)).toBeGreaterThan(0)
})

describe.each([IOREDIS_5, IOREDIS_6, NODE_REDIS_6])('with $name', (variant) => {
  test.each(['lock', 'mutex'] as const)(
    "fault 53: a client's key prefix and a full name meet on one %s and its messages",
    async (family) => {
      await using scene = await openScene()
      const client = await open(variant, scene.port, { keyPrefix: 'p:' })
      scene.atEnd(() => client.destroy())
      const prefixed = scene.holdfast(LONG, client.raw as object)
      const plain = scene.holdfast(LONG)
      const sides = [prefixed[family](NAME), plain[family](`p:${NAME}`)] as const
      expect(prefixed[family](NAME).name).toBe(NAME)

      for (const [holder, waiter] of [sides, [sides[1], sides[0]] as const]) {
        const woken = scene.hear('holdfast:wakeup')
        await eventually(async () => {
          const held = await holder.acquire()
          expect(await scene.command('EXISTS', `p:${NAME}`)).toBe(1)
          expect(await waiter.tryAcquire()).toBeNull()
          const got = waiter.acquire({ pollInterval: 3_600_000 })
          await eventually(async () => (await channels(scene)) > 0, 'the waiter listens')
          await held.release()
          await (await got).release()
          return woken.at(-1)?.cause === 'message'
        }, 'a message wakes the waiter')
      }
    },
  )
})

describe.each([IOREDIS_5, NODE_REDIS_5])('with $name', (variant) => {
  test('fault 54: a client that is subscribed is refused at once', async () => {
    await using scene = await openScene()
    const client = await open(variant, scene.port)
    scene.atEnd(() => client.destroy())
    await client.subscribe('news')
    expect(() => new Holdfast(client.raw as object)).toThrow(/subscriber mode/)
  })

  test('fault 54: a client that subscribes later is told apart from a busy lock', async () => {
    await using scene = await openScene()
    const client = await open(variant, scene.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast({}, client.raw as object)
    await client.subscribe('news')
    const rejected = { code: 'HOLDFAST_UNAVAILABLE', outcome: 'not-applied' }
    const message = expect.stringMatching(/subscriber mode.*client of its own/) as string
    await expect(holdfast.lock(NAME).tryAcquire()).rejects.toMatchObject({ ...rejected, message })
    await expect(holdfast.lock(NAME).acquire()).rejects.toMatchObject({ ...rejected, message })
  })
})

test('fault 54: messages come over a connection of its own, and the client stays as it is', async () => {
  await using scene = await openScene()
  const client = scene.ioredis()
  await scene.holdfast(LONG).lock(NAME).acquire()
  const holdfast = scene.holdfast(LONG, client)
  expect(await holdfast.lock(NAME).tryAcquire({ waitTime: 100 })).toBeNull()
  await eventually(async () => (await subscriberLinks(scene)) === 1, 'a link for messages')
  const links = String(await scene.command('CLIENT', 'LIST', 'TYPE', 'pubsub'))
  expect(links).not.toContain(`id=${String(await client.client('ID'))} `)
  expect(await client.get('anything')).toBeNull()
})

test('fault 55: one message for each final release, and for nothing else', async () => {
  await using scene = await openScene()
  await using watcher = await raw(scene.port)
  const messages = await watcher.subscribe('*')
  const renewed = scene.hear('holdfast:renew:ok')
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 300 })
  const lock = holdfast.lock(NAME)

  const lease = await lock.acquire()
  await eventually(() => renewed.length >= 2, 'it is renewed')
  await (await lock.acquire({ within: lease })).release()
  await lease.extend(20_000)
  expect(await messages.take()).toEqual([])
  await lease.release()
  expect(await messages.take()).toEqual([{ channel: channelOf(NAME), payload: '0' }])
  // A minimum hold makes the TTL shorter, and waiters have to know.
  await (await lock.acquire({ minHold: 20_000 })).release()
  expect(await messages.take()).toEqual([{ channel: channelOf(NAME), payload: '0' }])
})
