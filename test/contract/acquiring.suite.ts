import { describe, expect, test } from 'vitest'
import { hear } from './hear.js'
import { Door, Gauge, Watched } from './together.js'
import { heldAs, lockOf, STRANGER, type KindStage } from './world.js'

/** `acquire` and `tryAcquire`: who gets the lock, who waits how long, and what the others are told. */
export function acquiring({ stage, kind, lock }: KindStage): void {
  describe('acquire', () => {
    test('gives a lease that says what is held', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const lease = await mine.acquire()
      expect(lease.lock).toBe(name)
      expect(lease.owner).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d{1,16}$/)
      expect(lease).toMatchObject({ held: true, holdCount: 1 })
      expect(lease.remaining).toBeGreaterThan(20_000)
      expect(lease.remaining).toBeLessThan(30_000)
      expect(lease.signal.aborted).toBe(false)
      expect((await stage.world.read(name))?.value).toEqual(heldAs(kind, lease.owner))
      expect(await lease.release()).toBe('released')
      expect(lease).toMatchObject({ held: false, holdCount: 0, remaining: 0 })
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test('waits without a limit until the lock is released', async () => {
      const name = stage.name()
      const first = await (await lock(name)).acquire()
      const second = new Watched((await lock(name)).acquire())
      await stage.world.pass(60)
      expect(second.state).toBe('pending')
      await first.release()
      expect((await stage.world.settled(second.promise)).held).toBe(true)
    })

    stage.slow('acquire rejects when waitTime is over, not before, and says who has the lock', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const startMs = stage.world.now()
      const attempt = (await lock(name)).acquire({ waitTime: 250 })
      await expect(stage.world.settled(attempt)).rejects.toMatchObject({
        name: 'WaitTimeoutError',
        code: 'HOLDFAST_WAIT_TIMEOUT',
        lock: name,
        holder: lease.owner,
        holderTtl: expect.toSatisfy((ttl: number) => ttl > 20_000 && ttl <= 30_000) as number,
      })
      const waitedMs = stage.world.now() - startMs
      expect(waitedMs).toBeGreaterThanOrEqual(249)
      // Only a clock of our own is exact.
      if (stage.world.server === undefined) expect(waitedMs).toBeLessThanOrEqual(260)
      expect(lease.held).toBe(true)
    })

    test('with waitTime 0 is one attempt', async () => {
      const name = stage.name()
      const other = await lock(name)
      const lease = await (await lock(name)).acquire({ waitTime: 0 })
      const before = await stage.world.operations()
      await expect(other.acquire({ waitTime: 0 })).rejects.toMatchObject({ code: 'HOLDFAST_WAIT_TIMEOUT' })
      expect(await stage.world.operations()).toBe(before + 1)
      expect(lease.held).toBe(true)
    })

    test('is a new owner each time, also in one process', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const lease = await mine.acquire()
      expect(await mine.tryAcquire()).toBeNull()
      await lease.release()
      const next = await mine.acquire()
      expect(next.owner).not.toBe(lease.owner)
      expect(next.owner.split(':')[0]).toBe(lease.owner.split(':')[0])
    })

    stage.slow(
      'acquire takes waitTime and leaseTime from the defaults where the call says nothing',
      async () => {
        const name = stage.name()
        const mine = await lock(name, { defaults: { waitTime: 250, leaseTime: 5_000 } })
        const lease = await mine.acquire()
        expect((await stage.world.read(name))?.ttlMs).toBeLessThanOrEqual(5_000)
        await expect(stage.world.settled(mine.acquire())).rejects.toThrow('after waiting 250 ms')
        await expect(mine.acquire({ waitTime: 0 })).rejects.toThrow('after waiting 0 ms')
        await lease.release()
        await mine.acquire({ leaseTime: 50_000 })
        expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(40_000)
      },
    )

    test('treats undefined options as omitted', async () => {
      const mine = await lock(stage.name())
      const lease = await mine.acquire({
        waitTime: undefined,
        leaseTime: undefined,
        signal: undefined,
        within: undefined,
        minHold: undefined,
        maxHold: undefined,
        pollInterval: undefined,
      })
      expect(lease.remaining).toBeGreaterThan(20_000)
    })
  })

  describe('tryAcquire', () => {
    test('does not wait: null while somebody else has the lock, after one operation', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const other = await lock(name, { defaults: { waitTime: 60_000 } })
      const before = await stage.world.operations()
      expect(await other.tryAcquire()).toBeNull()
      expect(await stage.world.operations()).toBe(before + 1)
      await lease.release()
      expect(await other.tryAcquire()).toMatchObject({ held: true })
    })

    stage.slow('tryAcquire waits for waitTime, and then gives null', async () => {
      const name = stage.name()
      await (await lock(name)).acquire()
      const startMs = stage.world.now()
      expect(await stage.world.settled((await lock(name)).tryAcquire({ waitTime: 250 }))).toBeNull()
      expect(stage.world.now() - startMs).toBeGreaterThanOrEqual(249)
    })

    test('gets what is released within waitTime', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const attempt = (await lock(name)).tryAcquire({ waitTime: 20_000 })
      await stage.world.pass(30)
      await lease.release()
      expect(await stage.world.settled(attempt)).toMatchObject({ held: true })
    })
  })

  describe('one at a time', () => {
    test('100 calls at once on two Holdfasts: never two inside', async () => {
      const name = stage.name()
      const locks = [await lock(name), await lock(name)]
      const gauge = new Gauge()
      const work = () => gauge.through(() => new Promise((resolve) => setImmediate(resolve)))
      const all = Promise.all(Array.from({ length: 100 }, (_, i) => locks[i % 2]?.using(work)))
      await stage.world.settled(all)
      expect(gauge).toMatchObject({ most: 1, total: 100 })
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test('100 calls at once in one process: never two inside', async () => {
      const mine = await lock(stage.name())
      const gauge = new Gauge()
      const work = () => gauge.through(() => new Promise((resolve) => setImmediate(resolve)))
      await stage.world.settled(Promise.all(Array.from({ length: 100 }, () => mine.using(work))))
      expect(gauge).toMatchObject({ most: 1, total: 100 })
    })

    test('locks of different names do not wait for each other', async () => {
      const holdfast = await stage.world.holdfast()
      const leases = await Promise.all(
        Array.from({ length: 20 }, () => lockOf(kind, holdfast, stage.name()).acquire()),
      )
      expect(leases.every(({ held }) => held)).toBe(true)
      expect(holdfast.stats()).toMatchObject({ held: 20, waiting: 0, contests: 0 })
      await Promise.all(leases.map((lease) => lease.release()))
      expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
    })
  })

  describe('what others see', () => {
    test('isLocked, isHeldBy, remainingTime', async () => {
      const name = stage.name()
      const watcher = await lock(name)
      expect(await watcher.isLocked()).toBe(false)
      expect(await watcher.remainingTime()).toBe(0)
      const lease = await (await lock(name)).acquire({ leaseTime: 8_000 })
      expect(await watcher.isLocked()).toBe(true)
      expect(await watcher.isHeldBy(lease.owner)).toBe(true)
      expect(await watcher.isHeldBy(STRANGER)).toBe(false)
      const remaining = await watcher.remainingTime()
      expect(remaining).toBeGreaterThan(2_000)
      expect(remaining).toBeLessThanOrEqual(8_000)
      await stage.world.persist(name)
      expect(await watcher.remainingTime()).toBe(Infinity)
    })

    test('forceRelease takes the lock from whoever has it, and says whether there was somebody', async () => {
      const name = stage.name()
      const operator = await lock(name)
      expect(await operator.forceRelease()).toBe(false)
      const lease = await (await lock(name)).acquire()
      const waiter = new Watched((await lock(name)).acquire())
      await stage.world.pass(30)
      expect(waiter.state).toBe('pending')
      expect(await operator.forceRelease()).toBe(true)
      const next = await stage.world.settled(waiter.promise)
      expect(await lease.release()).toBe('stolen')
      expect(await operator.isHeldBy(next.owner)).toBe(true)
    })

    test('refuses an owner that is none', async () => {
      const mine = await lock(stage.name())
      for (const owner of [undefined, null, '', 7])
        await expect(mine.isHeldBy(owner as unknown as string)).rejects.toThrow(
          /owner must be a non-empty string/,
        )
    })
  })

  test('an attempt that finds the lock busy is no error event', async () => {
    const name = stage.name()
    const failed = hear('holdfast:acquire:failed', name)
    await (await lock(name)).acquire()
    const other = await lock(name)
    for (let i = 0; i < 20; i++) expect(await other.tryAcquire()).toBeNull()
    expect(failed).toEqual([])
  })

  stage.slow('work that goes on keeps the lock: others wait for as long as it takes', async () => {
    const name = stage.name()
    const door = new Door()
    const mine = await lock(name, { lockWatchdogTimeout: 1_500 })
    const work = mine.using(() => door.opened)
    const other = await lock(name)
    await stage.world.pass(1_600)
    expect(await other.tryAcquire()).toBeNull()
    door.open()
    await stage.world.settled(work)
    expect(await other.tryAcquire()).toMatchObject({ held: true })
  })
}
