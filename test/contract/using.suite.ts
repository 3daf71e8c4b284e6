import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { LeaseLostError, type ExclusiveLock, type Lease } from '../../src/index.js'
import { Door, turns, Watched } from './together.js'
import { STRANGER, takenAs, type KindStage } from './world.js'

/** Runs work under the lock, by either method, and gives the work's value. */
type Runner = <T>(lock: ExclusiveLock, work: (lease: Lease) => T | PromiseLike<T>) => Promise<T>

const runners: readonly (readonly [name: string, run: Runner])[] = [
  ['using', (lock, work) => lock.using(work)],
  ['using with options', (lock, work) => lock.using({ waitTime: 10_000 }, work)],
  [
    'tryUsing',
    async (lock, work) => {
      const result = await lock.tryUsing(work)
      if (!result.acquired) throw new Error('busy')
      return result.value
    },
  ],
]

/** `using` and `tryUsing`: acquire, run, release, and whose error wins. */
export function using({ stage, kind, lock }: KindStage): void {
  describe.for(runners)('%s', ([method, run]) => {
    test('gives what the callback returns, and has released by then', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const seen = await run(mine, async (lease) => {
        await turns()
        return { held: lease.held, stored: await stage.world.read(name) }
      })
      expect(seen).toMatchObject({ held: true, stored: {} })
      expect(await stage.world.read(name)).toBeUndefined()
      expect(await run(mine, () => 'at once')).toBe('at once')
    })

    test('releases when the callback throws or rejects, and gives its error', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const error = new Error('the work failed')
      const throwing = run(mine, () => {
        throw error
      })
      await expect(throwing).rejects.toBe(error)
      expect(await stage.world.read(name)).toBeUndefined()
      await expect(run(mine, () => Promise.reject(error))).rejects.toBe(error)
      expect(await stage.world.read(name)).toBeUndefined()
    })

    stage.slow(
      `${method} on loss aborts the signal and still waits for the callback; then rejects with its value`,
      async () => {
        const name = stage.name()
        const door = new Door()
        const signals: AbortSignal[] = []
        const mine = await lock(name, { lockWatchdogTimeout: 1_500 })
        const work = new Watched(
          run(mine, async (lease) => {
            signals.push(lease.signal)
            await door.opened
            return 'the value'
          }),
        )
        await stage.world.until(() => signals.length === 1, 'the work has begun')
        await stage.world.take(name, STRANGER, { kind, ttlMs: 60_000 })
        await stage.world.until(() => signals[0]?.aborted === true, 'the loss is told')
        await stage.world.pass(30)
        expect(work.state).toBe('pending')
        door.open()
        await expect(stage.world.settled(work.promise)).rejects.toMatchObject({
          name: 'LeaseLostError',
          code: 'HOLDFAST_LEASE_LOST',
          reason: 'stolen',
          value: 'the value',
          lock: name,
        })
        expect(signals[0]?.reason).toBeInstanceOf(LeaseLostError)
        expect(await stage.world.read(name)).toMatchObject({
          value: takenAs(kind, STRANGER),
        })
      },
    )

    test("the callback's own error wins over the loss", async () => {
      const name = stage.name()
      const mine = await lock(name)
      const work = run(mine, async () => {
        await stage.world.take(name, STRANGER, { kind, ttlMs: 60_000 })
        throw new Error('the work failed')
      })
      await expect(work).rejects.toThrow('the work failed')
    })

    test('a loss that only the release finds is told too', async () => {
      const name = stage.name()
      const mine = await lock(name)
      const work = run(mine, async () => {
        await stage.world.remove(name)
        return 7
      })
      await expect(work).rejects.toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen', value: 7 })
    })

    test('the callback may release by itself', async () => {
      const name = stage.name()
      const mine = await lock(name)
      expect(await run(mine, (lease) => lease.release())).toBe('released')
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test("keeps the caller's asynchronous context", async () => {
      const context = new AsyncLocalStorage<string>()
      const name = stage.name()
      const mine = await lock(name)
      await context.run('the request', async () => {
        expect(await run(mine, () => context.getStore())).toBe('the request')
        expect(context.getStore()).toBe('the request')
      })
      expect(context.getStore()).toBeUndefined()
    })
  })

  stage.slow('tryUsing does not run the callback while the lock is busy', async () => {
    const name = stage.name()
    const lease = await (await lock(name)).acquire()
    let runs = 0
    const work = () => (runs += 1)
    const other = await lock(name)
    expect(await other.tryUsing(work)).toEqual({ acquired: false })
    expect(await stage.world.settled(other.tryUsing({ waitTime: 250 }, work))).toEqual({ acquired: false })
    expect(runs).toBe(0)
    await lease.release()
    expect(await other.tryUsing(work)).toEqual({ acquired: true, value: 1 })
  })

  stage.slow('using rejects with WaitTimeoutError and does not run the callback', async () => {
    const name = stage.name()
    await (await lock(name)).acquire()
    const other = await lock(name)
    const work = other.using({ waitTime: 250 }, () => {
      throw new Error('must not run')
    })
    await expect(stage.world.settled(work)).rejects.toMatchObject({ code: 'HOLDFAST_WAIT_TIMEOUT' })
  })

  test('await using releases at the end of the block', async () => {
    const name = stage.name()
    const mine = await lock(name)
    {
      await using lease = await mine.acquire()
      expect(lease.held).toBe(true)
    }
    expect(await stage.world.read(name)).toBeUndefined()
    {
      await using nothing = await mine.tryAcquire()
      expect(nothing).not.toBeNull()
      await using busy = await mine.tryAcquire()
      expect(busy).toBeNull()
    }
  })

  test('await using does not throw when the lease is lost', async () => {
    const name = stage.name()
    const mine = await lock(name)
    const work = async () => {
      await using lease = await mine.acquire({ leaseTime: 40 })
      await stage.world.until(() => !lease.held, 'the lease expires')
      return 'done'
    }
    expect(await work()).toBe('done')
  })

  test('listeners of the signal run in the context of the code that looked at the signal', async () => {
    const context = new AsyncLocalStorage<string>()
    const name = stage.name()
    const mine = await lock(name)
    const heard: unknown[] = []
    await context.run('the request', async () => {
      const lease = await mine.acquire({ leaseTime: 40 })
      lease.signal.addEventListener('abort', () => heard.push(context.getStore()))
    })
    await stage.world.until(() => heard.length > 0, 'the loss is told')
    expect(heard).toEqual(['the request'])
  })
}
