import { describe, expect, test } from 'vitest'
import { hear } from './hear.js'
import type { Semaphores } from './permits.suite.js'
import type { Stage } from './world.js'

/** How long permits are held, and how their holders learn that they are not any more. */
export function permitLeases(stage: Stage, semaphore: Semaphores): void {
  describe('the lease of permits', () => {
    stage.slow('with a lease time ends by itself, for its holder first', async () => {
      const mine = await semaphore(stage.name(), { permits: 2 })
      const lease = await mine.acquire(2, { leaseTime: 250 })
      const { signal } = lease
      await stage.world.until(() => signal.aborted, 'the holder is told')
      expect(signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'expired' })
      await stage.world.until(async () => (await mine.available()) === 2, 'the permits are back')
      expect(lease.held).toBe(false)
      expect(await lease.release()).toBe('expired')
      expect([await mine.available(), await mine.total()]).toEqual([2, 2])
    })

    stage.slow('without one is kept by the watchdog', async () => {
      const mine = await semaphore(stage.name(), { permits: 3 }, { lockWatchdogTimeout: 300 })
      const lease = await mine.acquire(2)
      const renewed = hear('holdfast:renew:ok', mine.name)
      await stage.world.pass(1_000)
      expect(lease.held).toBe(true)
      expect(await mine.acquired()).toBe(2)
      expect(renewed.length).toBeGreaterThan(5)
      expect(await lease.release()).toBe('released')
      expect(await mine.available()).toBe(3)
    })

    stage.slow('is lost when somebody gives one of its permits back', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 3 }, { lockWatchdogTimeout: 300 })
      const lease = await mine.acquire(2)
      const { signal } = lease
      const [id = ''] = lease.ids
      await (await semaphore(name)).release(id)
      await stage.world.until(() => signal.aborted, 'the holder is told')
      expect(signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
      expect(await lease.release()).toBe('stolen')
      await stage.world.until(async () => (await mine.available()) === 3, 'the other permit comes back, too')
    })

    test('is lost at once when its own process gives one of its permits back, and no other lease is', async () => {
      const mine = await semaphore(stage.name(), { permits: 4 })
      const [lease, other] = [await mine.acquire(2), await mine.acquire()]
      const { signal } = lease
      const [, id = ''] = lease.ids
      await mine.release(id)
      expect([lease.held, other.held]).toEqual([false, true])
      expect(signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
      await expect(mine.releaseAll([...other.ids, id])).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
      await stage.world.until(() => other.held, 'the engine says that it is still out')
      expect(await mine.tryRelease([...other.ids, id])).toBe(1)
      expect(other.held).toBe(false)
      expect(await lease.release()).toBe('stolen')
      await stage.world.until(async () => (await mine.available()) === 4, 'the other permit comes back, too')
    })

    test('ends sooner when its own process says so, for its holder first', async () => {
      const mine = await semaphore(stage.name(), { permits: 2 }, { lockWatchdogTimeout: 30_000 })
      for (const options of [{}, { leaseTime: 60_000 }]) {
        const lease = await mine.acquire(options)
        const [id = ''] = lease.ids
        const { signal } = lease
        expect(await mine.updateLeaseTime(id, 200)).toBe(true)
        expect(lease.remaining).toBeLessThan(200)
        await stage.world.until(() => signal.aborted, 'the holder is told')
        expect(signal.reason).toMatchObject({ reason: 'expired' })
        await stage.world.until(async () => (await mine.available()) === 2, 'the permit is back')
      }
    })

    test('says stolen when it is released after somebody else did', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 3 })
      const lease = await mine.acquire(2)
      await (await semaphore(name)).releaseAll(lease.ids)
      expect(await lease.release()).toBe('stolen')
      expect(await mine.available()).toBe(3)
    })

    test('can be extended, and is not shortened by that', async () => {
      const mine = await semaphore(stage.name(), { permits: 1 })
      const lease = await mine.acquire({ leaseTime: 30_000 })
      const [id = ''] = lease.ids
      await lease.extend(90_000)
      expect(lease.remaining).toBeGreaterThan(80_000)
      expect(await mine.remainingTime(id)).toBeGreaterThan(80_000)
      await lease.extend(10_000)
      expect(lease.remaining).toBeGreaterThan(80_000)
      expect(await mine.remainingTime(id)).toBeGreaterThan(80_000)
    })

    stage.slow('ends with maxHold', async () => {
      const mine = await semaphore(stage.name(), { permits: 1 }, { lockWatchdogTimeout: 300 })
      const lease = await mine.acquire({ maxHold: 400 })
      const { signal } = lease
      await stage.world.until(() => signal.aborted, 'the holder is told')
      expect(signal.reason).toMatchObject({ reason: 'max-hold' })
      await stage.world.until(async () => (await mine.available()) === 1, 'the permit is back')
    })

    stage.slow('a look is right right after an expiry, without any other call', async () => {
      const name = stage.name()
      const mine = await semaphore(name, { permits: 5 })
      const { ids } = await mine.acquire(3, { leaseTime: 200 })
      await mine.acquire({ leaseTime: 600_000 })
      await stage.world.pass(250)
      expect([await mine.available(), await mine.acquired(), await mine.total()]).toEqual([4, 1, 5])
      expect(await mine.remainingTime(ids[0] ?? '')).toBe(0)
      await expect(mine.releaseAll(ids)).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
      expect([await mine.available(), await mine.total()]).toEqual([4, 5])
    })

    test('shows no more than its name and owner in logs', async () => {
      const mine = await semaphore(stage.name(), { permits: 1 })
      const lease = await mine.acquire()
      expect(JSON.parse(JSON.stringify(lease))).toEqual({ lock: mine.name, owner: lease.owner })
    })
  })
}
