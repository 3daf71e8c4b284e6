import { describe, expect, test } from 'vitest'
import { constantBackoff, exponentialBackoff, type BackoffPolicy } from '../../src/index.js'
import { aborting } from './aborting.suite.js'
import { acquiring } from './acquiring.suite.js'
import { badOptions } from './bad-options.suite.js'
import { closing } from './closing.suite.js'
import { hear } from './hear.js'
import { leases } from './leases.suite.js'
import { names } from './names.suite.js'
import { observing } from './observing.suite.js'
import { reentry } from './reentry.suite.js'
import { turns, Watched } from './together.js'
import { trouble } from './trouble.suite.js'
import { using } from './using.suite.js'
import { waiting } from './waiting.suite.js'
import { wrongType } from './wrong-type.suite.js'
import { forKind, type Stage } from './world.js'

/** All that the spin lock promises: what a lock does, without a message. */
export function spinSuite(stage: Stage): void {
  describe('SpinLock', () => {
    const locks = forKind(stage, 'spin')
    acquiring(locks)
    using(locks)
    aborting(locks)
    leases(locks)
    waiting(locks)
    closing(locks)
    names(locks)
    wrongType(locks)
    badOptions(locks)
    observing(locks)
    trouble(locks)
    reentry(stage, 'spin')
    silence(stage)
    backoff(stage)
    stage.slowTests()
  })
}

/** A policy that notes what it is asked. */
class Noted implements BackoffPolicy {
  sequences = 0
  pauses = 0
  readonly #ms: (pauses: number) => unknown

  constructor(ms: (pauses: number) => unknown) {
    this.#ms = ms
  }

  sequence() {
    this.sequences += 1
    return { next: () => this.#ms(++this.pauses) as number }
  }
}

/** Nothing is published and nobody subscribes. */
function silence(stage: Stage): void {
  test('no channel is subscribed and nothing is published, by waiting, release and force', async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const lock = (await stage.world.holdfast()).spinLock(name)
    const other = (await stage.world.holdfast()).spinLock(name)
    const before = await pubsub()
    const lease = await lock.acquire()
    const waiter = other.acquire()
    await stage.world.pass(40)
    await lease.release()
    await waiter
    expect(await lock.forceRelease()).toBe(true)
    expect(await (await lock.acquire({ minHold: 5_000 })).release()).toBe('released')
    expect(await pubsub()).toEqual(before)
  })

  const pubsub = async () => {
    const info = String(await stage.server.command('INFO', 'commandstats'))
    return [...info.matchAll(/^cmdstat_(s?publish|s?subscribe):calls=(\d+)/gm)].map(([, ...rest]) => rest)
  }

  test('a waiter of a plain lock on the same name is not told, but polls as it was asked to', async () => {
    const name = stage.name()
    const lease = await (await stage.world.holdfast()).spinLock(name).acquire()
    const wakeups = hear('holdfast:wakeup', name)
    const waiter = (await stage.world.holdfast()).lock(name).acquire({ pollInterval: 20 })
    await stage.world.pass(50)
    await lease.release()
    expect((await stage.world.settled(waiter)).held).toBe(true)
    expect(wakeups.map(({ cause }) => cause)).not.toContain('message')
  })
}

