import { describe, expect, test } from 'vitest'
import type { ExclusiveLock, Lease } from '../../src/index.js'
import { hear, onEvent } from './hear.js'
import { turns, Watched } from './together.js'
import type { KindStage } from './world.js'

const reason = new Error('the caller has gone')

/** The caller's signal: it ends the waiting and never the hold. */
export function aborting({ stage, lock }: KindStage): void {
  /** Whoever aborts has either a lease, which the abort leaves alone, or the reason, and then the lock is free. */
  const expectOneOrTheOther = async (name: string, attempt: Promise<Lease | null>): Promise<string> => {
    const [outcome] = await Promise.allSettled([stage.world.settled(attempt)])
    if (outcome.status === 'fulfilled') {
      expect(outcome.value).toMatchObject({ held: true })
      expect(outcome.value?.signal.aborted).toBe(false)
      await stage.world.pass(20)
      expect(await (await lock(name)).isHeldBy(outcome.value?.owner ?? '')).toBe(true)
      return 'granted'
    }
    expect(outcome.reason).toBe(reason)
    await stage.world.until(async () => (await stage.world.read(name)) === undefined, 'it is given back')
    return 'aborted'
  }

  describe.for<[string, (lock: ExclusiveLock, signal: AbortSignal) => Promise<unknown>]>([
    ['acquire', (mine, signal) => mine.acquire({ signal })],
    ['tryAcquire', (mine, signal) => mine.tryAcquire({ signal })],
    ['using', (mine, signal) => mine.using({ signal }, () => 0)],
    ['tryUsing', (mine, signal) => mine.tryUsing({ signal }, () => 0)],
  ])('a signal that has aborted before %s', ([, call]) => {
    test('rejects with its reason, before any operation', async () => {
      const mine = await lock(stage.name())
      const before = await stage.world.operations()
      await expect(call(mine, AbortSignal.abort(reason))).rejects.toBe(reason)
      await expect(call(mine, AbortSignal.abort('just words'))).rejects.toBe('just words')
      await expect(call(mine, AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' })
      expect(await stage.world.operations()).toBe(before)
    })
  })

  // The orders of fault I7 on a lock that is free.
  test.for<[string, number, number]>([
    ['in the tick of the call', 0, 0],
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16].map((n): [string, number, number] => [
      `${n} microtasks after the call`,
      n,
      0,
    ]),
    ...[1, 2, 3, 5].map((n): [string, number, number] => [`${n} turns after the call`, 0, n]),
  ])('abort %s', async ([, microtasks, macrotasks]) => {
    const name = stage.name()
    const mine = await lock(name)
    const controller = new AbortController()
    // The event is the moment in which the lease becomes the caller's: an abort before it is not too late.
    const granted = hear('holdfast:acquire:granted', name)
    const attempt = mine.acquire({ signal: controller.signal })
    for (let i = 0; i < microtasks; i++) await undefined
    await turns(macrotasks)
    controller.abort(reason)
    const expected = granted.length === 0 ? 'aborted' : 'granted'
    expect(await expectOneOrTheOther(name, attempt)).toBe(expected)
  })

  test('abort in the tick after the grant leaves the lease alone', async () => {
    const name = stage.name()
    const mine = await lock(name)
    const controller = new AbortController()
    const attempt = mine.acquire({ signal: controller.signal })
    void attempt.then(() => {
      controller.abort(reason)
    })
    expect(await expectOneOrTheOther(name, attempt)).toBe('granted')
  })

  test('abort while waiting', async () => {
    const name = stage.name()
    const lease = await (await lock(name)).acquire()
    const mine = await lock(name)
    const controller = new AbortController()
    const attempt = new Watched(mine.acquire({ signal: controller.signal }))
    await stage.world.pass(30)
    controller.abort(reason)
    await expect(attempt.promise).rejects.toBe(reason)
    expect(lease.held).toBe(true)
    await lease.release()
    expect(await (await lock(name)).tryAcquire()).not.toBeNull()
  })

  test.for(['before', 'after'])('abort in the tick of the release, right %s it', async (order) => {
    const name = stage.name()
    const lease = await (await lock(name)).acquire()
    const mine = await lock(name)
    const controller = new AbortController()
    const attempt = mine.acquire({ signal: controller.signal })
    await stage.world.pass(30)
    if (order === 'before') controller.abort(reason)
    const released = lease.release()
    if (order === 'after') controller.abort(reason)
    expect(await expectOneOrTheOther(name, attempt)).toBe('aborted')
    expect(await released).toBe('released')
  })

  test('abort in the tick of the wake-up', async () => {
    const name = stage.name()
    const lease = await (await lock(name)).acquire()
    const mine = await lock(name)
    const controller = new AbortController()
    const attempt = new Watched(mine.acquire({ signal: controller.signal }))
    await stage.world.pass(30)
    const causes: string[] = []
    onEvent('holdfast:wakeup', name, ({ cause }) => {
      causes.push(cause)
      controller.abort(reason)
    })
    await lease.release()
    const outcome = await expectOneOrTheOther(name, attempt.promise)
    // A waiter that is on its way to the server when the release comes needs no wake-up.
    expect(outcome).toBe(causes.length > 0 ? 'aborted' : 'granted')
  })

  test('an abort during the work ends neither the work nor the hold', async () => {
    const name = stage.name()
    const mine = await lock(name)
    const controller = new AbortController()
    const seen = await mine.using({ signal: controller.signal }, async (lease) => {
      controller.abort(reason)
      await turns()
      return { held: lease.held, aborted: lease.signal.aborted, locked: await mine.isLocked() }
    })
    expect(seen).toEqual({ held: true, aborted: false, locked: true })
  })

  stage.slow('a call that is over does not listen to the signal any more', async () => {
    const name = stage.name()
    const mine = await lock(name)
    const controller = new AbortController()
    const { signal } = controller
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1
      remove(...args)
    }
    const lease = await mine.acquire({ signal })
    expect(await mine.tryAcquire({ signal })).toBeNull()
    await expect(stage.world.settled(mine.acquire({ signal, waitTime: 250 }))).rejects.toThrow('still held')
    await lease.release()
    expect(listeners).toBe(0)
  })

  test('one signal ends all calls that it was given to', async () => {
    const name = stage.name()
    await (await lock(name)).acquire()
    const mine = await lock(name)
    const controller = new AbortController()
    const attempts = Array.from({ length: 10 }, () => mine.acquire({ signal: controller.signal }))
    await stage.world.pass(30)
    controller.abort(reason)
    const outcomes = await Promise.allSettled(attempts)
    expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason === reason)).toEqual(
      Array.from({ length: 10 }, () => true),
    )
  })
}
