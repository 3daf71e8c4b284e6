import { describe, expect, test } from 'vitest'
import type { Lease } from '../../src/index.js'
import { hear } from './hear.js'
import { turns, Watched } from './together.js'
import { lockOf, TRAITS, type KindStage } from './world.js'

/** The queue of a process, and how waiters learn that the lock may be free. */
export function waiting({ stage, kind, lock }: KindStage): void {
  describe('callers of one process wait in line', () => {
    test('and get the lock in the order in which they came', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const lease = await mine.acquire()
      const order: number[] = []
      const waiters = [0, 1, 2, 3, 4].map((i) =>
        mine.using(async () => {
          order.push(i)
          await turns()
        }),
      )
      await stage.world.pass(20)
      await lease.release()
      await stage.world.settled(Promise.all(waiters))
      expect(order).toEqual([0, 1, 2, 3, 4])
    })

    test('through any of their lock objects', async () => {
      const name = stage.name()
      const holdfast = await stage.world.holdfast()
      const order: number[] = []
      await stage.world.settled(
        Promise.all(
          [0, 1, 2, 3].map((i) =>
            lockOf(kind, holdfast, name).using({ waitTime: 20_000 }, () => order.push(i)),
          ),
        ),
      )
      expect(order).toEqual([0, 1, 2, 3])
    })

    test('and a newcomer joins the tail, also in the tick of the release', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const lease = await mine.acquire()
      const order: string[] = []
      const waiter = mine.using(() => order.push('waiter'))
      await stage.world.pass(20)
      const released = lease.release()
      const newcomer = mine.using({ waitTime: 20_000 }, () => order.push('newcomer'))
      await stage.world.settled(Promise.all([released, waiter, newcomer]))
      expect(order).toEqual(['waiter', 'newcomer'])
    })

    test('each for no longer than its own waitTime', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const mine = await lock(name)
      const first = new Watched(mine.acquire())
      const second = new Watched(mine.acquire({ waitTime: 60 }))
      const third = new Watched(mine.tryAcquire({ waitTime: 40 }))
      const fourth = new Watched(mine.acquire())
      expect(await stage.world.settled(third.promise)).toBeNull()
      await expect(stage.world.settled(second.promise)).rejects.toMatchObject({
        code: 'HOLDFAST_WAIT_TIMEOUT',
      })
      expect([first.state, fourth.state]).toEqual(['pending', 'pending'])
      await lease.release()
      await (await stage.world.settled(first.promise)).release()
      await stage.world.settled(fourth.promise)
    })

    test.for([
      ['head', 0, [1, 2]],
      ['middle', 1, [0, 2]],
      ['tail', 2, [0, 1]],
    ] as const)('and keep their order when the %s goes', async ([, gone, rest]) => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const mine = await lock(name)
      const controllers = [0, 1, 2].map(() => new AbortController())
      const order: number[] = []
      const waiters = controllers.map(({ signal }, i) => mine.using({ signal }, () => order.push(i)))
      await stage.world.pass(20)
      controllers[gone]?.abort(new Error('gone'))
      await expect(waiters[gone]).rejects.toThrow('gone')
      await lease.release()
      await stage.world.settled(Promise.all(rest.map((i) => waiters[i])))
      expect(order).toEqual(rest)
    })

    test('a head that goes in the tick of the release does not take the wake-up with it', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const mine = await lock(name)
      const controller = new AbortController()
      const head = new Watched(mine.acquire({ signal: controller.signal }))
      const next = mine.acquire()
      await stage.world.pass(30)
      const released = lease.release()
      controller.abort(new Error('gone'))
      await expect(head.promise).rejects.toThrow('gone')
      await released
      expect((await stage.world.settled(next)).held).toBe(true)
    })

    test('nothing is left of them afterwards', async () => {
      const name = stage.name()
      const holdfast = await stage.world.holdfast()
      const mine = lockOf(kind, holdfast, name)
      const lease = await mine.acquire()
      const controller = new AbortController()
      const waiters = [
        mine.acquire({ signal: controller.signal }),
        mine.acquire({ waitTime: 30 }),
        mine.tryAcquire({ waitTime: 40 }),
      ].map((attempt) => new Watched<Lease | null>(attempt))
      expect(holdfast.stats()).toMatchObject({ held: 1, waiting: 3, contests: kind === 'fair' ? 3 : 1 })
      await stage.world.pass(60)
      controller.abort()
      await stage.world.settled(Promise.allSettled(waiters.map(({ promise }) => promise)))
      await lease.release()
      expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
    })
  })

  describe('a waiter is woken', () => {
    test('by the message of the release', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const wakeups = hear('holdfast:wakeup', name)
      const waiter = (await lock(name)).acquire()
      await stage.world.pass(40)
      await lease.release()
      await stage.world.settled(waiter)
      if (TRAITS[kind].told) expect(wakeups.at(-1)).toEqual({ lock: name, cause: 'message' })
      else expect(['message', 'poll']).toContain(wakeups.at(-1)?.cause)
    })

    test('by the message of a forced release', async () => {
      const name = stage.name()
      await (await lock(name)).acquire()
      const wakeups = hear('holdfast:wakeup', name)
      const waiter = (await lock(name)).acquire()
      await stage.world.pass(40)
      await (await lock(name)).forceRelease()
      await stage.world.settled(waiter)
      if (TRAITS[kind].told) expect(wakeups.at(-1)?.cause).toBe('message')
    })

    stage.slow(
      "a waiter is woken by the end of the holder's TTL, when the holder is gone without a word",
      async () => {
        const name = stage.name()
        const lease = await (await lock(name)).acquire({ leaseTime: 1_000 })
        const wakeups = hear('holdfast:wakeup', name)
        const next = await stage.world.settled((await lock(name)).acquire())
        expect(lease.held).toBe(false)
        expect(next.held).toBe(true)
        if (TRAITS[kind].told) expect(wakeups.at(-1)?.cause).toBe('expiry')
      },
    )

    test('by its own pollInterval, when the key is gone without a message', async () => {
      const name = stage.name()
      await (await lock(name)).acquire()
      const wakeups = hear('holdfast:wakeup', name)
      const waiter = (await lock(name)).acquire({ pollInterval: 30 })
      await stage.world.pass(60)
      await stage.world.remove(name)
      await stage.world.settled(waiter)
      expect(wakeups.at(-1)?.cause).toBe('poll')
    })

    test('by a look within five seconds, when all messages are lost', async () => {
      // Real seconds are not worth it: the clock is the same code everywhere.
      if (stage.world.server !== undefined) return
      const name = stage.name()
      const startMs = stage.world.now()
      await (await lock(name)).acquire()
      const waiter = (await lock(name)).acquire()
      await stage.world.pass(40)
      await stage.world.remove(name)
      await stage.world.settled(waiter)
      expect(stage.world.now() - startMs).toBeLessThanOrEqual(5_100)
    })
  })

  stage.slow('a waiter that has subscribed sleeps; a mutex also polls', async () => {
    const name = stage.name()
    const lease = await (await lock(name)).acquire()
    const wakeups = hear('holdfast:wakeup', name)
    const waiter = (await lock(name)).acquire()
    const silence = async () => {
      const before = wakeups.length
      await stage.world.pass(400)
      return wakeups.length === before
    }
    if (TRAITS[kind].told) await stage.world.until(silence, 'it sleeps')
    else await stage.world.until(() => wakeups.filter(({ cause }) => cause === 'poll').length > 5, 'it polls')
    await lease.release()
    await stage.world.settled(waiter)
  })

  test('a release that comes between the attempt and the confirmed subscription is not missed', async () => {
    const name = stage.name()
    const [holder, waiter] = [await lock(name), await lock(name)]
    for (let i = 0; i < 20; i++) {
      const lease = await holder.acquire()
      const next = waiter.acquire()
      await turns(i % 5)
      await lease.release()
      await (await stage.world.settled(next)).release()
    }
  })

  test('a holder without a TTL is diagnosed once, and met when it is gone', async () => {
    const name = stage.name()
    await (await lock(name)).acquire()
    await stage.world.persist(name)
    const diagnoses = hear('holdfast:diagnosis', name)
    const attempt = (await lock(name)).acquire({ pollInterval: 10 })
    await stage.world.until(() => diagnoses.length > 0, 'the diagnosis is made')
    await stage.world.pass(40)
    const told = diagnoses.filter((diagnosis) => diagnosis.kind !== 'members')
    expect(told).toMatchObject([{ lock: name, kind: 'no-ttl' }])
    await stage.world.remove(name)
    await stage.world.settled(attempt)
  })
}