/** The pauses between attempts. */
function backoff(stage: Stage): void {
  const held = async (policy?: BackoffPolicy) => {
    const name = stage.name()
    const lease = await (await stage.world.holdfast()).spinLock(name).acquire()
    const lock = (await stage.world.holdfast()).spinLock(name, { backoff: policy })
    return { name, lease, lock }
  }

  test('a free lock asks no policy; each call that waits has a sequence of its own', async () => {
    const policy = new Noted(() => 5)
    const { name, lease, lock } = await held(policy)
    const holdfast = await stage.world.holdfast()
    await holdfast.spinLock(stage.name(), { backoff: policy }).using(() => undefined)
    expect(policy.sequences).toBe(0)
    expect(await lock.tryAcquire()).toBeNull()
    expect(policy.sequences).toBe(0)
    for (const expected of [1, 2]) {
      expect(await stage.world.settled(lock.tryAcquire({ waitTime: 40 }))).toBeNull()
      expect(policy.sequences).toBe(expected)
    }
    await lease.release()
    expect(await lock.isLocked()).toBe(false)
    expect(lock.name).toBe(name)
  })

  test('in one process the callers queue, and only the head spins', async () => {
    const policy = new Noted(() => 5)
    const { name, lease, lock } = await held(policy)
    const order: number[] = []
    const waiters = [0, 1, 2, 3].map((i) => lock.using(() => order.push(i)))
    const wakeups = hear('holdfast:wakeup', name)
    await stage.world.until(() => wakeups.length > 3, 'the head tries again')
    expect(policy.sequences).toBe(1)
    await lease.release()
    await stage.world.settled(Promise.all(waiters))
    expect(order).toEqual([0, 1, 2, 3])
  })

  test('a pause never overruns waitTime: one deadline for everything', async () => {
    const { lock } = await held(constantBackoff(60_000))
    const startMs = stage.world.now()
    const attempt = new Watched(lock.tryAcquire({ waitTime: 100 }))
    expect(await stage.world.settled(attempt.promise)).toBeNull()
    const tookMs = stage.world.now() - startMs
    expect(tookMs).toBeGreaterThanOrEqual(99)
    // Only a clock of our own is exact.
    if (stage.world.server === undefined) expect(tookMs).toBeLessThanOrEqual(110)
  })

  test('the end of the waiting ends a pause: by abort and by closing', async () => {
    const { name } = await held()
    const holdfast = await stage.world.holdfast()
    const lock = holdfast.spinLock(name, { backoff: constantBackoff(60_000) })
    const controller = new AbortController()
    const aborted = new Watched(lock.acquire({ signal: controller.signal }))
    await stage.world.pass(20)
    controller.abort(new Error('enough'))
    await expect(aborted.promise).rejects.toThrow('enough')
    const closed = new Watched(lock.acquire())
    await stage.world.pass(20)
    const closing = holdfast.close({ drain: 0 })
    await expect(closed.promise).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    await stage.world.settled(closing)
  })

  test('pollInterval bounds the pauses', async () => {
    const { name, lease, lock } = await held(constantBackoff(60_000))
    const wakeups = hear('holdfast:wakeup', name)
    const waiter = lock.acquire({ pollInterval: 10 })
    await stage.world.until(() => wakeups.length > 2, 'it polls')
    await lease.release()
    await stage.world.settled(waiter)
  })

  test('the default tries soon, and again and again', async () => {
    const { name, lease, lock } = await held()
    const before: number = await stage.world.operations()
    const wakeups = hear('holdfast:wakeup', name)
    const waiter = lock.acquire()
    await stage.world.until(() => wakeups.length >= 6, 'six pauses are over')
    expect((await stage.world.operations()) - before).toBeGreaterThanOrEqual(6)
    expect(new Set(wakeups.map(({ cause }) => cause))).toEqual(new Set(['poll']))
    await lease.release()
    await stage.world.settled(waiter)
  })

  test.for([
    ['no number', '5', TypeError],
    ['nothing', undefined, TypeError],
    ['NaN', NaN, TypeError],
    ['0', 0, RangeError],
    ['a negative number', -1, RangeError],
    ['Infinity', Infinity, RangeError],
  ] as const)('a policy that answers with %s fails the call that waits', async ([, answer, kind]) => {
    const { lock } = await held(new Noted(() => answer))
    await expect(stage.world.settled(lock.acquire())).rejects.toThrow(kind)
    await expect(stage.world.settled(lock.acquire())).rejects.toThrow('A back-off must be')
  })

  test('what a policy throws reaches the caller, and the next one in line goes on', async () => {
    const { lease, lock } = await held(
      new Noted((pauses) => {
        if (pauses === 1) throw new Error('no idea')
        return 5
      }),
    )
    const failing = lock.acquire()
    const waiting = lock.acquire()
    await expect(stage.world.settled(failing)).rejects.toThrow('no idea')
    await turns(10)
    await lease.release()
    expect((await stage.world.settled(waiting)).held).toBe(true)
  })

  test('a policy has to be one', async () => {
    const holdfast = await stage.world.holdfast()
    for (const backoff of [null, 5, 'exponential', {}, { sequence: 1 }])
      expect(() => holdfast.spinLock('x', { backoff: backoff as never })).toThrow(TypeError)
    expect(() => holdfast.spinLock('x', { backOff: exponentialBackoff() } as never)).toThrow(/Unknown key/)
    const { lock } = await held({ sequence: () => 5 as never })
    await expect(stage.world.settled(lock.acquire())).rejects.toThrow('sequence() must give an object')
  })
}
