import { describe, expect, test } from 'vitest'
import type { FairLock, FairLockOptions, Lease } from '../../src/index.js'
import { hear } from './hear.js'
import { turns, Watched } from './together.js'
import { aborting } from './aborting.suite.js'
import { acquiring } from './acquiring.suite.js'
import { badOptions } from './bad-options.suite.js'
import { closing, closingNested } from './closing.suite.js'
import { leases } from './leases.suite.js'
import { names } from './names.suite.js'
import { observing } from './observing.suite.js'
import { reentry } from './reentry.suite.js'
import { trouble } from './trouble.suite.js'
import { using } from './using.suite.js'
import { waiting } from './waiting.suite.js'
import { wrongType } from './wrong-type.suite.js'
import { forKind, STRANGER, type Stage } from './world.js'

/** All that the fair lock promises. */
export function fairSuite(stage: Stage): void {
  describe('FairLock', () => {
    const locks = forKind(stage, 'fair')
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
    closingNested(locks)
    reentry(stage, 'fair')
    order(stage)
    leaving(stage)
    silence(stage)
    nature(stage)
    channels(stage)
    stage.slowTests()
  })
}

/** A fair lock of another process. */
async function locksOf(stage: Stage, name: string, count: number): Promise<FairLock[]> {
  const holdfasts = Array.from({ length: count }, () => stage.world.holdfast())
  return (await Promise.all(holdfasts)).map((holdfast) => holdfast.fairLock(name))
}

/** Calls one lock after the other, each when the one before it stands in the queue. */
async function lineUp(
  stage: Stage,
  name: string,
  calls: readonly (() => Promise<unknown>)[],
): Promise<Watched<unknown>[]> {
  const heard = hear('holdfast:acquire:wait', name)
  const waiters: Watched<unknown>[] = []
  for (const call of calls) {
    const before = heard.length
    waiters.push(new Watched(call()))
    await stage.world.until(() => heard.length > before, 'it stands in the queue')
  }
  return waiters
}

function order(stage: Stage): void {
  describe('processes are served', () => {
    test('in the order of their coming, whatever the process', async () => {
      const name = stage.name()
      const locks = await locksOf(stage, name, 3)
      const lease = await locks[0]?.acquire()
      const served: number[] = []
      const turn = [0, 1, 2, 2, 1, 0, 0, 2, 1]
      const calls = turn.map((which, i) => async () => locks[which]?.using(() => void served.push(i)))
      const waiters = await lineUp(stage, name, calls)
      await lease?.release()
      await stage.world.settled(Promise.all(waiters.map(({ promise }) => promise)))
      expect(served).toEqual(turn.map((_, i) => i))
    })

    test('before a newcomer, also one that asks in the tick of the release and only once', async () => {
      const name = stage.name()
      const [holder, waiting, newcomer] = await locksOf(stage, name, 3)
      const lease = await holder?.acquire()
      const [waiter] = await lineUp(stage, name, [async () => waiting?.acquire()])
      const released = lease?.release()
      const late = holder?.tryAcquire()
      expect(await stage.world.settled(Promise.all([released, late]))).toEqual(['released', null])
      expect(await stage.world.settled(Promise.all([newcomer?.tryAcquire({ waitTime: 50 })]))).toEqual([null])
      await ((await waiter?.promise) as Lease).release()
      await (await newcomer?.tryAcquire())?.release()
    })

    test('one attempt does not stand in the queue', async () => {
      const name = stage.name()
      const [holder, once, next] = await locksOf(stage, name, 3)
      const lease = await holder?.acquire()
      for (let i = 0; i < 3; i++) expect(await once?.tryAcquire()).toBeNull()
      await lease?.release()
      expect((await next?.tryAcquire())?.held).toBe(true)
    })
  })
}

