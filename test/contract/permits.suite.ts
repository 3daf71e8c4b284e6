import { describe, expect, test } from 'vitest'
import type { HoldfastOptions, PermitSemaphore, PermitSemaphoreOptions } from '../../src/index.js'
import { hear } from './hear.js'
import { badPermits } from './permits-bad.suite.js'
import { permitLeases } from './permits-leases.suite.js'
import { Door, Gauge, turns, Watched } from './together.js'
import type { Stage } from './world.js'

/** A semaphore on a Holdfast of its own. */
export type Semaphores = (
  name: string,
  options?: PermitSemaphoreOptions,
  holdfast?: HoldfastOptions,
) => Promise<PermitSemaphore>

/** All that the semaphore with leases promises. */
export function permitsSuite(stage: Stage): void {
  describe('PermitSemaphore', () => {
    const semaphore: Semaphores = async (name, options, holdfast) =>
      (await stage.world.holdfast(holdfast)).permitSemaphore(name, options)
    taking(stage, semaphore)
    numbers(stage, semaphore)
    waiting(stage, semaphore)
    ending(stage, semaphore)
    using(stage, semaphore)
    byId(stage, semaphore)
    permitLeases(stage, semaphore)
    badPermits(stage, semaphore)
    stage.slowTests()
  })
}

function taking(stage: Stage, semaphore: Semaphores): void {
  describe('acquire', () => {
    test('gives a lease that says which permits are held', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 3 })
      const lease = await mine.acquire(2)
      expect(lease.lock).toBe(name)
      expect(lease.ids).toHaveLength(2)
      for (const id of lease.ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
      expect(new Set(lease.ids).size).toBe(2)
      expect(lease.owner).toBe(`${lease.ids[0]}+1`)
      expect(lease).toMatchObject({ held: true, holdCount: 1 })
      expect(lease.remaining).toBeGreaterThan(20_000)
      expect(lease.remaining).toBeLessThan(30_000)
      expect(lease.signal.aborted).toBe(false)
      expect([await mine.available(), await mine.acquired(), await mine.total()]).toEqual([1, 2, 3])
      expect(await lease.release()).toBe('released')
      expect(lease).toMatchObject({ held: false, holdCount: 0, remaining: 0 })
      expect([await mine.available(), await mine.acquired(), await mine.total()]).toEqual([3, 0, 3])
    })

    test('gives as many as there are, to whoever asks, and no more', async () => {
      const name = stage.name()
      const [mine, theirs] = [await semaphore(name, { permits: 3 }), await semaphore(name)]
      const leases = [await mine.acquire(), await theirs.acquire(), await mine.acquire({ waitTime: 0 })]
      expect(await mine.tryAcquire()).toBeNull()
      expect(await theirs.tryAcquire()).toBeNull()
      await leases[1]?.release()
      expect(await theirs.tryAcquire()).not.toBeNull()
    })

    test('takes all or none', async () => {
      const mine = await semaphore(stage.name(), { permits: 3 })
      await mine.acquire(2)
      expect(await mine.tryAcquire(2)).toBeNull()
      expect(await mine.available()).toBe(1)
      expect((await mine.tryAcquire(1))?.ids).toHaveLength(1)
    })

    test('is one command, also where it sets the number', async () => {
      const mine = await semaphore(stage.name(), { permits: 3 })
      const before = await stage.world.operations()
      await mine.acquire()
      await mine.acquire(2)
      expect((await stage.world.operations()) - before).toBe(2)
    })

    test('of a semaphore without a number fails at once and leaves nothing behind', async () => {
      const mine = await semaphore(stage.name())
      const error = { name: 'NotInitialisedError', code: 'HOLDFAST_NOT_INITIALISED', lock: mine.name }
      await expect(mine.acquire()).rejects.toMatchObject(error)
      await expect(mine.tryAcquire({ waitTime: 60_000 })).rejects.toMatchObject(error)
      await expect(mine.using(() => 1)).rejects.toMatchObject(error)
      expect(await stage.world.read(mine.name)).toBeUndefined()
    })

    test('inside another takes another permit', async () => {
      const mine = await semaphore(stage.name(), { permits: 2 })
      const available = await mine.using(() =>
        mine.using(async (lease) => [lease.holdCount, await mine.available()]),
      )
      expect(available).toEqual([1, 0])
    })

    test('never lets more in than there are permits', async () => {
      const name = stage.name()
      const processes = await Promise.all([1, 2, 3].map(() => semaphore(name, { permits: 2 })))
      const gauge = new Gauge()
      await stage.world.settled(
        Promise.all(
          processes.flatMap((process) =>
            Array.from({ length: 6 }, () => process.using(() => gauge.through(() => turns(2)))),
          ),
        ),
      )
      expect(gauge.total).toBe(18)
      expect(gauge.most).toBeLessThanOrEqual(2)
      expect(await processes[0]?.available()).toBe(2)
    })

    test('tells what happened to those who listen', async () => {
      const mine = await semaphore(stage.name(), { permits: 1 })
      const granted = hear('holdfast:acquire:granted', mine.name)
      const timeout = hear('holdfast:acquire:timeout', mine.name)
      const release = hear('holdfast:release', mine.name)
      const lease = await mine.acquire()
      await mine.tryAcquire()
      await lease.release()
      expect(granted).toMatchObject([{ owner: lease.owner, holdCount: 1 }])
      expect(timeout).toHaveLength(1)
      expect(release).toMatchObject([{ owner: lease.owner, outcome: 'released' }])
    })
  })
}

