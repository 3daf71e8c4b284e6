import { describe, expect, test } from 'vitest'
import { LeaseLostError } from '../../src/index.js'
import { hear, hearWarnings } from './hear.js'
import { turns } from './together.js'
import { STRANGER, takenAs, type KindStage } from './world.js'

/** What a lease tells and does from its grant to its end. */
export function leases({ stage, kind, lock }: KindStage): void {
  const theirs = takenAs(kind, STRANGER)

  describe('release', () => {
    test('is idempotent: the same answer again, and nothing is sent', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const lease = await mine.acquire()
      const [one, two] = await Promise.all([lease.release(), lease.release()])
      expect([one, two]).toEqual(['released', 'released'])
      const next = await mine.acquire()
      const before = await stage.world.operations()
      expect(await lease.release()).toBe('released')
      await lease[Symbol.asyncDispose]()
      expect(await stage.world.operations()).toBe(before)
      expect(next.held).toBe(true)
    })

    test("after expiry tells 'expired' and leaves the next holder alone", async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire({ leaseTime: 40 })
      const next = await stage.world.settled((await lock(name)).acquire({ leaseTime: 60_000 }))
      const before = await stage.world.read(name)
      expect(lease.held).toBe(false)
      expect(await lease.release()).toBe('expired')
      await turns()
      expect((await stage.world.read(name))?.value).toEqual(before?.value)
      expect(next.held).toBe(true)
    })

    test("tells 'expired' when nobody has it either", async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire({ leaseTime: 40 })
      await stage.world.until(async () => (await stage.world.read(name)) === undefined, 'the key expires')
      expect(await lease.release()).toBe('expired')
    })

    test("tells 'stolen' when somebody else has the lock, and leaves it alone", async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      await stage.world.take(name, STRANGER, { kind, ttlMs: 60_000 })
      expect(await lease.release()).toBe('stolen')
      expect(await stage.world.read(name)).toMatchObject({ value: theirs })
    })

    test("tells 'stolen' when the key was removed before its time", async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      await stage.world.remove(name)
      expect(await lease.release()).toBe('stolen')
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test("tells 'stolen' when other data is under the name, and leaves it alone", async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      await stage.world.storeData(name, 'list')
      expect(await lease.release()).toBe('stolen')
      expect(await stage.world.read(name)).toEqual({ value: ['theirs'], ttlMs: -1 })
    })

    stage.slow('release stops the watchdog: the key is not touched any more', async () => {
      const name = stage.name()
      const renewed = hear('holdfast:renew:ok', name)
      const lease = await (await lock(name, { lockWatchdogTimeout: 150 })).acquire()
      await lease.release()
      await stage.world.pass(200)
      expect(renewed).toEqual([])
      expect(await stage.world.read(name)).toBeUndefined()
    })
  })

  describe('loss', () => {
    test('by expiry: the signal aborts, held is false, assertHeld throws', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire({ leaseTime: 50 })
      const { signal } = lease
      expect(() => {
        lease.assertHeld()
      }).not.toThrow()
      await stage.world.until(() => signal.aborted, 'the signal aborts')
      expect(signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'expired', lock: name })
      expect(signal.reason).toBeInstanceOf(LeaseLostError)
      expect(lease).toMatchObject({ held: false, remaining: 0, holdCount: 0 })
      expect(() => {
        lease.assertHeld()
      }).toThrow(LeaseLostError)
    })

    stage.slow('a lease with leaseTime is not renewed', async () => {
      const name = stage.name()
      const renewed = hear('holdfast:renew:ok', name)
      const mine = await lock(name, { lockWatchdogTimeout: 60 })
      const lease = await mine.acquire({ leaseTime: 150 })
      await stage.world.until(() => !lease.held, 'the lease expires')
      expect(renewed).toEqual([])
    })

    const thefts: [string, (name: string) => Promise<void>][] = [
      ['somebody else has the lock', (name) => stage.world.take(name, STRANGER, { kind, ttlMs: 60_000 })],
      ['the key was removed', (name) => stage.world.remove(name)],
      ['other data is under the name', (name) => stage.world.storeData(name, 'list')],
    ]
    for (const [what, steal] of thefts) {
      stage.slow(`a loss is told at the next renewal when ${what}`, async () => {
        const name = stage.name()
        const lost = hear('holdfast:lost', name)
        const lease = await (await lock(name, { lockWatchdogTimeout: 1_500 })).acquire()
        const { signal } = lease
        await steal(name)
        await stage.world.until(() => signal.aborted, 'the signal aborts')
        expect(signal.reason).toMatchObject({ reason: 'stolen' })
        expect(lease.held).toBe(false)
        expect(await lease.release()).toBe('stolen')
        await stage.world.pass(150)
        expect(lost).toEqual([{ lock: name, owner: lease.owner, reason: 'stolen' }])
      })
    }

    test('a signal that is first looked at after the loss has aborted', async () => {
      const lease = await (await lock(stage.name())).acquire({ leaseTime: 40 })
      await stage.world.until(() => !lease.held, 'the lease expires')
      expect(lease.signal.aborted).toBe(true)
      expect(lease.signal.reason).toMatchObject({ reason: 'expired' })
    })

    stage.slow('a lease taken after a loss is renewed like any other', async () => {
      const name = stage.name()
      const mine = await lock(name, { lockWatchdogTimeout: 1_500 })
      const first = await mine.acquire()
      await stage.world.remove(name)
      await stage.world.until(() => first.signal.aborted, 'the loss is told')
      const second = await mine.acquire()
      await stage.world.pass(1_600)
      expect(second.held).toBe(true)
      expect(await mine.isHeldBy(second.owner)).toBe(true)
    })
  })

  describe('after a release', () => {
    test('the signal does not abort, but assertHeld throws', async () => {
      const lease = await (await lock(stage.name())).acquire({ leaseTime: 60 })
      const { signal } = lease
      await lease.release()
      await stage.world.pass(100)
      expect(signal.aborted).toBe(false)
      expect(lease.signal).toBe(signal)
      expect(() => {
        lease.assertHeld()
      }).toThrow(expect.objectContaining({ code: 'HOLDFAST_NOT_HELD', name: 'NotHeldError' }))
    })

    test('it is not held from the call on', async () => {
      const lease = await (await lock(stage.name())).acquire()
      const released = lease.release()
      expect(lease).toMatchObject({ held: false, remaining: 0, holdCount: 0 })
      await released
    })

    test('nothing can be run in it or extended', async () => {
      const lease = await (await lock(stage.name())).acquire()
      await lease.release()
      await expect(lease.run(() => 0)).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
      await expect(lease.extend(1_000)).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
    })
  })

  describe('extend', () => {
    test('makes the lease last at least so long from now', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire({ leaseTime: 5_000 })
      await lease.extend(60_000)
      expect(lease.remaining).toBeGreaterThan(50_000)
      expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(50_000)
    })

    test('never shortens', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire({ leaseTime: 60_000 })
      await lease.extend(1)
      expect(lease.remaining).toBeGreaterThan(50_000)
      expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(50_000)
    })

    stage.slow('extend ends the watchdog', async () => {
      const name = stage.name()
      const lease = await (await lock(name, { lockWatchdogTimeout: 1_500 })).acquire()
      const renewed = hear('holdfast:renew:ok', name)
      await lease.extend(1_600)
      await stage.world.until(() => lease.signal.aborted, 'the lease expires')
      expect(lease.signal.reason).toMatchObject({ reason: 'expired' })
      expect(renewed).toEqual([])
      expect(await lease.release()).toBe('expired')
    })

    test('finds out that the lease was stolen', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const { signal } = lease
      await stage.world.take(name, STRANGER, { kind, ttlMs: 10_000 })
      await expect(lease.extend(60_000)).rejects.toMatchObject({
        code: 'HOLDFAST_LEASE_LOST',
        reason: 'stolen',
      })
      expect(signal.aborted).toBe(true)
      expect(lease.held).toBe(false)
      const operations = await stage.world.operations()
      expect(await lease.release()).toBe('stolen')
      expect(await stage.world.operations()).toBe(operations)
      const stored = await stage.world.read(name)
      expect(stored?.value).toEqual(theirs)
      expect(stored?.ttlMs).toBeLessThanOrEqual(10_000)
    })

    test('is too late after expiry, also when nobody has taken the lock', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire({ leaseTime: 40 })
      await stage.world.until(() => !lease.held, 'the lease expires')
      await expect(lease.extend(1_000)).rejects.toMatchObject({ reason: 'expired' })
      await stage.world.until(async () => (await stage.world.read(name)) === undefined, 'the key expires')
    })
  })

  describe('minHold', () => {
    stage.slow(
      'minHold: a release before its time leaves the lock closed for the rest of it, without renewal',
      async () => {
        const name = stage.name()
        const renewed = hear('holdfast:renew:ok', name)
        const startMs = stage.world.now()
        const mine = await lock(name, { lockWatchdogTimeout: 1_500 })
        const lease = await mine.acquire({ minHold: 1_000 })
        expect(await lease.release()).toBe('released')
        expect(lease.held).toBe(false)
        expect((await stage.world.read(name))?.ttlMs).toBeLessThanOrEqual(1_000)
        const next = await stage.world.settled((await lock(name)).acquire())
        expect(next.held).toBe(true)
        expect(stage.world.now() - startMs).toBeGreaterThanOrEqual(999)
        expect(renewed).toEqual([])
      },
    )

    test('a release after its time frees at once', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire({ minHold: 20, leaseTime: 60_000 })
      await stage.world.pass(30)
      expect(await lease.release()).toBe('released')
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test('is kept by using, also when the work fails', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const work = mine.using({ minHold: 40_000 }, () => Promise.reject(new Error('the work failed')))
      await expect(work).rejects.toThrow('the work failed')
      expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(30_000)
      expect(await mine.tryAcquire()).toBeNull()
    })
  })

  stage.slow('maxHold ends the renewal and tells it; the lock is freed by the release', async () => {
    const name = stage.name()
    const mine = await lock(name)
    const lease = await mine.acquire({ maxHold: 100 })
    await stage.world.until(() => lease.signal.aborted, 'the signal aborts')
    expect(lease.signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'max-hold' })
    expect(lease.held).toBe(false)
    expect(await mine.isHeldBy(lease.owner)).toBe(true)
    expect(await lease.release()).toBe('released')
    expect(await stage.world.read(name)).toBeUndefined()
  })

  stage.slow(
    'maxHold: without a release the server frees the lock within one watchdog time-out',
    async () => {
      const name = stage.name()
      const mine = await lock(name, { lockWatchdogTimeout: 1_000, maxHold: 100 })
      const lease = await mine.acquire()
      await stage.world.settled((await lock(name)).acquire())
      expect(lease.signal.reason).toMatchObject({ reason: 'max-hold' })
    },
  )

  stage.slow('maxHold of a call wins over that of the Holdfast', async () => {
    const name = stage.name()
    const mine = await lock(name, { maxHold: 50 })
    const lease = await mine.acquire({ maxHold: Infinity })
    await stage.world.pass(120)
    expect(lease.held).toBe(true)
  })

  describe('a lost lease that nobody looked at', () => {
    test('is a process warning, once', async () => {
      const name = stage.name()
      const warnings = hearWarnings(name)
      await (await lock(name)).acquire({ leaseTime: 30 })
      await stage.world.until(() => warnings.length > 0, 'the warning is emitted')
      await stage.world.pass(30)
      expect(warnings).toMatchObject([{ name: 'HoldfastWarning', code: 'HOLDFAST_LEASE_LOST' }])
    })

    test.for<
      [
        string,
        (lease: { readonly held: boolean; readonly signal: AbortSignal; assertHeld(): void }) => unknown,
      ]
    >([
      ['held', (lease) => lease.held],
      ['signal', (lease) => lease.signal],
      [
        'assertHeld',
        (lease) => {
          lease.assertHeld()
        },
      ],
    ])('is none once %s was looked at', async ([, look]) => {
      const name = stage.name()
      const warnings = hearWarnings(name)
      const lost = hear('holdfast:lost', name)
      const lease = await (await lock(name)).acquire({ leaseTime: 30 })
      look(lease)
      await stage.world.until(() => lost.length > 0, 'the loss is told')
      await turns()
      expect(warnings).toEqual([])
    })

    test('is none after a release', async () => {
      const name = stage.name()
      const warnings = hearWarnings(name)
      const lease = await (await lock(name)).acquire({ leaseTime: 30 })
      await lease.release()
      await stage.world.pass(50)
      expect(warnings).toEqual([])
    })
  })
}
