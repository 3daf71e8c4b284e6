import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import type { HoldfastOptions, Lease, ReadWriteLock } from '../../src/index.js'
import { hear } from './hear.js'
import { Door, Gauge, turns, Watched } from './together.js'
import { STRANGER, type Stage } from './world.js'

/** Readers among themselves, and who goes first of a process. */
export function readersTogether(stage: Stage): void {
  const make = async (name: string, options?: HoldfastOptions): Promise<ReadWriteLock> =>
    (await stage.world.holdfast(options)).readWriteLock(name)
  const releaseAll = (leases: readonly Lease[]) => Promise.all(leases.map((lease) => lease.release()))
  const ttlOf = async (name: string) => (await stage.world.read(name))?.ttlMs ?? -2

  describe('readers', () => {
    test('hold the lock together, each as an owner of its own, and a writer waits for the last', async () => {
      const name = stage.name()
      const [one, other] = [await make(name), await make(name)]
      const readers = [await one.read.acquire(), await one.read.acquire(), await other.read.acquire()]
      expect(new Set(readers.map(({ owner }) => owner)).size).toBe(3)
      expect((await stage.world.read(name))?.value).toEqual({
        mode: 'read',
        ...Object.fromEntries(readers.map(({ owner }) => [owner, 1])),
      })
      expect(await other.write.tryAcquire()).toBeNull()
      const writer = new Watched(other.write.acquire())
      await stage.world.pass(30)
      for (const reader of readers) {
        expect(writer.state).toBe('pending')
        expect(await reader.release()).toBe('released')
      }
      const lease = await stage.world.settled(writer.promise)
      expect((await stage.world.read(name))?.value).toEqual({ mode: 'write', [`${lease.owner}:write`]: 1 })
      expect(await one.read.tryAcquire()).toBeNull()
      await lease.release()
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test('of one process go out together: nobody waits, and each costs one operation', async () => {
      const name = stage.name()
      const { read } = await make(name)
      await (await read.acquire()).release()
      const waits = hear('holdfast:acquire:wait', name)
      const before = await stage.world.operations()
      const leases = await Promise.all(Array.from({ length: 64 }, () => read.acquire()))
      expect(await stage.world.operations()).toBe(before + 64)
      expect(waits).toEqual([])
      await releaseAll(leases)
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test('of one process that wait all come in when the writer goes, by a few operations each', async () => {
      const name = stage.name()
      const writer = await (await make(name)).write.acquire()
      const { read } = await make(name)
      const door = new Door()
      const gauge = new Gauge()
      const work = Array.from({ length: 32 }, () => read.using(() => gauge.through(() => door.opened)))
      await stage.world.pass(60)
      const wakeups = hear('holdfast:wakeup', name)
      const before = await stage.world.operations()
      await writer.release()
      await stage.world.until(() => gauge.most === 32, 'all are inside')
      // Not one after the other, each by looking for himself.
      expect(wakeups.filter(({ cause }) => cause !== 'message')).toEqual([])
      // The release, one or two attempts of the head, and one of each.
      expect((await stage.world.operations()) - before).toBeLessThan(45)
      door.open()
      await stage.world.settled(Promise.all(work))
    })

    test('of one process that wait come in beside a reader that another process let in first', async () => {
      const name = stage.name()
      const [one, other] = [await make(name), await make(name)]
      const writer = await one.write.acquire()
      const waiting = [0, 1, 2, 3].map(() => other.read.acquire())
      await stage.world.pass(40)
      const released = writer.release()
      const first = one.read.acquire()
      const leases = await stage.world.settled(Promise.all([first, ...waiting]))
      await released
      expect(leases.map(({ held }) => held)).toEqual([true, true, true, true, true])
    })

    test('wait each for no longer than its own waitTime, and are told who writes', async () => {
      const name = stage.name()
      const writer = await (await make(name)).write.acquire()
      const { read } = await make(name)
      const first = new Watched(read.acquire())
      const second = read.acquire({ waitTime: 60 })
      const third = read.tryAcquire({ waitTime: 40 })
      expect(await stage.world.settled(third)).toBeNull()
      await expect(stage.world.settled(second)).rejects.toMatchObject({ code: 'HOLDFAST_WAIT_TIMEOUT' })
      await expect(stage.world.settled(read.acquire({ waitTime: 0 }))).rejects.toMatchObject({
        holder: writer.owner,
      })
      expect(first.state).toBe('pending')
      await writer.release()
      expect((await stage.world.settled(first.promise)).held).toBe(true)
    })

    test.for(['the first', 'another'] as const)('go on waiting when %s of them is aborted', async (who) => {
      const name = stage.name()
      const writer = await (await make(name)).write.acquire()
      const { read } = await make(name)
      const controllers = [new AbortController(), new AbortController(), new AbortController()]
      const readers = controllers.map(({ signal }) => read.acquire({ signal }))
      await stage.world.pass(40)
      const gone = who === 'the first' ? 0 : 1
      controllers[gone]?.abort(new Error('gone'))
      await expect(stage.world.settled<unknown>(readers[gone] ?? Promise.resolve())).rejects.toThrow('gone')
      await writer.release()
      const rest = await stage.world.settled(Promise.all(readers.filter((_, i) => i !== gone)))
      expect(rest.map(({ held }) => held)).toEqual([true, true])
    })

    test('and writers that wait are turned away by closing, and nothing is left of them', async () => {
      const name = stage.name()
      await (await make(name)).write.acquire()
      const holdfast = await stage.world.holdfast()
      const { read, write } = holdfast.readWriteLock(name)
      const calls = Promise.allSettled([read.acquire(), write.acquire(), read.acquire(), write.acquire()])
      await stage.world.pass(30)
      await stage.world.settled(holdfast.close())
      for (const call of await calls)
        expect(call).toMatchObject({ status: 'rejected', reason: { code: 'HOLDFAST_CLOSED' } })
      expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
    })
  })

  describe('the time of the lock', () => {
    test('is that of the longest hold; when that one leaves, that of those that remain', async () => {
      const name = stage.name()
      const { read } = await make(name)
      const long = await read.acquire({ leaseTime: 60_000 })
      const short = await read.acquire({ leaseTime: 10_000 })
      const middle = await read.acquire({ leaseTime: 20_000 })
      expect(await ttlOf(name)).toBeGreaterThan(50_000)
      await short.release()
      expect(await ttlOf(name)).toBeGreaterThan(50_000)
      await long.release()
      expect(await ttlOf(name)).toBeLessThanOrEqual(20_000)
      expect(await ttlOf(name)).toBeGreaterThan(10_000)
      await middle.release()
    })

    test('is not cut by a reader that leaves inside a write', async () => {
      const name = stage.name()
      const { read, write } = await make(name)
      await write.using({ leaseTime: 60_000 }, async () => {
        await read.using({ leaseTime: 5_000 }, () => 0)
        expect(await ttlOf(name)).toBeGreaterThan(50_000)
      })
    })

    test('a reader with a leaseTime never believes longer than one watchdog time-out, and goes on being confirmed', async () => {
      const name = stage.name()
      const { read } = await make(name, { lockWatchdogTimeout: 900 })
      const renewals = hear('holdfast:renew:ok', name)
      const lease = await read.acquire({ leaseTime: 60_000 })
      expect(lease.remaining).toBeLessThan(900)
      await stage.world.until(() => renewals.length > 3, 'it is confirmed')
      expect(lease.held).toBe(true)
      expect(lease.remaining).toBeLessThan(900)
      expect(await ttlOf(name)).toBeGreaterThan(40_000)
      await lease.release()
    })

    test('a reader with a leaseTime ends with it', async () => {
      const { read } = await make(stage.name(), { lockWatchdogTimeout: 900 })
      const lease = await read.acquire({ leaseTime: 1_500 })
      const { signal } = lease
      await stage.world.until(() => signal.aborted, 'it ends')
      expect(signal.reason).toMatchObject({ reason: 'expired' })
      expect(await lease.release()).toBe('expired')
    })

    test('extend of a reader reaches further than one watchdog time-out', async () => {
      const name = stage.name()
      const { read } = await make(name, { lockWatchdogTimeout: 900 })
      const lease = await read.acquire()
      await lease.extend(60_000)
      expect(await ttlOf(name)).toBeGreaterThan(50_000)
      expect(lease.remaining).toBeLessThan(900)
      await stage.world.pass(1_200)
      expect(lease.held).toBe(true)
    })

    test('a reader that ran out does not keep a writer out once the others have left', async () => {
      const name = stage.name()
      const [one, other] = [await make(name), await make(name)]
      const dead = await one.read.acquire({ leaseTime: 40 })
      const { signal } = dead
      const alive = await other.read.acquire()
      await stage.world.until(() => signal.aborted, 'it ran out')
      await stage.world.pass(20)
      expect(await other.read.isHeldBy(dead.owner)).toBe(false)
      await alive.release()
      expect(await other.write.tryAcquire()).not.toBeNull()
    })
  })

  describe('who goes first in one process', () => {
    test('a writer is not kept out by readers of its own process that never leave a gap', async () => {
      const name = stage.name()
      const { read, write } = await make(name)
      const seen = { reads: 0, writing: false }
      const stream = async () => {
        while (!seen.writing) {
          await read.using({ waitTime: 60_000 }, () =>
            stage.world.server === undefined ? turns(20) : turns(40),
          )
          seen.reads += 1
        }
      }
      const readers = [stream(), turns(2).then(stream), turns(4).then(stream)]
      await stage.world.until(() => seen.reads > 3, 'they read')
      const writer = write.using(() => {
        seen.writing = true
      })
      await stage.world.settled(Promise.all([writer, ...readers]))
      expect(seen.writing).toBe(true)
    })

    test('a reader that comes while a writer waits and readers hold has to wait, tryAcquire gets null; then it comes in', async () => {
      const name = stage.name()
      // As a request that has nothing to do with the others.
      const elsewhere = AsyncLocalStorage.snapshot()
      const { read, write } = await make(name)
      const inside = await read.acquire()
      const writer = new Watched(write.acquire())
      await stage.world.pass(80)
      const late = new Watched(elsewhere(() => read.acquire()))
      expect(await elsewhere(() => read.tryAcquire())).toBeNull()
      await stage.world.pass(20)
      expect([writer.state, late.state]).toEqual(['pending', 'pending'])
      await inside.release()
      const lease = await stage.world.settled(writer.promise)
      expect(late.state).toBe('pending')
      await lease.release()
      expect((await stage.world.settled(late.promise)).held).toBe(true)
    })

    test('whoever reads already may read once more, although a writer waits, and no read counts as waiting for oneself', async () => {
      const name = stage.name()
      const { read, write } = await make(name)
      const first = await read.acquire()
      const writer = new Watched(write.using(() => 'written'))
      await stage.world.pass(80)
      const diagnoses = hear('holdfast:diagnosis', name)
      const second = await read.acquire()
      const third = await read.tryAcquire()
      expect([second.held, third?.held, writer.state]).toEqual([true, true, 'pending'])
      expect(diagnoses).toEqual([])
      await releaseAll([first, second, ...(third === null ? [] : [third])])
      expect(await stage.world.settled(writer.promise)).toBe('written')
    })

    test('readers are not held back for ever by a writer that cannot come in', async () => {
      const name = stage.name()
      const theirs = await (await make(name)).read.acquire()
      const holdfast = await stage.world.holdfast()
      const { read, write } = holdfast.readWriteLock(name)
      const writer = new Watched(write.acquire())
      await stage.world.pass(80)
      const reader = await stage.world.settled(read.acquire())
      expect([reader.held, theirs.held, writer.state]).toEqual([true, true, 'pending'])
      await reader.release()
      await theirs.release()
      await (await stage.world.settled(writer.promise)).release()
      expect(holdfast.stats()).toMatchObject({ held: 0, waiting: 0, contests: 0 })
    })

    test('nor by a writer that gives up', async () => {
      const name = stage.name()
      const elsewhere = AsyncLocalStorage.snapshot()
      const { read, write } = await make(name)
      const inside = await read.acquire()
      const controller = new AbortController()
      const writer = write.acquire({ signal: controller.signal })
      writer.catch(() => undefined)
      await stage.world.pass(80)
      const late = new Watched(elsewhere(() => read.acquire()))
      await stage.world.pass(20)
      expect(late.state).toBe('pending')
      controller.abort(new Error('gone'))
      await expect(writer).rejects.toThrow('gone')
      expect((await stage.world.settled(late.promise)).held).toBe(true)
      expect(inside.held).toBe(true)
    })

    test.for([1, 2])(
      'a reader that waits comes in between writers that never leave a gap (%i)',
      async (streams) => {
        const name = stage.name()
        const { read, write } = await make(name)
        const seen = { writes: 0, reading: false }
        const stream = async () => {
          while (!seen.reading && seen.writes < 1_000) {
            const lease = await write.acquire()
            seen.writes += 1
            await turns(2)
            // Not awaited: the next attempt goes out right behind the release.
            void lease.release()
          }
        }
        const writers = Array.from({ length: streams }, stream)
        await stage.world.until(() => seen.writes > 3, 'they write')
        const reader = read.using(() => {
          seen.reading = true
        })
        await stage.world.settled(Promise.all([reader, ...writers]))
        expect(seen.writes).toBeLessThan(100)
      },
    )

    test('closing ends readers that are held back', async () => {
      const name = stage.name()
      const elsewhere = AsyncLocalStorage.snapshot()
      const holdfast = await stage.world.holdfast()
      const { read, write } = holdfast.readWriteLock(name)
      await read.acquire()
      const calls = [write.acquire()]
      await stage.world.pass(80)
      elsewhere(() => calls.push(read.acquire(), read.acquire()))
      const settled = Promise.allSettled(calls)
      await stage.world.pass(10)
      await stage.world.settled(holdfast.close({ drain: 0 }))
      for (const call of await settled)
        expect(call).toMatchObject({ status: 'rejected', reason: { code: 'HOLDFAST_CLOSED' } })
    })
  })

  test('a stranger that writes keeps readers out until it expires', async () => {
    const name = stage.name()
    const { read } = await make(name)
    await stage.world.take(name, STRANGER, { kind: 'write', ttlMs: 200 })
    const wakeups = hear('holdfast:wakeup', name)
    const reader = await stage.world.settled(read.acquire())
    expect(reader.held).toBe(true)
    expect(wakeups.at(-1)?.cause).toBe('expiry')
  })
}