function numbers(stage: Stage, semaphore: Semaphores): void {
  describe('the number of permits', () => {
    const seen = async (mine: PermitSemaphore) => [await mine.available(), await mine.total()]

    test('is set by whoever comes first', async () => {
      const name = stage.name()
      const mine = await semaphore(name)
      expect(await seen(mine)).toEqual([0, 0])
      expect(await mine.trySet(5)).toBe(true)
      expect(await mine.trySet(7)).toBe(false)
      expect(await seen(mine)).toEqual([5, 5])
      const late = await semaphore(name, { permits: 9 })
      await late.acquire()
      expect(await seen(late)).toEqual([4, 5])
    })

    test('that the option gives counts as soon as it is asked for', async () => {
      expect(await seen(await semaphore(stage.name(), { permits: 4 }))).toEqual([4, 4])
    })

    test('can be changed under permits that are out', async () => {
      const mine = await semaphore(stage.name(), { permits: 3 })
      const lease = await mine.acquire(2)
      await mine.set(5)
      expect(await seen(mine)).toEqual([3, 5])
      await mine.set(1)
      expect(await seen(mine)).toEqual([-1, 1])
      await mine.add(2)
      expect(await seen(mine)).toEqual([1, 3])
      await mine.add(-3)
      expect(await seen(mine)).toEqual([-2, 0])
      await lease.release()
      expect(await seen(mine)).toEqual([0, 0])
      await mine.set(0)
      expect(await mine.tryAcquire()).toBeNull()
    })

    test('can be as large as numbers are exact, and no larger with what is out', async () => {
      const most = Number.MAX_SAFE_INTEGER
      const mine = await semaphore(stage.name())
      await mine.trySet(most)
      const lease = await mine.acquire(2)
      expect(await seen(mine)).toEqual([most - 2, most])
      await expect(mine.add(1)).rejects.toEqual(
        new RangeError(`permits must not bring semaphore '${mine.name}' beyond ±${most}, but is 1`),
      )
      await lease.release()
      await mine.add(-most)
      await expect(mine.add(-1 - most)).rejects.toThrow(RangeError)
      await mine.add(-most)
      await expect(mine.add(-1)).rejects.toThrow(RangeError)
      expect(await seen(mine)).toEqual([-most, -most])
      await mine.set(most)
      expect(await seen(mine)).toEqual([most, most])
    })

    test('bounds what can be asked for, whatever it began with', async () => {
      const mine = await semaphore(stage.name(), { permits: 3 })
      const tooMany = {
        name: 'RangeError',
        message: `permits must not be more than semaphore '${mine.name}' has in all (3), but is 4`,
      }
      const calls = [() => mine.acquire(4), () => mine.tryAcquire(4), () => mine.using(4, () => 1)]
      for (const call of calls)
        await expect(stage.world.settled<unknown>(call())).rejects.toMatchObject(tooMany)
      await mine.set(5)
      expect((await mine.acquire(4)).ids).toHaveLength(4)
      expect(await mine.tryAcquire(4)).toBeNull()
    })

    test('lets waiters in when it is raised', async () => {
      const name = stage.name()
      const [mine, other] = [await semaphore(name, { permits: 1 }), await semaphore(name)]
      await mine.acquire({ leaseTime: 600_000 })
      const waiters = [1, 2].map(() => new Watched(other.acquire({ pollInterval: 600_000 })))
      await stage.world.pass(50)
      await mine.set(2)
      await stage.world.until(
        () => waiters.filter(({ state }) => state === 'fulfilled').length === 1,
        'one of them got a permit',
      )
      await mine.add(1)
      await stage.world.settled(Promise.all(waiters.map(({ promise }) => promise)))
    })
  })
}

