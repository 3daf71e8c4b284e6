/** Acquiring, group C: how long, and what a call ends with. */
import { describe, expect, test } from 'vitest'
import { Holdfast, ManualClock, UnavailableError, WaitTimeoutError } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { openScene, watch } from './scene.js'

const NAME = 'orders:42'
/** Commands never time out by themselves: only what the caller asked for can end a call. */
const PATIENT = { commandTimeout: 3_600_000, unavailableAfter: Infinity }

describe.each(['ioredis', 'node-redis'] as const)('with %s', (library) => {
  test('fault 31: waitTime ends a call while the server is away, and nothing is done later', async () => {
    await using scene = await openScene()
    const proxy = await scene.proxy()
    const client =
      library === 'ioredis' ? scene.ioredis({ port: proxy.port }) : await scene.nodeRedis(proxy.port)
    const holdfast = scene.holdfast(PATIENT, client)
    expect(await holdfast.lock(NAME).isLocked()).toBe(false)

    await scene.server.kill()
    await expect(holdfast.lock(NAME).tryAcquire({ waitTime: 300 })).rejects.toMatchObject({
      code: 'HOLDFAST_UNAVAILABLE',
    })
    await expect(holdfast.lock(NAME).acquire({ waitTime: 300 })).rejects.toThrow(UnavailableError)
    await expect(holdfast.lock(NAME).acquire({ signal: AbortSignal.timeout(300) })).rejects.toMatchObject({
      name: 'TimeoutError',
    })
    expect(scene.server.running).toBe(false)

    const before = proxy.requests.length
    await scene.server.start()
    await scene.reconnect()
    // The client's queue is empty once a later call was served.
    expect(await holdfast.lock('another').tryAcquire()).not.toBeNull()
    const late = proxy.requests.slice(before).filter(({ words }) => words.includes(NAME))
    expect(
      late.filter(({ words }) => !words.some((word) => word.startsWith('redisson_unlock_latch'))),
    ).toEqual([])
    await eventually(() => holdfast.stats().compensating === 0, 'nothing is left to be undone')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  })
})

test('fault 31: waitTime ends a call on a server that does not answer', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ ...PATIENT, subscriber: 'off' })
  // The first grant asks about replicas before anything else.
  await holdfast.lock(NAME).using(() => undefined)
  scene.server.pause()
  await expect(holdfast.lock(NAME).acquire({ waitTime: 300 })).rejects.toMatchObject({ outcome: 'unknown' })
  scene.server.resume()
  await eventually(() => holdfast.stats().compensating === 0, 'the acquire is undone')
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

test('fault 31: without waitTime a server that is away is given up after unavailableAfter', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ ...PATIENT, unavailableAfter: 200, commandTimeout: 50 })
  expect(await holdfast.lock(NAME).isLocked()).toBe(false)
  await scene.server.kill()
  await expect(holdfast.lock(NAME).acquire()).rejects.toMatchObject({
    code: 'HOLDFAST_UNAVAILABLE',
    outcome: 'not-applied',
  })
})

test.each(['lock', 'mutex'] as const)(
  'fault 32: the pauses of a waiting %s count against waitTime',
  async (family) => {
    const clock = new ManualClock()
    const holder = await Holdfast.connect(`memory:fault-32-${family}`, { clock })
    const waiter = await Holdfast.connect(`memory:fault-32-${family}`, { clock, subscriber: 'off' })
    await holder[family](NAME).acquire({ leaseTime: 60_000 })
    const waiting = waiter[family](NAME).tryAcquire({ waitTime: 500, pollInterval: 128 })
    const state = watch(waiting)
    await clock.advance(499)
    expect(state.settled).toBe(false)
    await clock.advance(1)
    expect(state.settled).toBe(true)
    expect(await waiting).toBeNull()
  },
)

test('fault 34: waitTime 0 is exactly one try', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  const other = scene.holdfast()
  const warm = await holdfast.lock('warm').acquire()
  await warm.release()

  await scene.forgetCalls()
  expect(await holdfast.lock(NAME).tryAcquire({ waitTime: 0 })).not.toBeNull()
  expect(await scene.scripts()).toBe(1)
  expect(await other.lock(NAME).tryAcquire({ waitTime: 0 })).toBeNull()
  expect(await scene.scripts()).toBe(2)
  await expect(other.lock(NAME).acquire({ waitTime: 0 })).rejects.toThrow(WaitTimeoutError)
  expect(await scene.scripts()).toBe(3)
})

test('fault 35: a wait that is aborted rejects with the reason and leaves nothing behind', async () => {
  await using scene = await openScene()
  const held = await scene.holdfast().lock(NAME).acquire()
  const holdfast = scene.holdfast()
  const reason = new Error('the caller went away')
  const calls = Array.from({ length: 3 }, () => {
    const controller = new AbortController()
    const options = { signal: controller.signal }
    return { controller, call: watchedCall(holdfast.lock(NAME).acquire(options)) }
  })
  await eventually(
    async () => String(await scene.command('PUBSUB', 'CHANNELS')) !== '',
    'the first one subscribed',
  )

  // The second waits in line, the first one leads.
  for (const index of [1, 0, 2]) {
    calls[index]?.controller.abort(reason)
    await expect(calls[index]?.call).rejects.toBe(reason)
  }
  expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
  await eventually(async () => String(await scene.command('PUBSUB', 'CHANNELS')) === '', 'nobody listens')
  expect(await held.release()).toBe('released')
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

/** Keeps a rejection from counting as unobserved until somebody waits for it. */
function watchedCall<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

test('fault 41: a hundred tries of a busy lock raise no error event', async () => {
  await using scene = await openScene()
  const client = scene.ioredis()
  const errors: unknown[] = []
  const failed = scene.hear('holdfast:acquire:failed')
  const diagnoses = scene.hear('holdfast:diagnosis')
  const warned = (warning: Error): void => {
    errors.push(warning)
  }
  client.on('error', warned)
  process.on('warning', warned)
  scene.atEnd(() => process.off('warning', warned))
  await scene.holdfast().lock(NAME).acquire()
  await scene
    .holdfast()
    .mutex(NAME + ' too')
    .acquire()

  const holdfast = scene.holdfast({ subscriber: 'off' }, client)
  const lock = holdfast.lock(NAME)
  for (let tries = 0; tries < 100; tries++) expect(await lock.tryAcquire()).toBeNull()
  await scene.forgetCalls()
  expect(await lock.tryAcquire({ waitTime: 300, pollInterval: 10 })).toBeNull()
  expect(await holdfast.mutex(NAME + ' too').tryAcquire({ waitTime: 300, pollInterval: 10 })).toBeNull()
  expect(await scene.scripts()).toBeGreaterThan(10)
  expect(errors).toEqual([])
  expect(failed).toEqual([])
  expect(diagnoses.filter(({ kind }) => kind !== 'subscribe-failed' && kind !== 'compensating')).toEqual([])
})

test('fault 42: by default a waiter outwaits a dead holder', async () => {
  await using scene = await openScene()
  // A holder that died: it neither renews nor tells anybody.
  await scene.command('HSET', NAME, '0a1b2c3d-0002-4000-8000-00000000dead:7', 1)
  await scene.command('PEXPIRE', NAME, 1_200)
  const woken = scene.hear('holdfast:wakeup')
  const lease = await scene.holdfast().lock(NAME).acquire()
  expect(lease.held).toBe(true)
  expect(await scene.command('HKEYS', NAME)).toEqual([lease.owner])
  // At its expiry, not at the next look.
  expect(woken.at(-1)).toEqual({ lock: NAME, cause: 'expiry' })
})