/** The same on a real server: subscriptions, and life without them. */
export function subscribing({ stage, kind, lock }: KindStage): void {
  const channelOf = (name: string) => `${TRAITS[kind].channel}:{${name}}`
  const subscribers = async (name: string) => {
    const reply = await stage.server.command('PUBSUB', 'NUMSUB', channelOf(name))
    return Array.isArray(reply) ? Number(reply[1]) : NaN
  }

  stage.slow('waiters of one process share one subscription, which ends with them', async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const lease = await (await lock(name)).acquire()
    const mine = await lock(name)
    const waiters = Array.from({ length: 20 }, () => mine.using(() => turns()))
    await stage.world.until(async () => (await subscribers(name)) === 1, 'the channel is subscribed')
    await stage.world.pass(30)
    expect(await subscribers(name)).toBe(1)
    await lease.release()
    await Promise.all(waiters)
    await stage.world.until(async () => (await subscribers(name)) === 0, 'the channel is unsubscribed')
  })

  test('a lock that is free costs no subscription', async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const mine = await lock(name)
    const before = await stage.world.operations()
    for (let i = 0; i < 5; i++) await mine.using(() => turns())
    expect(await subscribers(name)).toBe(0)
    expect(await stage.world.operations()).toBe(before + 10)
  })

  test('messages may come over a client of the user, which stays open', async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const subscriber = await stage.server.client()
    const lease = await (await lock(name)).acquire()
    const wakeups = hear('holdfast:wakeup', name)
    const holdfast = await stage.world.holdfast({ subscriber })
    const waiter = lockOf(kind, holdfast, name).acquire()
    await stage.world.until(async () => (await subscribers(name)) === 1, 'the channel is subscribed')
    await stage.world.pass(30)
    await lease.release()
    await (await waiter).release()
    if (TRAITS[kind].told) expect(wakeups.at(-1)?.cause).toBe('message')
    await holdfast.close()
    const again = await lock(name, { subscriber })
    const held = await again.acquire()
    const next = again.acquire()
    await stage.world.until(async () => (await subscribers(name)) === 1, 'it is still open')
    await held.release()
    await (await next).release()
  })

  test("without a subscriber waiters poll: { subscriber: 'off' }", async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const lease = await (await lock(name)).acquire()
    const wakeups = hear('holdfast:wakeup', name)
    const waiter = (await lock(name, { subscriber: 'off' })).acquire()
    await stage.world.pass(60)
    await lease.release()
    expect((await waiter).held).toBe(true)
    expect(await subscribers(name)).toBe(0)
    expect(new Set(wakeups.map(({ cause }) => cause))).toEqual(new Set(['poll']))
  })
}
