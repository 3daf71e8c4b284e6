/** Renewal, group A: what is renewed, from when, and until when. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LeaseLostError, ManualClock } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { Door, openScene, watch } from './scene.js'
import { expected, IDLE, more, ttl, untilSettled, untilUndone } from './support/around.js'
import { answers, sends, teach } from './support/sent.js'

const NAME = 'orders:42'
const REASON = new Error('the caller went away')

test('fault 6: an acquire that is aborted before it was sent is never sent', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const client = scene.ioredis({ port: proxy.port })
  const holdfast = scene.holdfast({}, client)
  expect(await holdfast.lock(NAME).isLocked()).toBe(false)
  proxy.refuse()
  proxy.cutAll()
  await eventually(() => client.status !== 'ready', 'the client knows that the link is down')
  const controller = new AbortController()
  const got = expected(holdfast.lock(NAME).acquire({ signal: controller.signal }))
  await sleep(10)
  controller.abort(REASON)
  await expect(got).rejects.toBe(REASON)
  await expect(holdfast.lock(NAME).acquire({ signal: controller.signal })).rejects.toBe(REASON)
  await proxy.accept()
  expect(await holdfast.lock(NAME).isLocked()).toBe(false)
  expect(proxy.count(sends('acquire'))).toBe(0)
  expect(holdfast.stats()).toEqual(IDLE)
})

test.each(['lock', 'mutex'] as const)(
  'fault 6: a %s acquire that is aborted in flight is undone and not renewed',
  async (family) => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const holdfast = scene.holdfast({ lockWatchdogTimeout: 300 }, scene.ioredis({ port: proxy.port }))
    const granted = scene.hear('holdfast:acquire:granted')
    const gate = proxy.holdReplies(answers('acquire'))
    const controller = new AbortController()
    const got = expected(holdfast[family](NAME).acquire({ signal: controller.signal }))
    await gate.caught()
    expect(await scene.command('EXISTS', NAME)).toBe(1)
    controller.abort(REASON)
    await expect(got).rejects.toBe(REASON)
    gate.release()
    await untilUndone(holdfast)
    expect(await scene.command('EXISTS', NAME)).toBe(0)
    expect(holdfast.stats()).toEqual(IDLE)
    expect(granted).toEqual([])

    const renewed = scene.hear('holdfast:renew:ok')
    await holdfast.lock('witness').acquire()
    await more(renewed, 'witness', 2)
    expect(proxy.count(sends('renew', NAME))).toBe(0)
  },
)

/** Aborts so many microtasks after the client has the reply to the acquire: the turn of the grant has a few. */
const HOPS = Array.from({ length: 16 }, (_, hops) => hops)

test('fault 6: an abort in the tick of the grant gives the lock back, or comes too late', async () => {
  await using scene = await openScene()
  await teach(scene)
  const client = scene.ioredis()
  const holdfast = scene.holdfast({}, client)
  const evalsha = client.evalsha.bind(client)
  const granted = scene.hear('holdfast:acquire:granted')
  const ends: string[] = []

  for (const hops of HOPS) {
    const controller = new AbortController()
    const grants = granted.length
    let grantedBefore = -1
    Reflect.set(client, 'evalsha', (...args: Parameters<typeof evalsha>) => {
      Reflect.set(client, 'evalsha', evalsha)
      const reply = evalsha(...args)
      void reply.then(async () => {
        for (let left = hops; left > 0; left--) await undefined
        grantedBefore = granted.length
        controller.abort(REASON)
      })
      return reply
    })
    const end = await holdfast
      .lock(NAME)
      .acquire({ signal: controller.signal })
      .then(
        async (lease) => {
          expect(lease.held).toBe(true)
          // Nobody gets a lock that was not granted before the abort.
          if (grantedBefore >= 0) expect(grantedBefore).toBeGreaterThan(grants)
          expect(await scene.command('HKEYS', NAME)).toEqual([lease.owner])
          await sleep(0)
          expect(lease.held).toBe(true)
          expect(await lease.release()).toBe('released')
          return 'late'
        },
        (reason: unknown) => {
          expect(reason).toBe(REASON)
          return 'given back'
        },
      )
    ends.push(end)
    expect(holdfast.stats().held).toBe(0)
    await scene.untilGone(NAME)
  }
  // Once too late, always too late.
  expect(ends[0]).toBe('given back')
  expect(ends.at(-1)).toBe('late')
  expect(ends).toEqual([...ends].sort())
})

test.each(['ioredis', 'node-redis'] as const)(
  'fault 12: a renewal in flight leaves nothing behind the end of the work (%s)',
  async (library) => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const clock = new ManualClock()
    const client =
      library === 'ioredis' ? scene.ioredis({ port: proxy.port }) : await scene.nodeRedis(proxy.port)
    const holdfast = scene.holdfast({ clock }, client)
    const gate = proxy.holdRequests(sends('renew'))
    const work = new Door()
    const used = expected(holdfast.lock(NAME).using(() => work.opened))
    await eventually(() => holdfast.stats().held === 1, 'the lock is held')

    await clock.advance(10_000)
    await gate.caught()
    work.open()
    await eventually(() => proxy.count(sends('release')) === 1, 'the release is behind the renewal')
    if (library === 'ioredis') gate.release()
    // This client rejects what was in flight on a link that breaks.
    else proxy.cutAll()
    await untilSettled(clock, used)
    await used
    await clock.advance(120_000)
    // Behind whatever else was sent.
    expect(await holdfast.lock(NAME).isLocked()).toBe(false)
    expect(proxy.count(sends('renew'))).toBe(1)
    await clock.advance(120_000)
    expect(clock.pendingTimers).toBe(0)
    expect(holdfast.stats()).toEqual(IDLE)
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  },
)

