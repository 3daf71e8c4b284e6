import { describe, expect, onTestFinished, test } from 'vitest'
import { hear } from './hear.js'
import { Door } from './together.js'
import { lockOf, type KindStage } from './world.js'

/** A server that does not answer, and a client that is gone: what callers are told. Only where there is a server. */
export function trouble({ stage, kind, lock }: KindStage): void {
  /** Scripts wait until `resume`; plain reads go on. */
  const pause = async () => {
    onTestFinished(() => resume())
    await stage.server.command('CLIENT', 'PAUSE', 20_000, 'WRITE')
  }
  const resume = async () => {
    await stage.server.command('CLIENT', 'UNPAUSE')
  }
  const untilFree = (name: string) =>
    stage.world.until(async () => (await stage.world.read(name)) === undefined, `${name} is free`)

  describe('when the server does not answer', () => {
    test("a release tells 'unknown' after the command time-out, and is done in the background", async () => {
      if (stage.world.server === undefined) return
      const name = stage.name()
      const holdfast = await stage.world.holdfast({ commandTimeout: 100 })
      const lease = await lockOf(kind, holdfast, name).acquire()
      const diagnoses = hear('holdfast:diagnosis', name)
      await pause()
      expect(await lease.release()).toBe('unknown')
      expect(lease.held).toBe(false)
      expect(diagnoses).toMatchObject([{ lock: name, kind: 'compensating' }])
      expect(holdfast.stats()).toMatchObject({ held: 0, compensating: 1 })
      await resume()
      await untilFree(name)
      await stage.world.until(() => holdfast.stats().compensating === 0, 'nothing is left to be done')
    })

    test("using gives the callback's value or error all the same", async () => {
      if (stage.world.server === undefined) return
      const name = stage.name()
      const mine = await lock(name, { commandTimeout: 100 })
      const value = mine.using(async () => {
        await pause()
        return 'the value'
      })
      expect(await value).toBe('the value')
      await resume()
      await untilFree(name)
      const failing = mine.using(async () => {
        await pause()
        throw new Error('the work failed')
      })
      await expect(failing).rejects.toThrow('the work failed')
      await resume()
      await untilFree(name)
    })

    test('an acquire rejects with UnavailableError, and what may have been taken is given back', async () => {
      if (stage.world.server === undefined) return
      const name = stage.name()
      const mine = await lock(name, { commandTimeout: 100, unavailableAfter: 150 })
      await pause()
      for (const attempt of [mine.tryAcquire(), mine.acquire({ waitTime: 50 }), mine.acquire()])
        await expect(attempt).rejects.toMatchObject({
          name: 'UnavailableError',
          code: 'HOLDFAST_UNAVAILABLE',
          outcome: 'unknown',
          lock: name,
        })
      await resume()
      await stage.world.until(
        async () => (await mine.tryAcquire({ waitTime: 50 })) !== null,
        'it is given back',
      )
    })

    test('a look rejects with UnavailableError', async () => {
      if (stage.world.server === undefined) return
      const mine = await lock(stage.name(), { commandTimeout: 60 })
      await pause()
      const looks = [mine.isLocked(), mine.remainingTime(), mine.forceRelease()]
      for (const look of looks) await expect(look).rejects.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE' })
    })

    test('a lease ends by itself at its deadline; failed renewals are told before', async () => {
      if (stage.world.server === undefined) return
      const name = stage.name()
      const failed = hear('holdfast:renew:failed', name)
      const lease = await (await lock(name, { lockWatchdogTimeout: 900 })).acquire()
      const { signal } = lease
      await pause()
      await stage.world.until(() => signal.aborted, 'the signal aborts')
      expect(signal.reason).toMatchObject({ reason: 'expired' })
      expect(lease.held).toBe(false)
      expect(failed.length).toBeGreaterThan(0)
      expect(failed[0]).toMatchObject({ lock: name, owner: lease.owner })
      expect(failed[0]?.slack).toBeLessThan(900)
      expect(failed[0]?.error).toBeInstanceOf(Error)
    })

    test('extend rejects with UnavailableError, and the lease goes on until its deadline', async () => {
      if (stage.world.server === undefined) return
      const lease = await (await lock(stage.name(), { commandTimeout: 60 })).acquire({ leaseTime: 60_000 })
      await pause()
      await expect(lease.extend(90_000)).rejects.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE' })
      expect(lease.held).toBe(true)
    })

    test('an abort ends the waiting at once', async () => {
      if (stage.world.server === undefined) return
      const name = stage.name()
      const mine = await lock(name)
      await pause()
      const controller = new AbortController()
      const attempts = [
        mine.acquire({ signal: controller.signal }),
        mine.acquire({ signal: controller.signal }),
        mine.tryAcquire({ signal: controller.signal }),
      ]
      const settled = Promise.allSettled(attempts)
      await stage.world.pass(30)
      controller.abort('gone')
      const gone = { status: 'rejected', reason: 'gone' }
      expect(await settled).toEqual([gone, gone, gone])
      await resume()
      await stage.world.until(
        async () => (await (await lock(name)).tryAcquire()) !== null,
        'it is given back',
      )
    })
  })

  test('when the client is gone, calls reject and a release does not', async () => {
    if (stage.world.server === undefined) return
    const name = stage.name()
    const holdfast = await stage.world.holdfast({ commandTimeout: 100 })
    const mine = lockOf(kind, holdfast, name)
    const door = new Door()
    const work = mine.using(async () => {
      await door.opened
      return 'the value'
    })
    await stage.world.until(() => holdfast.stats().held === 1, 'the work has begun')
    stage.server.cut(holdfast)
    door.open()
    expect(await work).toBe('the value')
    const unavailable = { code: 'HOLDFAST_UNAVAILABLE', outcome: 'not-applied' }
    for (const attempt of [mine.acquire(), mine.tryAcquire(), mine.isLocked()])
      await expect(attempt).rejects.toMatchObject(unavailable)
  })
}