function waiting(stage: Stage, semaphore: Semaphores): void {
  describe('waiters', () => {
    test('are woken by a release, long before anything expires', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 1 })
      const first = await mine.acquire({ leaseTime: 600_000 })
      const wakeups = hear('holdfast:wakeup', name)
      const second = new Watched((await semaphore(name)).acquire({ pollInterval: 600_000 }))
      await stage.world.pass(60)
      expect(second.state).toBe('pending')
      await first.release()
      expect((await stage.world.settled(second.promise)).held).toBe(true)
      expect(wakeups.at(-1)).toMatchObject({ cause: 'message' })
    })

    test('for several permits are woken by releases of one each', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 2 })
      const leases = [await mine.acquire(), await mine.acquire()]
      const both = new Watched((await semaphore(name)).acquire(2, { pollInterval: 600_000 }))
      await stage.world.pass(60)
      for (const lease of leases) await lease.release()
      expect((await stage.world.settled(both.promise)).ids).toHaveLength(2)
    })

    test('of one process are served in the order of their coming', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 1 })
      const lease = await mine.acquire()
      const order: number[] = []
      const calls: Promise<unknown>[] = []
      for (const i of [0, 1, 2]) {
        calls.push(mine.using(() => order.push(i)))
        await stage.world.pass(30)
      }
      await lease.release()
      await stage.world.settled(Promise.all(calls))
      expect(order).toEqual([0, 1, 2])
    })

    test('for few go past one for more than there is, whose permits their callers may hold', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 3 })
      const inside = new Door()
      const nested = mine.using(async () => {
        inside.open()
        await stage.world.pass(60)
        return mine.using((lease) => lease.ids.length)
      })
      await stage.world.settled(inside.opened)
      const large = mine.acquire(3)
      expect(await stage.world.settled(nested)).toBe(1)
      expect((await stage.world.settled(large)).ids).toHaveLength(3)
    })

    test('of one process all go on by one message that has room for all', async () => {
      const name = stage.name()
      const holder = await semaphore(name, { permits: 5 })
      const all = await holder.acquire(5)
      const mine = await semaphore(name)
      const waiters = Array.from({ length: 5 }, () => mine.acquire({ pollInterval: 600_000 }))
      await stage.world.pass(60)
      await all.release()
      expect(await stage.world.settled(Promise.all(waiters))).toHaveLength(5)
    })

    stage.slow('take what has expired, without any message', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 1 })
      const lease = await mine.acquire({ leaseTime: 300 })
      const startMs = stage.world.now()
      const next = await stage.world.settled((await semaphore(name)).acquire({ pollInterval: 600_000 }))
      expect(next.held).toBe(true)
      expect(lease.held).toBe(false)
      const waitedMs = stage.world.now() - startMs
      // Only a clock of our own is exact.
      if (stage.world.server === undefined) expect(waitedMs).toBeLessThanOrEqual(320)
    })

    stage.slow('give up when waitTime is over, not before', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 3 })
      await mine.acquire(2)
      const startMs = stage.world.now()
      await expect(stage.world.settled(mine.acquire(2, { waitTime: 250 }))).rejects.toMatchObject({
        name: 'WaitTimeoutError',
        code: 'HOLDFAST_WAIT_TIMEOUT',
        lock: name,
        message: `Semaphore '${name}' still has fewer than 2 permits available after waiting 250 ms`,
      })
      expect(stage.world.now() - startMs).toBeGreaterThanOrEqual(249)
      expect(await mine.available()).toBe(1)
    })

    test('that leave take nothing along, and let the next one in', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 2 })
      const lease = await mine.acquire()
      const controller = new AbortController()
      const big = new Watched(mine.acquire(2, { signal: controller.signal }))
      await stage.world.pass(30)
      const small = new Watched(mine.acquire())
      await stage.world.pass(30)
      controller.abort(new Error('enough'))
      await expect(stage.world.settled(big.promise)).rejects.toThrow('enough')
      expect((await stage.world.settled(small.promise)).held).toBe(true)
      await lease.release()
      expect(await mine.available()).toBe(1)
    })
  })
}

