/** The server and its data, group L: lost keys, refused writes, clocks. */
import { rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Holdfast, ManualClock, type Clock, type Lease } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { openScene, watch, type Scene } from './scene.js'

const NAME = 'orders:42'
const SHORT = { lockWatchdogTimeout: 600 }

/** Resolves with the reason when the lease is lost. */
function lossOf(lease: Lease): Promise<unknown> {
  return new Promise((resolve) => {
    lease.signal.addEventListener('abort', () => {
      resolve(lease.signal.reason)
    })
  })
}

test('fault 116: the holder of an evicted key is told at the next renewal', async () => {
  await using scene = await openScene()
  const lease = await scene.holdfast(SHORT).lock(NAME).acquire()
  const lost = lossOf(lease)
  await scene.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-random')
  await scene.command('CONFIG', 'SET', 'maxmemory', '4mb')
  for (let entry = 0; (await scene.command('EXISTS', NAME)) === 1; entry++)
    await scene.command('SET', `cache:${entry}`, 'x'.repeat(50_000))
  const other = await scene.holdfast().lock(NAME).acquire({ leaseTime: 60_000 })
  expect(await lost).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
  expect(await lease.release()).toBe('stolen')
  expect(await scene.command('HKEYS', NAME)).toEqual([other.owner])
})

async function fill(scene: Scene): Promise<void> {
  await scene.command('SET', 'ballast', 'x'.repeat(2_000_000))
  await scene.command('CONFIG', 'SET', 'maxmemory', '1mb')
}

test.each(['lock', 'mutex'] as const)(
  'fault 117: a full server refuses to grant a %s, but renews and frees it',
  async (family) => {
    await using scene = await openScene()
    const renewed = scene.hear('holdfast:renew:ok')
    const failed = scene.hear('holdfast:renew:failed')
    const holdfast = scene.holdfast({ ...SHORT, commandTimeout: 300 })
    const lease = await holdfast[family](NAME).acquire()
    await fill(scene)
    const error: unknown = await holdfast[family]('another')
      .tryAcquire()
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'not-applied' })
    expect(String((error as Error).cause)).toMatch(/OOM/)

    const before = renewed.length
    await eventually(() => renewed.length > before + 1, 'it is renewed')
    await lease.extend(60_000)
    expect(failed).toEqual([])
    expect(await lease.release()).toBe('released')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  },
)

test('fault 117: a nested hold is left on a full server', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast().lock(NAME)
  await lock.using(async (outer) => {
    const inner = await lock.acquire()
    await fill(scene)
    expect(await inner.release()).toBe('still-held')
    expect(await scene.command('HGET', NAME, outer.owner)).toBe('1')
  })
  expect(await scene.command('EXISTS', NAME)).toBe(0)
})

test('fault 117: a release that the server refuses is repeated until it is done', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ commandTimeout: 300 })
  const lease = await holdfast.lock(NAME).acquire({ leaseTime: 60_000 })
  // A server that could not save refuses every write.
  rmSync(scene.server.dir, { recursive: true })
  await scene.command('CONFIG', 'SET', 'save', '3600 1')
  await scene.command('BGSAVE')
  await eventually(
    async () => String(await scene.command('INFO', 'persistence')).includes('rdb_last_bgsave_status:err'),
    'saving has failed',
  )
  const error: unknown = await holdfast
    .lock('another')
    .tryAcquire()
    .catch((reason: unknown) => reason)
  expect(String((error as Error).cause)).toMatch(/MISCONF/)
  expect(await lease.release()).toBe('unknown')
  expect(await scene.command('EXISTS', NAME)).toBe(1)
  await scene.command('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no')
  await scene.untilGone(NAME)
  await eventually(() => holdfast.stats().compensating === 0, 'nothing is left to do')
  // Otherwise it would try to save when it is stopped.
  await scene.command('CONFIG', 'SET', 'save', '')
})

test('fault 118: a clock that jumps ahead in the server ends leases, and every holder is told', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast(SHORT)
  const names = Array.from({ length: 20 }, (_, index) => `name:${index}`)
  const leases = await Promise.all(names.map((name) => holdfast.lock(name).acquire()))
  const losses = Promise.all(leases.map(lossOf))
  // What a jump does: every key expires at once.
  await Promise.all(names.map((name) => scene.command('PEXPIRE', name, 1)))
  for (const loss of await losses) expect(loss).toMatchObject({ reason: 'stolen' })
  expect(holdfast.stats().held).toBe(0)
})

describe.each([
  { what: 'an hour', spoil: ['PEXPIRE', NAME, '3600000'] },
  { what: 'for ever', spoil: ['PERSIST', NAME] },
])('a dead holder whose key lives on for $what', ({ spoil }) => {
  test('fault 118: a waiter does not wait for the TTL', async () => {
    await using scene = await openScene()
    const clock = new ManualClock()
    const untilSettled = async (promise: Promise<unknown>, what: string): Promise<void> => {
      const state = watch(promise)
      await eventually(async () => {
        await clock.advance(100)
        return state.settled
      }, what)
    }
    const holdfast = new Holdfast(scene.ioredis(), { clock })
    scene.atEnd(() => untilSettled(holdfast.close({ drain: 0 }), 'it is closed'))
    const woken = scene.hear('holdfast:wakeup')
    await scene.command('HSET', NAME, '0a1b2c3d-0002-4000-8000-00000000dead:7', 1)
    await scene.command(...spoil)

    const got = holdfast.lock(NAME).acquire()
    await eventually(() => woken.some(({ cause }) => cause === 'resync'), 'it listens')
    await scene.command('DEL', NAME)
    // In the time that the test has, far less than an hour of the waiter's time passes.
    await untilSettled(got, 'it has looked for itself')
    expect((await got).held).toBe(true)
    expect(woken.map(({ cause }) => cause)).not.toContain('expiry')
  })
})

