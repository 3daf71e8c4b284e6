import { describe, expect, test } from 'vitest'
import type { Holdfast, HoldfastOptions, ReadWriteLock } from '../../src/index.js'
import { hear } from './hear.js'
import { Door, Watched } from './together.js'
import { STRANGER, type Stage } from './world.js'

/** Reads inside writes, writes inside reads, and what each side says of itself. */
export function sides(stage: Stage): void {
  const make = async (
    name = stage.name(),
    options?: HoldfastOptions,
  ): Promise<ReadWriteLock & { readonly holdfast: Holdfast }> => {
    const holdfast = await stage.world.holdfast(options)
    return { ...holdfast.readWriteLock(name), holdfast }
  }
  const valueOf = async (name: string) => (await stage.world.read(name))?.value

  describe('a read inside a read', () => {
    test('enters once more, and leaves as often', async () => {
      const { name, read } = await make()
      await read.using(async (outer) => {
        await read.using(async (inner) => {
          expect(inner.owner).toBe(outer.owner)
          expect([outer.holdCount, inner.holdCount]).toEqual([2, 2])
          expect(await valueOf(name)).toEqual({ mode: 'read', [outer.owner]: 2 })
          expect(await inner.release()).toBe('still-held')
        })
        expect(await valueOf(name)).toEqual({ mode: 'read', [outer.owner]: 1 })
      })
      expect(await valueOf(name)).toBeUndefined()
    })

    test('may go on beside another inside the same', async () => {
      const { read } = await make()
      const doors = [new Door(), new Door()]
      await read.using(async () => {
        const [first, second] = doors.map((door, i) =>
          read.using(async () => {
            doors[1 - i]?.open()
            await door.opened
          }),
        )
        await stage.world.settled(Promise.all([first, second]))
      })
    })

    test('keeps the lock when the outer one ends first', async () => {
      const { name, read } = await make()
      const outer = await read.acquire()
      const inner = await outer.run(() => read.acquire())
      expect(await outer.release()).toBe('still-held')
      expect(inner.held).toBe(true)
      expect(await inner.release()).toBe('released')
      expect(await valueOf(name)).toBeUndefined()
    })
  })

  describe('a read inside a write (downgrade)', () => {
    test('is let in as the same owner, and goes on when the write is released first; other readers are woken', async () => {
      const { name, read, write } = await make()
      const other = await make(name)
      const wakeups = hear('holdfast:wakeup', name)
      await write.using(async (writing) => {
        const waiting = [other.read.acquire(), other.read.acquire()]
        const writer = new Watched(other.write.acquire())
        await stage.world.pass(40)
        const reading = await read.acquire()
        expect(reading.owner).toBe(writing.owner)
        expect([reading.holdCount, writing.holdCount]).toEqual([1, 1])
        expect(await valueOf(name)).toEqual({
          mode: 'write',
          [`${writing.owner}:write`]: 1,
          [writing.owner]: 1,
        })
        wakeups.length = 0
        expect(await writing.release()).toBe('released')
        expect(reading.held).toBe(true)
        const others = await stage.world.settled(Promise.all(waiting))
        expect(wakeups[0]?.cause).toBe('message')
        expect(writer.state).toBe('pending')
        expect(await reading.release()).toBe('released')
        for (const lease of others) await lease.release()
        await (await stage.world.settled(writer.promise)).release()
      })
    })

    test('may end before the write, and come again, each time as one owner', async () => {
      const { name, read, write } = await make()
      const other = await make(name)
      await write.using(async (writing) => {
        const owners: string[] = []
        for (let i = 0; i < 3; i++) {
          await read.using(async (lease) => {
            owners.push(lease.owner)
            await read.using((inner) => expect(inner.holdCount).toBe(2))
            expect(await other.read.tryAcquire()).toBeNull()
          })
          expect(await valueOf(name)).toEqual({ mode: 'write', [`${writing.owner}:write`]: 1 })
        }
        // An owner that was ended is dead: only the first read has the name of the writer.
        expect(owners[0]).toBe(writing.owner)
        expect(new Set(owners).size).toBe(3)
      })
      expect(await valueOf(name)).toBeUndefined()
    })

    test('may be several at once, each of which keeps the lock', async () => {
      const { name, read, write } = await make()
      await write.using(async (writing) => {
        const [one, two] = await Promise.all([read.acquire(), read.acquire()])
        await writing.release()
        await one.release()
        expect(two.held).toBe(true)
        expect(await valueOf(name)).toEqual({ mode: 'read', [two.owner]: 1 })
        expect(await two.release()).toBe('released')
      })
      expect(await valueOf(name)).toBeUndefined()
    })

    test('does not stand in line behind readers and writers of its process', async () => {
      const { read, write } = await make()
      const writing = await write.acquire()
      const waiting = [new Watched(read.acquire()), new Watched(write.acquire())]
      await stage.world.pass(80)
      await writing.run(async () => {
        const reading = await stage.world.settled(read.acquire())
        expect(reading.owner).toBe(writing.owner)
        expect(waiting.map(({ state }) => state)).toEqual(['pending', 'pending'])
      })
    })

    test('by the option within, or in lease.run', async () => {
      const { read, write } = await make()
      const writing = await write.acquire()
      expect(await read.tryAcquire()).toBeNull()
      const reading = await read.acquire({ within: writing })
      expect(reading.owner).toBe(writing.owner)
      const second = await writing.run(() => read.acquire())
      await writing.release()
      expect([reading.held, second.held]).toEqual([true, true])
    })

    test('with a waitTime of its own, and while the Holdfast is draining', async () => {
      const { read, write, holdfast } = await make()
      const door = new Door()
      const work = write.using(async () => {
        await door.opened
        return read.using({ waitTime: 1_000 }, () => 'read')
      })
      await stage.world.until(() => holdfast.stats().held === 1, 'it writes')
      const closed = holdfast.close()
      door.open()
      expect(await stage.world.settled(work)).toBe('read')
      await stage.world.settled(closed)
    })

    test('competes like anyone when the write was lost', async () => {
      const { name, read, write } = await make()
      const lease = await write.acquire()
      await stage.world.take(name, STRANGER, { kind: 'write', ttlMs: 60_000 })
      await lease.run(async () => {
        expect(await read.tryAcquire()).toBeNull()
        await expect(stage.world.settled(read.acquire({ waitTime: 50 }))).rejects.toMatchObject({
          code: 'HOLDFAST_WAIT_TIMEOUT',
          holder: STRANGER,
        })
      })
    })

    stage.slow('is renewed when the write is gone', async () => {
      const { name, read, write } = await make(undefined, { lockWatchdogTimeout: 600 })
      await write.using(async (writing) => {
        const reading = await read.acquire()
        await writing.release()
        await stage.world.pass(1_500)
        expect(reading.held).toBe(true)
        expect(await valueOf(name)).toEqual({ mode: 'read', [reading.owner]: 1 })
        await reading.release()
      })
    })
  })

  describe('a write inside a read (upgrade)', () => {
    test('is refused at once by every method, and nothing is sent', async () => {
      const { name, read, write } = await make()
      await read.using(async (reading) => {
        const before = await stage.world.operations()
        const calls = [
          write.acquire(),
          write.tryAcquire(),
          write.using(() => 0),
          write.tryUsing(() => 0),
          write.acquire({ within: reading }),
        ]
        for (const call of calls)
          await expect(call).rejects.toMatchObject({
            name: 'UpgradeError',
            code: 'HOLDFAST_UPGRADE',
            lock: name,
          })
        expect(await stage.world.operations()).toBe(before)
        expect(reading.held).toBe(true)
      })
    })

    test('enters the write that is around both', async () => {
      const { name, read, write } = await make()
      await write.using(async (writing) => {
        await read.using(async () => {
          await write.using(async (again) => {
            expect(again.owner).toBe(writing.owner)
            expect(again.holdCount).toBe(2)
          })
          await writing.release()
          await expect(write.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_UPGRADE' })
        })
      })
      expect(await valueOf(name)).toBeUndefined()
    })

    test('does not matter for other names, and after the read', async () => {
      const { read, write, holdfast } = await make()
      await read.using(async (reading) => {
        expect(await holdfast.readWriteLock(stage.name()).write.using(() => 'other')).toBe('other')
        await reading.release()
        expect(await write.using(() => 'after')).toBe('after')
      })
    })

    test('behind a bare acquire of the same tree is told as waiting for oneself', async () => {
      const { name, read, write } = await make()
      const diagnoses = hear('holdfast:diagnosis', name)
      const reading = await read.acquire()
      await expect(stage.world.settled(write.acquire({ waitTime: 50 }))).rejects.toMatchObject({
        code: 'HOLDFAST_WAIT_TIMEOUT',
        holder: reading.owner,
      })
      expect(diagnoses).toMatchObject([{ kind: 'self-wait' }])
    })
  })

  describe('what each side says', () => {
    const seen = async ({ read, write }: ReadWriteLock) => [
      await read.isLocked(),
      await read.holdCount(),
      await write.isLocked(),
      await write.holdCount(),
    ]

    test('free, read, written, written and read, read again', async () => {
      const lock = await make()
      const watcher = await make(lock.name)
      expect(await seen(watcher)).toEqual([false, 0, false, 0])
      expect([await watcher.read.remainingTime(), await watcher.write.remainingTime()]).toEqual([0, 0])
      const reading = await lock.read.acquire()
      expect(await seen(watcher)).toEqual([true, 1, false, 0])
      expect([
        await watcher.read.isHeldBy(reading.owner),
        await watcher.write.isHeldBy(reading.owner),
      ]).toEqual([true, false])
      expect(await watcher.read.remainingTime()).toBeGreaterThan(0)
      expect(await watcher.write.remainingTime()).toBe(0)
      await reading.release()
      await lock.write.using(async (writing) => {
        expect(await seen(watcher)).toEqual([false, 0, true, 1])
        expect(await watcher.write.isHeldBy(writing.owner)).toBe(true)
        expect(await watcher.read.isHeldBy(writing.owner)).toBe(false)
        expect(await watcher.write.remainingTime()).toBeGreaterThan(0)
        await lock.write.using(async () => {
          expect(await watcher.write.holdCount(writing.owner)).toBe(2)
          await lock.read.using(async () => {
            expect(await seen(watcher)).toEqual([true, 1, true, 2])
          })
        })
        const inside = await lock.read.acquire()
        await writing.release()
        expect(await seen(watcher)).toEqual([true, 1, false, 0])
        expect(await watcher.read.holdCount(STRANGER)).toBe(0)
        await inside.release()
      })
    })
  })

  describe('forceRelease', () => {
    test('of each side is only for its own mode', async () => {
      const { name, read, write } = await make()
      const watcher = await make(name)
      expect([await watcher.read.forceRelease(), await watcher.write.forceRelease()]).toEqual([false, false])
      const reading = await read.acquire()
      expect(await watcher.write.forceRelease()).toBe(false)
      expect(await watcher.read.isHeldBy(reading.owner)).toBe(true)
      expect(await watcher.read.forceRelease()).toBe(true)
      expect(await reading.release()).toBe('stolen')
      const writing = await write.acquire()
      expect(await watcher.read.forceRelease()).toBe(false)
      expect(await watcher.write.isHeldBy(writing.owner)).toBe(true)
      expect(await watcher.write.forceRelease()).toBe(true)
      expect(await writing.release()).toBe('stolen')
      expect(await valueOf(name)).toBeUndefined()
    })

    test('takes all readers away, and wakes a writer', async () => {
      const { name, read } = await make()
      const other = await make(name)
      const readers = [await read.acquire(), await other.read.acquire()]
      const writer = other.write.acquire()
      await stage.world.pass(40)
      expect(await read.forceRelease()).toBe(true)
      expect((await stage.world.settled(writer)).held).toBe(true)
      for (const reader of readers) expect(await reader.release()).toBe('stolen')
    })

    test('of a write leaves the read inside of it', async () => {
      const { name, read, write } = await make()
      const watcher = await make(name)
      await write.acquire().then((writing) =>
        writing.run(async () => {
          const reading = await read.acquire()
          const waiting = watcher.read.acquire()
          await stage.world.pass(40)
          expect(await watcher.read.forceRelease()).toBe(false)
          expect(await watcher.write.forceRelease()).toBe(true)
          await stage.world.settled(waiting)
          expect(await watcher.read.isHeldBy(reading.owner)).toBe(true)
          expect(await reading.release()).toBe('released')
        }),
      )
    })
  })

  describe('minHold', () => {
    test('of a reader keeps writers out for the rest of it, not readers', async () => {
      const { name, read } = await make()
      const other = await make(name)
      const lease = await read.acquire({ minHold: 60_000 })
      expect(await lease.release()).toBe('released')
      expect(await other.write.tryAcquire()).toBeNull()
      const beside = await other.read.acquire()
      await beside.release()
      expect(await other.write.tryAcquire()).toBeNull()
      expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(50_000)
      expect(await other.read.isLocked()).toBe(true)
      expect(await other.read.forceRelease()).toBe(true)
      expect(await other.write.tryAcquire()).not.toBeNull()
    })

    test('of a writer keeps everybody out for the rest of it', async () => {
      const { name, write } = await make()
      const other = await make(name)
      const lease = await write.acquire({ minHold: 60_000 })
      expect(await lease.release()).toBe('released')
      expect([await other.read.tryAcquire(), await other.write.tryAcquire()]).toEqual([null, null])
      expect(await other.write.isLocked()).toBe(true)
      expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(50_000)
      expect(await other.write.forceRelease()).toBe(true)
      expect(await other.read.tryAcquire()).not.toBeNull()
    })

    test('of a writer with a read inside keeps writers out, not readers, and no longer than that', async () => {
      const { name, read, write } = await make()
      const other = await make(name)
      await write.using({ minHold: 10_000 }, async (writing) => {
        const reading = await read.acquire({ leaseTime: 25_000 })
        expect(await writing.release()).toBe('released')
        expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(20_000)
        expect(await other.write.tryAcquire()).toBeNull()
        const beside = await other.read.tryAcquire()
        expect(await beside?.release()).toBe('released')
        expect(await reading.release()).toBe('released')
      })
      expect(await other.write.tryAcquire()).toBeNull()
      expect((await stage.world.read(name))?.ttlMs).toBeLessThanOrEqual(10_000)
      expect(await other.read.forceRelease()).toBe(true)
      expect(await other.write.tryAcquire()).not.toBeNull()
    })

    test('of a writer that is over before a read inside it leaves the lock to readers, and then free', async () => {
      const { name, read, write } = await make()
      const other = await make(name)
      const writing = await write.acquire({ minHold: 200 })
      const reading = await writing.run(() => read.acquire({ leaseTime: 60_000 }))
      await writing.release()
      await stage.world.pass(250)
      expect(await other.write.tryAcquire()).toBeNull()
      expect(await reading.release()).toBe('released')
      expect(await other.write.tryAcquire()).not.toBeNull()
    })
  })

  describe("somebody else's data", () => {
    test.for(['list', 'hash'] as const)(
      'a %s is WrongTypeError for reading, and stays as it is',
      async (type) => {
        const { name, read } = await make()
        await stage.world.storeData(name, type)
        const before = await stage.world.read(name)
        const calls = [
          () => read.acquire({ waitTime: 1_000 }),
          () => read.tryAcquire(),
          () => read.using(() => 0),
          () => read.isLocked(),
          () => read.holdCount(),
          () => read.remainingTime(),
          () => read.forceRelease(),
        ]
        for (const call of calls)
          await expect(stage.world.settled<unknown>(call())).rejects.toMatchObject({
            code: 'HOLDFAST_WRONG_TYPE',
            key: name,
          })
        expect(await stage.world.read(name)).toEqual(before)
      },
    )

    test('nor is a plain lock of that name one', async () => {
      const { name, read, write, holdfast } = await make()
      const plain = await holdfast.lock(name).acquire()
      for (const call of [
        () => read.tryAcquire(),
        () => write.tryAcquire(),
        () => read.isLocked(),
        () => write.forceRelease(),
      ])
        await expect(call()).rejects.toMatchObject({ code: 'HOLDFAST_WRONG_TYPE' })
      expect(await plain.release()).toBe('released')
    })
  })

  test('a reader whose key is removed is told at the next renewal', async () => {
    const { name, read } = await make(undefined, { lockWatchdogTimeout: 300 })
    const lease = await read.acquire()
    const { signal } = lease
    await stage.world.remove(name)
    await stage.world.until(() => signal.aborted, 'it is told')
    expect(signal.reason).toMatchObject({ reason: 'stolen' })
  })

  test('an abort after the grant gives the read lock back', async () => {
    const { name, read } = await make()
    const controller = new AbortController()
    const call = read.acquire({ signal: controller.signal })
    controller.abort(new Error('gone'))
    await expect(call).rejects.toThrow('gone')
    await stage.world.until(async () => (await valueOf(name)) === undefined, 'it is free')
  })
}