function leaving(stage: Stage): void {
  describe('who gives up leaves the queue, and the others keep their order', () => {
    test.for([
      ['first', 0],
      ['in the middle', 1],
      ['last', 2],
    ] as const)('standing %s', async ([, gone]) => {
      const name = stage.name()
      const locks = await locksOf(stage, name, 4)
      const lease = await locks[3]?.acquire()
      const controllers = [0, 1, 2].map(() => new AbortController())
      const served: number[] = []
      const calls = controllers.map(
        ({ signal }, i) =>
          async () =>
            locks[i]?.using({ signal }, () => void served.push(i)),
      )
      const waiters = await lineUp(stage, name, calls)
      controllers[gone]?.abort(new Error('gone'))
      await expect(waiters[gone]?.promise).rejects.toThrow('gone')
      await lease?.release()
      const rest = [0, 1, 2].filter((i) => i !== gone)
      await stage.world.settled(Promise.all(rest.map((i) => waiters[i]?.promise)))
      expect(served).toEqual(rest)
      // Nobody is left in it.
      expect((await locks[3]?.tryAcquire())?.held).toBe(true)
    })

    test('by the end of waitTime, by abort and by closing alike', async () => {
      const name = stage.name()
      const [holder, impatient, aborted, next] = await locksOf(stage, name, 4)
      const closed = await stage.world.holdfast()
      const lease = await holder?.acquire()
      const controller = new AbortController()
      const waiters = await lineUp(stage, name, [
        async () => impatient?.acquire({ waitTime: 80 }),
        async () => aborted?.acquire({ signal: controller.signal }),
        () => closed.fairLock(name).acquire(),
      ])
      await stage.world.settled(Promise.allSettled([waiters[0]?.promise]))
      controller.abort(new Error('enough'))
      await stage.world.settled(closed.close())
      const ends = await stage.world.settled(Promise.allSettled(waiters.map(({ promise }) => promise)))
      expect(ends).toMatchObject([
        { reason: { code: 'HOLDFAST_WAIT_TIMEOUT', holder: lease?.owner } },
        { reason: { message: 'enough' } },
        { reason: { code: 'HOLDFAST_CLOSED' } },
      ])
      await lease?.release()
      expect((await next?.tryAcquire())?.held).toBe(true)
    })

    test('a head that goes when the lock is free hands the word on', async () => {
      const name = stage.name()
      const locks = await locksOf(stage, name, 3)
      const startMs = stage.world.now()
      for (let i = 0; i < 10; i++) {
        const lease = await locks[0]?.acquire()
        const controller = new AbortController()
        const [head, next] = await lineUp(stage, name, [
          async () => locks[1]?.acquire({ signal: controller.signal }),
          async () => locks[2]?.acquire(),
        ])
        const released = lease?.release()
        await turns(i % 4)
        controller.abort(new Error('gone'))
        const [first] = await stage.world.settled(Promise.allSettled([head?.promise, released]))
        if (first.status === 'fulfilled') await (first.value as Lease).release()
        await ((await stage.world.settled(next?.promise ?? Promise.resolve())) as Lease).release()
      }
      // A clock of our own knows that nobody waited for its next look.
      if (stage.world.server === undefined) expect(stage.world.now() - startMs).toBeLessThanOrEqual(1_000)
    })
  })
}

function silence(stage: Stage): void {
  stage.slow('a waiter that waits longer than its place is kept keeps it', async () => {
    const name = stage.name()
    const short = { fairLockWaitTimeout: 300 }
    const holder = await stage.world.holdfast({ ...short, lockWatchdogTimeout: 900 })
    const lease = await holder.fairLock(name).acquire()
    const served: number[] = []
    const holdfasts = await Promise.all([0, 1, 2, 3, 4].map(() => stage.world.holdfast(short)))
    const calls = holdfasts.map(
      (holdfast, i) => () => holdfast.fairLock(name).using(() => void served.push(i)),
    )
    const waiters = await lineUp(stage, name, calls)
    await stage.world.pass(3_000)
    expect(served).toEqual([])
    await lease.release()
    await stage.world.settled(Promise.all(waiters.map(({ promise }) => promise)))
    expect(served).toEqual([0, 1, 2, 3, 4])
  })

  stage.slow(
    'each next one is woken by the end of a short lease, when holder after holder dies',
    async () => {
      const name = stage.name()
      const locks = await locksOf(stage, name, 4)
      const startMs = stage.world.now()
      await locks[0]?.acquire({ leaseTime: 400 })
      const calls = [1, 2, 3].map((i) => async () => locks[i]?.acquire({ leaseTime: 400 }))
      const waiters = await lineUp(stage, name, calls)
      for (const waiter of waiters)
        // So that nobody warns.
        expect(await stage.world.settled(waiter.promise)).toHaveProperty('lock', name)
      // Three leases; a clock of our own knows that nobody slept longer.
      if (stage.world.server === undefined) expect(stage.world.now() - startMs).toBeLessThanOrEqual(1_300)
    },
  )

  stage.slow('a waiter sleeps while the lock is held, and whoever stands behind it', async () => {
    const name = stage.name()
    const [holder, ...others] = await locksOf(stage, name, 4)
    const lease = await holder?.acquire()
    const waiters = await lineUp(
      stage,
      name,
      others.map((lock) => () => lock.using(() => undefined)),
    )
    const wakeups = hear('holdfast:wakeup', name)
    await stage.world.until(async () => {
      const before = wakeups.length
      await stage.world.pass(400)
      return wakeups.length === before
    }, 'they sleep')
    await lease?.release()
    await stage.world.settled(Promise.all(waiters.map(({ promise }) => promise)))
  })
}