test('fault 119: a key whose TTL never ends is told, and an operator frees it', async () => {
  await using scene = await openScene()
  const diagnoses = scene.hear('holdfast:diagnosis')
  await scene.command('HSET', NAME, '0a1b2c3d-0002-4000-8000-00000000dead:7', 1)
  const got = scene.holdfast().lock(NAME).acquire({ pollInterval: 3_600_000 })
  await eventually(() => diagnoses.some(({ kind, lock }) => kind === 'no-ttl' && lock === NAME), 'it is told')
  const operator = scene.holdfast().lock(NAME)
  expect(await operator.remainingTime()).toBe(Infinity)
  expect(await operator.forceRelease()).toBe(true)
  expect((await got).held).toBe(true)
})

test('fault 119: a waiter looks for itself at a key whose TTL never ends', async () => {
  await using scene = await openScene()
  const woken = scene.hear('holdfast:wakeup')
  await scene.command('HSET', NAME, '0a1b2c3d-0002-4000-8000-00000000dead:7', 1)
  const got = scene.holdfast().lock(NAME).acquire({ pollInterval: 100 })
  await eventually(() => woken.filter(({ cause }) => cause === 'poll').length > 2, 'it has looked')
  await scene.command('DEL', NAME)
  expect((await got).held).toBe(true)
})

/** The machine's clock, whose wall clock is wrong. */
class SkewedClock implements Clock {
  skewMs: number

  constructor(skewMs: number) {
    this.skewMs = skewMs
  }

  now(): number {
    return performance.now()
  }

  wall(): number {
    return Date.now() + this.skewMs
  }

  uptime(): number {
    return performance.now()
  }

  setTimer(callback: () => void, delayMs: number) {
    const timer = setTimeout(callback, Math.min(delayMs, 2 ** 31 - 1))
    const keepAlive = (on: boolean): void => {
      if (on) timer.ref()
      else timer.unref()
    }
    return { cancel: () => clearTimeout(timer), keepAlive }
  }
}

test('fault 120: clients whose clocks are two minutes apart exclude each other and outwait each other', async () => {
  await using scene = await openScene()
  const [early, late] = [-60_000, 60_000].map((skewMs) =>
    scene.holdfast({ ...SHORT, clock: new SkewedClock(skewMs) }),
  )
  if (early === undefined || late === undefined) throw new Error('two were made')
  for (const [holder, waiter] of [
    [early, late],
    [late, early],
  ] as const) {
    const lease = await holder.lock(NAME).acquire({ leaseTime: 500 })
    expect(await waiter.lock(NAME).tryAcquire({ waitTime: 100 })).toBeNull()
    expect(lease.held).toBe(true)
    const next = await waiter.lock(NAME).acquire()
    expect(lease.held).toBe(false)
    expect(next.held).toBe(true)
    await next.release()
  }
})

test('fault 120: a clock that is set forward takes no lock away', async () => {
  await using scene = await openScene()
  const clock = new SkewedClock(0)
  const renewed = scene.hear('holdfast:renew:ok')
  const lease = await scene.holdfast({ lockWatchdogTimeout: 30_000, clock }).lock(NAME).acquire()
  clock.skewMs = 60_000
  // It looks like a machine that slept: not held until the server says so, and the server is asked at once.
  expect(lease.held).toBe(false)
  await eventually(() => lease.held, 'it is confirmed')
  expect(renewed).toHaveLength(1)
  expect(lease.signal.aborted).toBe(false)
  expect(await scene.holdfast().lock(NAME).tryAcquire()).toBeNull()
})

test('fault 120: a clock that is set back prolongs no belief', async () => {
  await using scene = await openScene()
  const clock = new SkewedClock(0)
  const lease = await scene.holdfast({ clock }).lock(NAME).acquire({ leaseTime: 400 })
  clock.skewMs = -60_000
  expect(lease.held).toBe(true)
  await scene.untilGone(NAME)
  expect(lease.held).toBe(false)
  expect(lease.signal.aborted).toBe(true)
})

test('fault 120: no time of the client goes to the server', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast(SHORT, scene.ioredis({ port: proxy.port }))
  const renewed = scene.hear('holdfast:renew:ok')
  const lease = await holdfast.lock(NAME).acquire()
  await eventually(() => renewed.length > 0, 'it is renewed')
  await lease.release()
  await (await holdfast.mutex(NAME).acquire({ leaseTime: 1_000 })).release()
  // Owners are left out: their random number may look like anything.
  const words = proxy.requests.flatMap(({ name, words: all }) =>
    name.startsWith('EVAL') ? all.slice(3) : [],
  )
  const numbers = words.filter((word) => /^\d+$/.test(word)).map(Number)
  expect(numbers.length).toBeGreaterThan(5)
  expect(Math.max(...numbers)).toBeLessThanOrEqual(1_000)
})
