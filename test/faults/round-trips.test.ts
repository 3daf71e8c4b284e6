/** What things cost: commands that the server counts, and messages. */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { ExclusiveLock, Holdfast } from '../../src/index.js'
import { IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { openScene, type Scene } from './scene.js'

const NAME = 'orders:42'
const LONG = { lockWatchdogTimeout: 3_600_000 }

/** Commands that the server counted, without those that a script ran and those of the test. */
async function sent(scene: Scene): Promise<Record<string, number>> {
  const inScripts = ['exists', 'hset', 'pexpire', 'hget', 'pttl', 'hscan', 'hdel', 'publish', 'hexists']
  const others = ['info', 'config|resetstat', 'pubsub|numsub', 'set', 'get', 'del']
  const calls = [...(await scene.calls())].filter(([name]) => ![...inScripts, ...others].includes(name))
  return Object.fromEntries(calls)
}

/** Listens to all that clients send; what scripts run is not among it. */
async function monitor(scene: Scene): Promise<() => Promise<string[]>> {
  const client = scene.ioredis({ port: scene.port })
  const listener = await client.monitor()
  scene.atEnd(() => listener.disconnect())
  let words: string[] = []
  listener.on('monitor', (_time: string, args: string[], source: string) => {
    if (source !== 'lua')
      words.push(
        args
          .slice(0, args[0] === 'ping' ? 2 : 1)
          .join(' ')
          .toLowerCase(),
      )
  })
  let marks = 0
  return async () => {
    const mark = `ping mark${String((marks += 1))}`
    await client.ping(mark.slice('ping '.length))
    await eventually(() => words.includes(mark), 'the monitor has seen it all')
    const seen = words.filter((word) => word !== mark)
    words = []
    return seen
  }
}

describe.each([IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6])('with $name', (variant) => {
  test('an uncontended acquire and release are two scripts and nothing else', async () => {
    await using scene = await openScene()
    const client = await open(variant, scene.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast({}, client.raw as object)
    const uses: readonly ((lock: ExclusiveLock) => Promise<unknown>)[] = [
      (lock) => lock.using(() => undefined),
      (lock) => lock.tryUsing({ waitTime: 1_000 }, () => undefined),
      (lock) => lock.acquire({ leaseTime: 60_000 }).then((lease) => lease.release()),
      (lock) => lock.tryAcquire().then((lease) => lease?.release()),
    ]
    const heard = await monitor(scene)
    for (const family of ['lock', 'mutex'] as const) {
      await holdfast[family]('the first one teaches the script').using(() => undefined)
      await heard()
      for (const [index, use] of uses.entries()) {
        await use(holdfast[family](`${family} ${index}`))
        expect(await heard()).toEqual(['evalsha', 'evalsha'])
      }
      // Nothing comes afterwards either.
      await sleep(100)
      expect(await heard()).toEqual([])
    }
  })

  test('a waiting acquire adds one subscription and one look', async () => {
    await using scene = await openScene()
    const holder = scene.holdfast(LONG)
    const client = await open(variant, scene.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast(LONG, client.raw as object)
    const woken = scene.hear('holdfast:wakeup')
    const waits = scene.hear('holdfast:acquire:wait')

    // The link for messages is there already, and both sides know the scripts.
    const warm = await holder.lock('warm').acquire()
    expect(await holdfast.lock('warm').tryAcquire({ waitTime: 200 })).toBeNull()
    await warm.release()
    const held = await holder.lock(NAME).acquire()
    await scene.forgetCalls()
    woken.length = 0
    waits.length = 0

    // Several wait, and one of them speaks for all.
    const waiting = Array.from({ length: 5 }, () =>
      holdfast.lock(NAME).using({ pollInterval: 3_600_000 }, () => undefined),
    )
    await eventually(() => waits.length === 5, 'all of them wait')
    await eventually(() => woken.some(({ cause }) => cause === 'resync'), 'the subscription is confirmed')
    await held.release()
    await Promise.all(waiting)
    const { evalsha = 0, subscribe, ...rest } = await sent(scene)
    expect(rest).toEqual({})
    expect(subscribe).toBe(1)
    // The first try, the look after the confirmation, the holder's release; then a try and a release each.
    // While the confirmation is on its way, a look by time may come between.
    const polls = woken.filter(({ cause }) => cause === 'poll').length
    expect(evalsha - polls).toBeLessThanOrEqual(2 + 1 + 5 * 2)
    expect(woken.map(({ cause }) => cause)).toContain('message')
  })

  test('fault 79: the end of a write is told twice, and each process that waits looks once', async () => {
    await using scene = await openScene()
    const holder = scene.holdfast(LONG)
    const others: Holdfast[] = []
    for (let i = 0; i < 3; i++) {
      const client = await open(variant, scene.port)
      scene.atEnd(() => client.destroy())
      others.push(scene.holdfast(LONG, client.raw as object))
    }
    const woken = scene.hear('holdfast:wakeup')
    const held = await holder.readWriteLock(NAME).write.acquire()
    const controller = new AbortController()
    const { signal } = controller
    const waiting = others.map((each) =>
      each.readWriteLock(NAME).write.acquire({ signal, pollInterval: 3_600_000 }),
    )
    await eventually(
      () => woken.filter(({ cause }) => cause === 'resync').length === 3,
      'each has its subscription confirmed',
    )
    await sleep(100)
    await scene.forgetCalls()
    await held.release()
    const first = await Promise.race(waiting)
    await sleep(100)
    // The release, and one try each.
    expect((await sent(scene))['evalsha']).toBe(1 + 3)
    controller.abort()
    await Promise.allSettled(waiting)
    await first.release()
  })
})

test('a waiter is woken by the message, not by the end of the TTL', async () => {
  await using scene = await openScene()
  const woken = scene.hear('holdfast:wakeup')
  const holder = scene.holdfast()
  const holdfast = scene.holdfast()
  await eventually(async () => {
    const held = await holder.lock(NAME).acquire({ leaseTime: 60_000 })
    woken.length = 0
    const got = holdfast.lock(NAME).using(() => undefined)
    await eventually(() => woken.some(({ cause }) => cause === 'resync'), 'it listens')
    await sleep(20)
    await held.release()
    await got
    return woken.at(-1)?.cause === 'message'
  }, 'the message wakes it')
  expect(woken.map(({ cause }) => cause)).not.toContain('expiry')
})

test('a thousand locks with a watchdog cost ten renewals a period', async () => {
  await using scene = await openScene()
  const renewed = scene.hear('holdfast:renew:ok')
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 6_000 })
  const leases = await Promise.all(
    Array.from({ length: 1_000 }, (_, index) => holdfast.lock(`name:${index}`).acquire()),
  )
  const renewAll = async (): Promise<number> => {
    await scene.forgetCalls()
    renewed.length = 0
    await eventually(() => new Set(renewed.map(({ owner }) => owner)).size === 1_000, 'all are renewed')
    return scene.scripts()
  }
  // The first time, the server does not know the script, and each of the ten is sent twice.
  expect(await renewAll()).toBeLessThanOrEqual(24)
  expect(await renewAll()).toBeLessThanOrEqual(12)
  expect(leases.every(({ held }) => held)).toBe(true)
})

test('locks that are taken one by one are renewed together', async () => {
  await using scene = await openScene()
  const renewed = scene.hear('holdfast:renew:ok')
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 3_000 })
  // Spread over a whole period.
  for (let index = 0; index < 300; index++) {
    await holdfast.lock(`name:${index}`).acquire()
    if (index % 3 === 0) await sleep(9)
  }
  renewed.length = 0
  await scene.forgetCalls()
  await eventually(() => renewed.length >= 900, 'three periods')
  const periods = renewed.length / 300
  // What is due within a tenth of the period goes along.
  expect((await scene.scripts()) / periods).toBeLessThanOrEqual(12)
})

test.each(['lock', 'mutex'] as const)(
  'five hundred waiters of one process for one %s send fewer than five commands a second',
  async (family) => {
    await using scene = await openScene()
    const holder = scene.holdfast()
    const holdfast = scene.holdfast()
    const held = await holder[family](NAME).acquire({ leaseTime: 60_000 })
    const controller = new AbortController()
    setMaxListeners(0, controller.signal)
    const waiting = Promise.allSettled(
      Array.from({ length: 500 }, () => holdfast[family](NAME).acquire({ signal: controller.signal })),
    )
    await eventually(() => holdfast.stats().waiting === 500, 'all of them wait')
    const first = await commands(scene)
    const started = performance.now()
    await sleep(3_000)
    const last = await commands(scene)
    const seconds = (performance.now() - started) / 1_000
    expect((last - first) / seconds).toBeLessThan(5)
    controller.abort()
    const endings = await waiting
    expect(endings.every(({ status }) => status === 'rejected')).toBe(true)
    await held.release()
  },
)

/** How many commands clients have sent. */
async function commands(scene: Scene): Promise<number> {
  return Object.values(await sent(scene)).reduce((sum, calls) => sum + calls, 0)
}
