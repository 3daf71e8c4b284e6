import { describe, expect, test } from 'vitest'
import { Door, turns, Watched } from './together.js'
import { lockOf, TRAITS, type KindStage } from './world.js'

/** `close`: who is turned away, who may finish, and what is left. */
export function closing({ stage, kind }: KindStage): void {
  const make = async (options?: Parameters<typeof stage.world.holdfast>[0]) => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast(options)
    return { name, holdfast, lock: lockOf(kind, holdfast, name) }
  }

  describe('close', () => {
    test('turns new calls away, before any operation', async () => {
      const { name, holdfast, lock } = await make()
      await stage.world.settled(holdfast.close())
      const before = await stage.world.operations()
      for (const attempt of [lock.acquire(), lock.tryAcquire(), lock.using(() => 0), lock.tryUsing(() => 0)])
        await expect(attempt).rejects.toMatchObject({
          name: 'ClosedError',
          code: 'HOLDFAST_CLOSED',
          lock: name,
        })
      for (const look of [lock.isLocked(), lock.remainingTime(), lock.isHeldBy('x:1'), lock.forceRelease()])
        await expect(look).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED', lock: name })
      expect(await stage.world.operations()).toBe(before)
    })

    test('turns waiters away, and those behind them', async () => {
      const { name, holdfast, lock } = await make()
      const other = await make()
      await lockOf(kind, other.holdfast, name).acquire()
      const waiters = [lock.acquire(), lock.acquire(), lock.tryAcquire({ waitTime: 60_000 })]
      await stage.world.pass(20)
      const closed = holdfast.close()
      for (const waiter of waiters) await expect(waiter).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
      await stage.world.settled(closed)
    })

    test('comes after bad arguments and an aborted signal', async () => {
      const { holdfast, lock } = await make()
      await stage.world.settled(holdfast.close())
      const signal = AbortSignal.abort(new Error('gone'))
      await expect(lock.acquire({ signal })).rejects.toThrow('gone')
      await expect(lock.acquire({ signal, waitTime: -1 })).rejects.toThrow(RangeError)
    })

    stage.slow('close lets work finish, and renews its lock until then', async () => {
      const { name, holdfast, lock } = await make({ lockWatchdogTimeout: 1_500 })
      const door = new Door()
      const work = lock.using(async (lease) => {
        await door.opened
        return lease.held
      })
      await stage.world.until(() => holdfast.stats().held === 1, 'the work has begun')
      const closed = new Watched(holdfast.close({ drain: 60_000 }))
      await stage.world.pass(1_600)
      expect(closed.state).toBe('pending')
      expect(await stage.world.read(name)).toBeDefined()
      door.open()
      expect(await stage.world.settled(work)).toBe(true)
      await stage.world.settled(closed.promise)
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test('after drain tells running work, and does not free the lock under it', async () => {
      const { name, holdfast, lock } = await make()
      const door = new Door()
      const signals: AbortSignal[] = []
      const work = new Watched(
        lock.using(async (lease) => {
          signals.push(lease.signal)
          await door.opened
          return 'the value'
        }),
      )
      await stage.world.until(() => signals.length > 0, 'the work has begun')
      await stage.world.settled(holdfast.close({ drain: 30 }))
      expect(signals[0]?.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'closed' })
      expect(await stage.world.read(name)).toBeDefined()
      expect(work.state).toBe('pending')
      door.open()
      await expect(work.promise).rejects.toMatchObject({ reason: 'closed', value: 'the value' })
    })

    test('after drain aborts the leases of acquire() and releases them', async () => {
      const { name, holdfast, lock } = await make()
      const lease = await lock.acquire()
      const { signal } = lease
      await stage.world.settled(holdfast.close({ drain: 0 }))
      expect(signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'closed' })
      expect(lease.held).toBe(false)
      expect(await stage.world.read(name)).toBeUndefined()
      expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
    })

    test('resolves without delay when nothing is held', async () => {
      const { holdfast, lock } = await make()
      await lock.using(() => turns())
      const closed = new Watched(holdfast.close({ drain: 1_000_000 }))
      await stage.world.until(() => closed.state === 'fulfilled', 'it is closed')
    })

    test('resolves as soon as the last lease is released', async () => {
      const { holdfast, lock } = await make()
      const lease = await lock.acquire()
      const closed = new Watched(holdfast.close({ drain: 1_000_000 }))
      await turns()
      expect(closed.state).toBe('pending')
      expect(await lease.release()).toBe('released')
      await stage.world.until(() => closed.state === 'fulfilled', 'it is closed')
    })

    test('is idempotent, and the disposer of the Holdfast', async () => {
      const { holdfast, lock } = await make()
      await lock.using(() => 0)
      const all = [holdfast.close(), holdfast.close({ drain: 5 }), holdfast[Symbol.asyncDispose]()]
      await stage.world.settled(Promise.all(all))
      await stage.world.settled(holdfast.close())
    })

    test('refuses a bad drain', async () => {
      const { holdfast } = await make()
      for (const drain of [-1, NaN, Infinity, '1'])
        await expect(holdfast.close({ drain: drain as number })).rejects.toThrow(/drain must be/)
      await expect(holdfast.close({ dran: 1 } as object)).rejects.toThrow(/Unknown key 'dran'/)
    })
  })

  test("leaves the user's client alone", async () => {
    // Without messages there is no connection of its own.
    if (stage.world.server === undefined || TRAITS[kind].channel === undefined) return
    const { holdfast, lock } = await make()
    const name = stage.name()
    const lease = await lock.acquire()
    const waiter = new Watched(lock.acquire())
    const listed = async () => String(await stage.server.command('CLIENT', 'LIST'))
    await stage.world.until(async () => (await listed()).includes('sub=1'), 'the subscriber is connected')
    await holdfast.close({ drain: 0 })
    await expect(waiter.promise).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    expect(lease.held).toBe(false)
    // Its own subscriber is gone, the client still serves another Holdfast.
    await stage.world.until(async () => !(await listed()).includes('sub=1'), 'the subscriber is closed')
    const again = stage.server.again(holdfast)
    expect(await lockOf(kind, again, name).tryAcquire()).not.toBeNull()
    await again.close({ drain: 0 })
  })
}

/** What closing means for the re-entrant lock. */
export function closingNested({ stage, kind }: KindStage): void {
  test('nested use inside running work still enters while draining', async () => {
    const holdfast = await stage.world.holdfast()
    const lock = lockOf(kind, holdfast, stage.name())
    const door = new Door()
    const work = lock.using(async (outer) => {
      await door.opened
      return lock.using((inner) => inner.owner === outer.owner)
    })
    await stage.world.until(() => holdfast.stats().held === 1, 'the work has begun')
    const closed = holdfast.close()
    door.open()
    expect(await stage.world.settled(work)).toBe(true)
    await stage.world.settled(closed)
  })
}