function nature(stage: Stage): void {
  describe('its nature', () => {
    const make = async (name: string, options?: FairLockOptions) =>
      (await stage.world.holdfast()).fairLock(name, options)

    test('{ reentrant: false } throws SelfHeldError inside its own scope', async () => {
      const lock = await make(stage.name(), { reentrant: false })
      await lock.using(async () => {
        await expect(lock.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_SELF_HELD' })
        await expect(lock.tryAcquire({ waitTime: 10 })).rejects.toMatchObject({ code: 'HOLDFAST_SELF_HELD' })
      })
      expect((await lock.tryAcquire())?.held).toBe(true)
    })

    test('it excludes the other locks on the same hash', async () => {
      const name = stage.name()
      const holdfast = await stage.world.holdfast()
      await holdfast.fairLock(name).using(async (outer) => {
        expect(await (await stage.world.holdfast()).lock(name).tryAcquire()).toBeNull()
        // One name is one lock, whatever the class.
        expect(await holdfast.lock(name).using((inner) => inner.owner === outer.owner)).toBe(true)
      })
      await holdfast.lock(name).using(async () => {
        expect(await (await stage.world.holdfast()).fairLock(name).tryAcquire()).toBeNull()
      })
    })

    test('a release after the lease ran out tells so, and wakes whoever waits', async () => {
      const name = stage.name()
      const lock = await make(name)
      const lease = await lock.acquire()
      await stage.world.remove(name)
      expect(await lease.release()).toBe('stolen')
      const again = await lock.acquire()
      await stage.world.take(name, STRANGER, { kind: 'fair', ttlMs: 60_000 })
      expect(await again.release()).toBe('stolen')
      expect((await stage.world.read(name))?.value).toEqual({ [STRANGER]: 1 })
    })

    test('bad options are refused before anything is sent', async () => {
      const holdfast = await stage.world.holdfast()
      const name = stage.name()
      expect(() => holdfast.fairLock(name, { reentrant: 1 } as unknown as FairLockOptions)).toThrow(
        'reentrant must be a boolean, but is 1',
      )
      expect(() => holdfast.fairLock(name, { fair: true } as unknown as FairLockOptions)).toThrow(
        "Unknown key 'fair' in fair lock options",
      )
      expect(() => holdfast.fairLock('')).toThrow(RangeError)
    })
  })
}

/** What a real server sees. */
function channels(stage: Stage): void {
  const channelsOf = async (name: string) => {
    const reply = await stage.server.command('PUBSUB', 'CHANNELS', `redisson_lock__channel:{${name}}*`)
    return Array.isArray(reply) ? reply.map(String).sort() : []
  }

  stage.slow('each waiter listens on a channel of its own, until it has the lock', async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const [holder, ...others] = await locksOf(stage, name, 3)
    const lease = await holder?.acquire()
    const waiters = await lineUp(
      stage,
      name,
      others.map((lock) => () => lock.acquire()),
    )
    await stage.world.until(async () => (await channelsOf(name)).length === 2, 'both are subscribed')
    const heard = await channelsOf(name)
    await lease?.release()
    const leases = (await Promise.all([
      waiters[0]?.promise,
      waiters[0]?.promise.then(async (first) => {
        await (first as Lease).release()
        return waiters[1]?.promise
      }),
    ])) as Lease[]
    const expected = leases.map(({ owner }) => `redisson_lock__channel:{${name}}:${owner}`)
    expect(heard).toEqual(expected.sort())
    await leases[1]?.release()
    await stage.world.until(async () => (await channelsOf(name)).length === 0, 'none is subscribed')
  })

  test('a lock that is free costs two commands and no subscription', async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const lock = (await stage.world.holdfast()).fairLock(name)
    const before = await stage.world.operations()
    for (let i = 0; i < 5; i++) await lock.using(() => turns())
    expect(await channelsOf(name)).toEqual([])
    expect(await stage.world.operations()).toBe(before + 10)
  })

  test("without a subscriber waiters poll: { subscriber: 'off' }", async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const [holder] = await locksOf(stage, name, 1)
    const lease = await holder?.acquire()
    const polling = await stage.world.holdfast({ subscriber: 'off' })
    const served: number[] = []
    const calls = [0, 1, 2].map((i) => () => polling.fairLock(name).using(() => void served.push(i)))
    const waiters = await lineUp(stage, name, calls)
    await lease?.release()
    await Promise.all(waiters.map(({ promise }) => promise))
    expect(served).toEqual([0, 1, 2])
  })
}
