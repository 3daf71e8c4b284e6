/** The client and Node around it, group K, within one process. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Redis as Redis6 } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { Holdfast, UnavailableError } from '../../src/index.js'
import { IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { raw } from '../support/raw.js'
import { openScene } from './scene.js'

const NAME = 'orders:42'
const VARIANTS = [IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6]

describe.each(VARIANTS)('with $name', (variant) => {
  test('fault 105: every promise settles while the server stands still', async () => {
    await using scene = await openScene()
    const client = await open(variant, scene.port)
    scene.atEnd(() => client.destroy())
    const settings = { lockWatchdogTimeout: 900, commandTimeout: 400 }
    const holdfast = scene.holdfast(settings, client.raw as object)
    const watched = await holdfast.lock('watched').acquire()
    const timed = await holdfast.lock('timed').acquire({ leaseTime: 60_000 })
    const spare = await holdfast.lock('spare').acquire({ leaseTime: 60_000 })
    const lost = new Promise((resolve) => {
      watched.signal.addEventListener('abort', () => {
        resolve(watched.signal.reason)
      })
    })

    scene.server.pause()
    const [released] = await Promise.all([
      timed.release(),
      expect(spare.extend(70_000)).rejects.toThrow(UnavailableError),
      expect(holdfast.lock(NAME).acquire({ waitTime: 300 })).rejects.toThrow(UnavailableError),
      expect(holdfast.lock(NAME).tryAcquire()).rejects.toThrow(UnavailableError),
      expect(holdfast.lock(NAME).isLocked()).rejects.toThrow(UnavailableError),
    ])
    expect(released).toBe('unknown')
    expect(await lost).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'expired' })
    expect(watched.held).toBe(false)
    expect(await watched.release()).toBe('expired')

    scene.server.resume()
    await scene.untilGone('timed')
    await eventually(() => holdfast.stats().compensating === 0, 'all is undone')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
    expect((await holdfast.lock(NAME).acquire()).held).toBe(true)
  })

  test('fault 112: the lock works the same whatever form the replies have', async () => {
    await using scene = await openScene()
    for (const resp of [2, 3] as const) {
      const client = await open(variant, scene.port, { resp, oddReplies: true })
      scene.atEnd(() => client.destroy())
      const renewed = scene.hear('holdfast:renew:ok')
      const holdfast = scene.holdfast({ lockWatchdogTimeout: 300 }, client.raw as object)
      const other = scene.holdfast()
      for (const lock of [holdfast.lock(NAME), holdfast.mutex('a mutex')]) {
        const lease = await lock.acquire()
        expect(await lock.isHeldBy(lease.owner)).toBe(true)
        expect(await lock.remainingTime()).toBeGreaterThan(0)
        await eventually(() => renewed.some(({ lock: name }) => name === lock.name), 'it is renewed')
        await lease.extend(60_000)
        expect(lease.held).toBe(true)
        expect(await lease.release()).toBe('released')
        expect(await lock.isLocked()).toBe(false)
      }
      const counted = await holdfast
        .lock(NAME)
        .using((outer) =>
          holdfast
            .lock(NAME)
            .using(async () => [
              await holdfast.lock(NAME).holdCount(),
              await holdfast.lock(NAME).holdCount(outer.owner),
            ]),
        )
      expect(counted).toEqual([2, 2])
      const held = await other.lock(NAME).acquire()
      expect(await holdfast.lock(NAME).tryAcquire()).toBeNull()
      await expect(holdfast.lock(NAME).acquire({ waitTime: 50 })).rejects.toMatchObject({
        holder: held.owner,
      })
      expect(await holdfast.lock(NAME).forceRelease()).toBe(true)
      expect(await held.release()).toBe('stolen')
    }
  })
})

test('fault 112: what is no client is refused in the constructor', () => {
  const bad: readonly unknown[] = [{}, null, undefined, 'redis://localhost', 7, Redis6, Promise.resolve({})]
  for (const client of bad)
    expect(() => new Holdfast(client as object)).toThrow(/Expected a client of ioredis/)
})

describe.each([IOREDIS_5, IOREDIS_6])('with $name', (variant) => {
  test.each([
    { settings: 'no resending', options: { autoResendUnfulfilledCommands: false } },
    {
      settings: 'no resending and no limit',
      options: { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: null },
    },
    { settings: 'no reconnecting', options: { retryStrategy: null } },
  ])('fault 106: a command that the client forgets ends with $settings', async ({ options }) => {
    await using scene = await openScene()
    const proxy = await scene.proxy()
    const { Redis } = (await import(variant.module)) as { Redis: typeof Redis6 }
    const client = new Redis({ port: proxy.port, host: '127.0.0.1', ...options })
    client.on('error', () => undefined)
    scene.atEnd(() => {
      client.disconnect()
    })
    const holdfast = scene.holdfast({ commandTimeout: 500 }, client)
    const lease = await holdfast.lock('held').acquire({ leaseTime: 60_000 })

    proxy.dropReply('EVALSHA')
    await expect(holdfast.lock(NAME).tryAcquire()).rejects.toMatchObject({
      code: 'HOLDFAST_UNAVAILABLE',
      outcome: 'unknown',
    })
    if ('retryStrategy' in options) {
      expect(await lease.release()).toBe('unknown')
      return
    }
    proxy.dropReply('EVALSHA')
    expect(['released', 'unknown']).toContain(await lease.release())
    await scene.untilGone('held')
    await eventually(() => holdfast.stats().compensating === 0, 'the acquire is undone')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  })
})

test("fault 111: the caller's context is there in the callback, after it, and at the loss", async () => {
  await using scene = await openScene()
  const context = new AsyncLocalStorage<string>()
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 300 })
  const other = await scene.holdfast().lock(NAME).acquire()
  const seen: Record<string, string | undefined> = {}
  const inContext = context.run('request 1', async () => {
    await holdfast.lock('free').using(() => {
      seen['in the callback'] = context.getStore()
    })
    seen['after using'] = context.getStore()
    const lease = await holdfast.lock(NAME).acquire()
    seen['after waiting'] = context.getStore()
    const lost = new Promise<void>((resolve) => {
      lease.signal.addEventListener('abort', () => {
        seen['at the loss'] = context.getStore()
        resolve()
      })
    })
    await context.run('something else', () => scene.command('DEL', NAME))
    await lost
    await lease.release()
    seen['after release'] = context.getStore()
  })
  await eventually(() => holdfast.stats().waiting === 1, 'it waits')
  await context.run('the other one', () => other.release())
  await inContext
  expect(new Set(Object.values(seen))).toEqual(new Set(['request 1']))
  expect(Object.keys(seen)).toHaveLength(5)
  // The library demands no context, and leaves none behind.
  expect(context.getStore()).toBeUndefined()
  const plain = await holdfast.lock('plain').using(() => context.getStore())
  expect(plain).toBeUndefined()
})

test('fault 115: closing ends waiters, frees what is held, and is told to nobody as an error', async () => {
  await using scene = await openScene()
  const client = scene.ioredis()
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 300 }, client)
  const failed = scene.hear('holdfast:renew:failed')
  await using watcher = await raw(scene.port)
  const messages = await watcher.subscribe('*')
  const names = Array.from({ length: 10 }, (_, index) => `name:${index}`)
  const other = scene.holdfast()
  const foreign = await Promise.all(names.map((name) => other.lock(`other ${name}`).acquire()))
  const held = await Promise.all(names.map((name) => holdfast.lock(name).acquire()))
  const links = async (): Promise<number> => String(await scene.command('CLIENT', 'LIST')).split('\n').length
  const linksBefore = await links()
  const waiting = names.map((name) => holdfast.lock(`other ${name}`).acquire())
  const endings = Promise.allSettled(waiting)
  await eventually(() => holdfast.stats().waiting === 10, 'ten wait')
  await eventually(async () => (await links()) > linksBefore, 'there is a link for messages')

  await Promise.all([holdfast.close({ drain: 0 }), holdfast.close(), holdfast[Symbol.asyncDispose]()])
  const closed = { status: 'rejected', reason: { code: 'HOLDFAST_CLOSED' } }
  expect(await endings).toMatchObject(names.map(() => closed))
  expect(held.map(({ held: still }) => still)).toEqual(names.map(() => false))
  expect(held[0]?.signal.reason).toMatchObject({ reason: 'closed' })
  expect(await scene.command('EXISTS', ...names)).toBe(0)
  expect(await messages.take()).toHaveLength(10)
  expect(foreign.every((lease) => lease.held)).toBe(true)
  await expect(holdfast.lock(NAME).acquire()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  await expect(holdfast.lock(NAME).tryAcquire()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })

  // The client stays its owner's, the link for messages was ours, and nothing is sent any more.
  await eventually(async () => (await links()) === linksBefore, 'the link for messages is closed')
  expect(await client.ping()).toBe('PONG')
  expect(failed).toEqual([])
  expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
})

test('fault 115: closing after the client was closed ends as quietly', async () => {
  await using scene = await openScene()
  for (const client of [scene.ioredis(), await scene.nodeRedis()]) {
    const holdfast = scene.holdfast({ commandTimeout: 300 }, client)
    const lease = await holdfast.lock(NAME).acquire({ leaseTime: 60_000 })
    if ('destroy' in client) client.destroy()
    else client.disconnect()
    await holdfast.close({ drain: 0 })
    expect(lease.held).toBe(false)
    expect(await lease.release()).toBe('unknown')
    await scene.command('DEL', NAME)
  }
})

test('fault 115: work that runs under a lease is let finish', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 300 })
  const renewed = scene.hear('holdfast:renew:ok')
  let finish = (): void => undefined
  const work = holdfast.lock(NAME).using(async (lease) => {
    await new Promise<void>((resolve) => {
      finish = resolve
    })
    return lease.held
  })
  await eventually(async () => (await scene.command('EXISTS', NAME)) === 1, 'it is held')
  const closed = holdfast.close()
  const before = renewed.length
  await eventually(() => renewed.length > before + 1, 'it is still renewed')
  finish()
  expect(await work).toBe(true)
  await closed
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})