test('fault 12: an extend in flight leaves nothing behind the end of the work', async () => {
  await using scene = await openScene()
  await teach(scene)
  const proxy = await scene.proxy()
  const clock = new ManualClock()
  const holdfast = scene.holdfast({ clock }, scene.ioredis({ port: proxy.port }))
  const gate = proxy.holdRequests(sends('renew'))
  let extending: Promise<void> | undefined = undefined
  const used = holdfast.lock(NAME).using((lease) => {
    extending = expected(lease.extend(20_000))
  })
  await gate.caught()
  await clock.advance(0)
  expect(watch(used).settled).toBe(false)
  gate.release()
  await used
  await expect(extending).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
  await clock.advance(120_000)
  expect(clock.pendingTimers).toBe(0)
  expect(holdfast.stats()).toEqual(IDLE)
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

test.each(['lock', 'mutex'] as const)('fault 15: every %s lease has its own time', async (family) => {
  await using scene = await openScene()
  const lock = scene.holdfast()[family](NAME)
  const hour = await lock.acquire({ leaseTime: 3_600_000 })
  expect(await ttl(scene, NAME)).toBeGreaterThan(3_500_000)
  await hour.release()
  const watched = await lock.acquire()
  expect(await ttl(scene, NAME)).toBeLessThanOrEqual(30_000)
  await watched.release()

  // Callers side by side on one object.
  const times = [60_000, 10_000, 20_000, undefined]
  const seen = await Promise.all(
    times.map((leaseTime) =>
      lock.using({ leaseTime }, async ({ remaining }) => ({ rest: await ttl(scene, NAME), remaining })),
    ),
  )
  seen.forEach(({ rest, remaining }, index) => {
    const asked = times[index] ?? 30_000
    expect(rest).toBeLessThanOrEqual(asked)
    expect(rest).toBeGreaterThan(asked - 5_000)
    expect(remaining).toBeLessThanOrEqual(rest)
  })
})

test('fault 15: leaving a nested hold leaves the time alone', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast().lock(NAME)
  const outer = await lock.acquire({ leaseTime: 10_000 })
  const same = await lock.acquire({ within: outer, leaseTime: 10_000 })
  await same.release()
  expect(await ttl(scene, NAME)).toBeLessThanOrEqual(10_000)
  expect(await ttl(scene, NAME)).toBeGreaterThan(5_000)

  const shorter = await lock.acquire({ within: outer, leaseTime: 1_000 })
  expect(await ttl(scene, NAME)).toBeGreaterThan(5_000)
  await shorter.release()
  const longer = await lock.acquire({ within: outer, leaseTime: 100_000 })
  await longer.release()
  expect(await ttl(scene, NAME)).toBeGreaterThan(90_000)
  expect(outer.remaining).toBeGreaterThan(90_000)
  expect(await outer.release()).toBe('released')
})

test('fault 17: maxHold ends the renewal of work that hangs', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 600 }, scene.ioredis({ port: proxy.port }))
  const renewed = scene.hear('holdfast:renew:ok')
  const lost = scene.hear('holdfast:lost')
  const hanging = new Door()
  const aborts: unknown[] = []
  const used = expected(
    holdfast.lock(NAME).using({ maxHold: 500 }, (lease) => {
      lease.signal.addEventListener('abort', () => aborts.push(lease.signal.reason))
      return hanging.opened
    }),
  )
  await more(renewed, NAME, 1)
  await eventually(() => lost.length > 0, 'its time is over')
  expect(lost).toMatchObject([{ lock: NAME, reason: 'max-hold' }])
  expect(aborts).toEqual([expect.objectContaining({ reason: 'max-hold' })])
  const before = proxy.count(sends('renew'))

  // Nobody gives anything back; the next owner gets it all the same.
  const next = await scene.holdfast().lock(NAME).acquire({ leaseTime: 60_000 })
  expect(proxy.count(sends('renew'))).toBe(before)
  expect(watch(used).settled).toBe(false)
  hanging.open()
  await expect(used).rejects.toThrow(LeaseLostError)
  expect(await scene.command('HKEYS', NAME)).toEqual([next.owner])
  expect(next.held).toBe(true)
})

test('fault 17: maxHold of the Holdfast holds for its leases', async () => {
  const clock = new ManualClock()
  await using scene = await openScene()
  const holdfast = scene.holdfast({ clock, maxHold: 45_000 })
  const lease = await holdfast.lock(NAME).acquire()
  const { signal } = lease
  const renewed = scene.hear('holdfast:renew:ok')
  for (let times = 1; times <= 4; times++) {
    await clock.advance(10_000)
    await eventually(() => renewed.length === times, 'it is renewed')
  }
  await clock.advance(4_999)
  expect(signal.aborted).toBe(false)
  await clock.advance(1)
  expect(signal.reason).toMatchObject({ reason: 'max-hold' })
  expect(lease.held).toBe(false)
})