function ending(stage: Stage, semaphore: Semaphores): void {
  describe('the end of a call', () => {
    test('an abort before it costs no command', async () => {
      const mine = await semaphore(stage.name(), { permits: 1 })
      const before = await stage.world.operations()
      const signal = AbortSignal.abort(new Error('too late'))
      await expect(mine.acquire({ signal })).rejects.toThrow('too late')
      await expect(mine.tryAcquire(1, { signal })).rejects.toThrow('too late')
      expect(await stage.world.operations()).toBe(before)
    })

    test('closing ends the waiting and refuses what comes later', async () => {
      const name = stage.name()
      await (await semaphore(name, { permits: 1 })).acquire()
      const holdfast = await stage.world.holdfast()
      const mine = holdfast.permitSemaphore(name)
      const waiter = mine.acquire()
      await stage.world.pass(30)
      const closing = holdfast.close()
      const closed = { code: 'HOLDFAST_CLOSED' }
      await expect(stage.world.settled(waiter)).rejects.toMatchObject(closed)
      await stage.world.settled(closing)
      await expect(mine.acquire()).rejects.toMatchObject(closed)
      await expect(mine.available()).rejects.toMatchObject(closed)
      await expect(mine.trySet(1)).rejects.toMatchObject(closed)
    })

    test('closing gives back what is held', async () => {
      const name = stage.name()
      const other = await semaphore(name, { permits: 3 })
      const holdfast = await stage.world.holdfast()
      const lease = await holdfast.permitSemaphore(name, { permits: 3 }).acquire(2)
      const { signal } = lease
      await stage.world.settled(holdfast.close({ drain: 0 }))
      expect(signal.reason).toMatchObject({ reason: 'closed' })
      expect(await other.available()).toBe(3)
    })

    test('everything is 0 when idle', async () => {
      const holdfast = await stage.world.holdfast()
      const mine = holdfast.permitSemaphore(stage.name(), { permits: 1 })
      const lease = await mine.acquire()
      const waiter = mine.acquire()
      await stage.world.pass(30)
      expect(holdfast.stats()).toMatchObject({ held: 1, waiting: 1, contests: 1 })
      await lease.release()
      await (await stage.world.settled(waiter)).release()
      expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
    })
  })
}

function using(stage: Stage, semaphore: Semaphores): void {
  describe('using', () => {
    test('takes any of its forms', async () => {
      const mine = await semaphore(stage.name(), { permits: 5 })
      const count = ({ ids }: { readonly ids: readonly string[] }) => ids.length
      expect(await mine.using(count)).toBe(1)
      expect(await mine.using(3, count)).toBe(3)
      expect(await mine.using({ leaseTime: 5_000 }, count)).toBe(1)
      expect(await mine.using(2, { waitTime: 0 }, count)).toBe(2)
      expect(await mine.tryUsing(5, count)).toEqual({ acquired: true, value: 5 })
      const held = await mine.acquire()
      expect(await mine.tryUsing(5, count)).toEqual({ acquired: false })
      await held.release()
      expect(await mine.available()).toBe(5)
    })

    test('gives back when the callback throws, whose error wins', async () => {
      const mine = await semaphore(stage.name(), { permits: 1 })
      await expect(mine.using(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
      expect(await mine.available()).toBe(1)
    })

    test('rejects when the permit was lost meanwhile, and hands over what the work gave', async () => {
      const name = stage.name()
      const [mine, other] = [await semaphore(name, { permits: 1 }), await semaphore(name)]
      const work = mine.using(async ({ ids: [id = ''] }) => {
        await other.release(id)
        return 'done'
      })
      await expect(work).rejects.toMatchObject({ code: 'HOLDFAST_LEASE_LOST', value: 'done' })
    })

    test('await using gives back at the end of the block', async () => {
      const mine = await semaphore(stage.name(), { permits: 1 })
      {
        await using lease = await mine.acquire()
        expect(lease.held).toBe(true)
        expect(await mine.available()).toBe(0)
      }
      expect(await mine.available()).toBe(1)
    })
  })
}

function byId(stage: Stage, semaphore: Semaphores): void {
  describe('permits by their ids', () => {
    test('are given back from elsewhere, once', async () => {
      const name = stage.name()
      const [mine, other] = [await semaphore(name, { permits: 3 }), await semaphore(name)]
      const { ids } = await mine.acquire(3)
      const [first = '', ...rest] = ids
      await other.release(first)
      await expect(other.release(first.toUpperCase())).rejects.toMatchObject({
        code: 'HOLDFAST_NOT_HELD',
        lock: name,
      })
      await expect(other.releaseAll(ids)).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
      expect(await mine.available()).toBe(1)
      await other.releaseAll(rest)
      expect(await mine.available()).toBe(3)
    })

    test('all that are out can be given back, and are counted', async () => {
      const name = stage.name()
      const [mine, other] = [await semaphore(name, { permits: 3 }), await semaphore(name)]
      const { ids } = await mine.acquire(3)
      expect(await other.tryRelease(ids.slice(1))).toBe(2)
      expect(await other.tryRelease(ids)).toBe(1)
      expect(await other.tryRelease(ids)).toBe(0)
      expect([await mine.available(), await mine.total()]).toEqual([3, 3])
    })

    test('that are unknown change nothing', async () => {
      const mine = await semaphore(stage.name(), { permits: 3 })
      await mine.trySet(3)
      const unknown = 'ab'.repeat(16)
      await expect(mine.release(unknown)).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
      expect(await mine.tryRelease([unknown])).toBe(0)
      expect(await mine.updateLeaseTime(unknown, 5_000)).toBe(false)
      expect(await mine.remainingTime(unknown)).toBe(0)
      expect(await mine.available()).toBe(3)
    })

    test('get another expiry, sooner or later', async () => {
      const name = stage.name()
      const [mine, other] = [await semaphore(name, { permits: 1 }), await semaphore(name)]
      const { ids } = await mine.acquire({ leaseTime: 60_000 })
      const [id = ''] = ids
      for (const ms of [120_000, 20_000]) {
        expect(await other.updateLeaseTime(id, ms)).toBe(true)
        const restMs = await other.remainingTime(id)
        expect(restMs).toBeGreaterThan(ms - 15_000)
        expect(restMs).toBeLessThanOrEqual(ms + 100)
      }
    })

    test('a release from elsewhere lets a waiter in', async () => {
      const name = stage.name()
      const [mine, other] = [await semaphore(name, { permits: 1 }), await semaphore(name)]
      const { ids } = await mine.acquire()
      const door = new Door()
      const waiter = mine.using({ pollInterval: 600_000 }, () => {
        door.open()
      })
      await stage.world.pass(50)
      await other.releaseAll(ids)
      await stage.world.settled(door.opened)
      await stage.world.settled(waiter)
    })
  })
}
