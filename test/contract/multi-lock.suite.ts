import { describe, expect, test } from 'vitest'
import type { ExclusiveLock, Holdfast, Lease } from '../../src/index.js'
import { hear } from './hear.js'
import { Gauge, turns, Watched } from './together.js'
import { STRANGER, type Stage } from './world.js'

type Make = (holdfast: Holdfast, name: string) => ExclusiveLock

const MADE: readonly (readonly [string, Make])[] = [
  ['lock', (holdfast, name) => holdfast.lock(name)],
  ['fair lock', (holdfast, name) => holdfast.fairLock(name)],
  ['fenced lock', (holdfast, name) => holdfast.fencedLock(name)],
  ['spin lock', (holdfast, name) => holdfast.spinLock(name)],
  ['mutex', (holdfast, name) => holdfast.mutex(name)],
  ['write lock', (holdfast, name) => holdfast.readWriteLock(name).write],
  ['read lock', (holdfast, name) => holdfast.readWriteLock(name).read],
]

/** All that several locks as one promise. */
export function multiLockSuite(stage: Stage): void {
  const names = () => [stage.name(), stage.name(), stage.name()] as const
  const settled = <T>(promise: Promise<T>) => stage.world.settled(promise)
  /** A multi-lock on three re-entrant locks, on a Holdfast of its own. */
  const three = async (those = names()) => {
    const holdfast = await stage.world.holdfast()
    return { holdfast, those, multi: holdfast.multiLock(those.map((name) => holdfast.lock(name))) }
  }
  const stored = (those: readonly string[]) => Promise.all(those.map((name) => stage.world.read(name)))

  describe('MultiLock', () => {
    allOrNothing()
    manyKinds()
    inside()
    oneLease()
    arguments_()
    progress()
    stage.slowTests()
  })

  function allOrNothing(): void {
    test('takes all, under one owner, and releases all', async () => {
      const { multi, those } = await three()
      const lease = await multi.acquire()
      expect(lease).toMatchObject({ held: true, holdCount: 1, lock: those.join(' + ') })
      for (const name of those) expect((await stage.world.read(name))?.value).toEqual({ [lease.owner]: 1 })
      expect(lease.leases.map(({ lock }) => lock)).toEqual(those)
      expect(await lease.release()).toBe('released')
      expect(lease).toMatchObject({ held: false, holdCount: 0, remaining: 0 })
      expect(await stored(those)).toEqual([undefined, undefined, undefined])
    })

    test('costs two scripts, however many locks there are, where they share a slot', async () => {
      if (stage.world.server === undefined) return
      const { multi } = await three()
      const before = await stage.world.operations()
      await multi.using(() => turns())
      expect(await stage.world.operations()).toBe(before + 2)
    })

    for (const busy of [0, 1, 2])
      test(`takes none while somebody else has number ${busy}`, async () => {
        const { multi, those } = await three()
        const name = those[busy] ?? ''
        await stage.world.take(name, STRANGER, { kind: 'lock', ttlMs: 60_000 })
        expect(await multi.tryAcquire()).toBeNull()
        expect((await stored(those)).map((one) => one !== undefined)).toEqual(
          [0, 1, 2].map((i) => i === busy),
        )
        await expect(multi.acquire({ waitTime: 0 })).rejects.toMatchObject({
          code: 'HOLDFAST_WAIT_TIMEOUT',
          holder: STRANGER,
        })
      })

    test('waits for those that are taken, and leaves the others free meanwhile', async () => {
      const { multi, those } = await three()
      const other = await stage.world.holdfast()
      const theirs = await other.lock(those[2]).acquire()
      const waiting = new Watched(multi.acquire())
      await stage.world.pass(60)
      expect(waiting.state).toBe('pending')
      expect((await stored(those)).map((one) => one !== undefined)).toEqual([false, false, true])
      await theirs.release()
      const lease = await settled(waiting.promise)
      expect(lease.held).toBe(true)
    })

    stage.slow('MultiLock: nothing is left of an attempt whose time is over', async () => {
      const { multi, those, holdfast } = await three()
      const other = await stage.world.holdfast()
      await other.lock(those[1]).acquire()
      expect(await settled(multi.tryAcquire({ waitTime: 250 }))).toBeNull()
      expect((await stored(those)).map((one) => one !== undefined)).toEqual([false, true, false])
      expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
    })

    test('a list of somebody else under one of the names stops it, and stays as it is', async () => {
      const { multi, those } = await three()
      await stage.world.storeData(those[1], 'list')
      await expect(multi.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_WRONG_TYPE', lock: those[1] })
      expect((await stored(those)).map((one) => one !== undefined)).toEqual([false, true, false])
    })

    test('tells each name once, and the whole', async () => {
      const { multi, those } = await three()
      const granted = hear('holdfast:acquire:granted', multi.name)
      const released = hear('holdfast:release', multi.name)
      const each = those.map((name) => hear('holdfast:release', name))
      await multi.using(() => turns())
      expect([granted.length, released.length, ...each.map(({ length }) => length)]).toEqual([1, 1, 1, 1, 1])
    })
  }

  function manyKinds(): void {
    const mixed = async () => {
      const [here, there] = [await stage.world.holdfast(), await stage.world.holdfast()]
      const those = MADE.map(() => stage.name())
      const locks = MADE.map(([, make], i) => make(i % 2 === 0 ? here : there, those[i] ?? ''))
      return { here, there, locks, multi: here.multiLock(locks), those }
    }

    test('takes locks of every kind, and of several Holdfasts', async () => {
      const { multi, locks, those } = await mixed()
      const lease = await settled(multi.acquire())
      expect(await Promise.all(locks.map((lock) => lock.isLocked()))).toEqual(locks.map(() => true))
      expect(await multi.isHeldBy(lease.owner)).toBe(true)
      expect(await settled(lease.release())).toBe('released')
      expect(await stored(those)).toEqual(those.map(() => undefined))
    })

    test('the lease of a fenced lock among them has its token', async () => {
      const { multi } = await mixed()
      const lease = await settled(multi.acquire())
      expect(lease.leases[2]).toMatchObject({ token: expect.any(Number) as number, held: true })
    })

    for (const [i, [kind]] of MADE.entries())
      test(`takes none while somebody else has the ${kind}`, async () => {
        const { multi, those } = await mixed()
        const other = await stage.world.holdfast()
        // A reader is kept out by a writer.
        const theirs = (MADE[i === 6 ? 5 : i] ?? MADE[0])?.[1](other, those[i] ?? '')
        await theirs?.acquire()
        expect(await settled(multi.tryAcquire())).toBeNull()
        const rest = (await stored(those)).filter((_, place) => place !== i)
        expect(rest).toEqual(rest.map(() => undefined))
      })

    test('of multi-locks takes their locks, each once', async () => {
      const holdfast = await stage.world.holdfast()
      const those = names()
      const lock = (place: number) => holdfast.lock(those[place] ?? '')
      const multi = holdfast.multiLock([
        holdfast.multiLock([lock(0), lock(1)]),
        lock(1),
        holdfast.multiLock([lock(2), lock(0)]),
      ])
      expect(multi.name).toBe(those.join(' + '))
      const lease = await multi.acquire()
      for (const name of those) expect((await stage.world.read(name))?.value).toEqual({ [lease.owner]: 1 })
      expect(await lease.release()).toBe('released')
    })

    test('of plain locks under one of them keeps others out, and the other way round', async () => {
      const { multi, those } = await three()
      const other = await stage.world.holdfast()
      const lease = await multi.acquire()
      expect(await other.lock(those[0]).tryAcquire()).toBeNull()
      await lease.release()
      expect(await other.lock(those[0]).tryAcquire()).toMatchObject({ held: true })
    })
  }

  function inside(): void {
    test('enters what the calling code holds, and takes the rest', async () => {
      const { multi, those, holdfast } = await three()
      await holdfast.lock(those[1]).using(async (outer) => {
        await multi.using(async (lease) => {
          expect((await stage.world.read(those[1]))?.value).toEqual({ [outer.owner]: 2 })
          expect((await stage.world.read(those[0]))?.value).toEqual({ [lease.owner]: 1 })
        })
        expect((await stored(those)).map((one) => one !== undefined)).toEqual([false, true, false])
        expect(outer).toMatchObject({ held: true, holdCount: 1 })
      })
      expect(await stored(those)).toEqual([undefined, undefined, undefined])
    })

    test('is entered by its own kind and by each of its locks', async () => {
      const { multi, those, holdfast } = await three()
      await multi.using(async (lease) => {
        expect(await multi.tryUsing((again) => again.holdCount)).toEqual({ acquired: true, value: 2 })
        expect(await holdfast.lock(those[2]).tryUsing((again) => again.holdCount)).toEqual({
          acquired: true,
          value: 2,
        })
        expect(lease.holdCount).toBe(1)
      })
    })

    test('explicitly, by within: the whole, or one of its locks', async () => {
      const { multi, those, holdfast } = await three()
      const lease = await multi.acquire()
      expect(await multi.using({ within: lease }, (again) => again.holdCount)).toBe(2)
      const [first] = lease.leases
      expect(await holdfast.lock(those[0]).using({ within: first }, (again) => again.holdCount)).toBe(2)
      const foreign = await holdfast.lock(stage.name()).acquire()
      await expect(multi.acquire({ within: foreign })).rejects.toThrow(/within must be a lease of/)
    })

    test('siblings inside take turns, whatever the order of their locks', async () => {
      const { multi, those, holdfast } = await three()
      const gauge = new Gauge()
      const orders = [those, [...those].reverse(), [those[1], those[2]]]
      const work = multi.using(() =>
        Promise.all(
          orders.map((order) =>
            holdfast
              .multiLock(order.map((name) => holdfast.lock(name)))
              .using(() => gauge.through(() => turns())),
          ),
        ),
      )
      await settled(work)
      expect(gauge).toMatchObject({ most: 1, total: 3 })
    })
  }

  function oneLease(): void {
    stage.slow(
      'MultiLock: the loss of one is the loss of all; the others stay closed until the release',
      async () => {
        const those = names()
        const holdfast = await stage.world.holdfast({ lockWatchdogTimeout: 1_500 })
        const multi = holdfast.multiLock(those.map((name) => holdfast.lock(name)))
        const lost = hear('holdfast:lost', multi.name)
        const lease = await multi.acquire()
        const { signal } = lease
        await stage.world.take(those[1], STRANGER, { kind: 'lock', ttlMs: 60_000 })
        await stage.world.until(() => signal.aborted, 'the signal aborts')
        expect(signal.reason).toMatchObject({
          code: 'HOLDFAST_LEASE_LOST',
          reason: 'stolen',
          lock: multi.name,
        })
        expect(lease).toMatchObject({ held: false, remaining: 0 })
        expect((await stage.world.read(those[0]))?.value).toEqual({ [lease.owner]: 1 })
        expect(await lease.release()).toBe('stolen')
        expect(lost).toMatchObject([{ reason: 'stolen' }])
        expect((await stored(those)).map((one) => one !== undefined)).toEqual([false, true, false])
      },
    )

    stage.slow('MultiLock: after a loss the rest is not renewed any more', async () => {
      const those = names()
      const holdfast = await stage.world.holdfast({ lockWatchdogTimeout: 1_000 })
      const multi = holdfast.multiLock(those.map((name) => holdfast.lock(name)))
      const lease = await multi.acquire()
      await stage.world.remove(those[0])
      await stage.world.until(() => !lease.held, 'it is lost')
      await stage.world.until(
        async () => (await stage.world.read(those[2])) === undefined,
        'the rest expires',
      )
    })

    stage.slow('MultiLock: without a lease time all are renewed', async () => {
      const those = names()
      const holdfast = await stage.world.holdfast({ lockWatchdogTimeout: 1_000 })
      const multi = holdfast.multiLock(those.map((name) => holdfast.lock(name)))
      const lease = await multi.acquire()
      await stage.world.pass(1_500)
      expect(lease.held).toBe(true)
      expect((await stored(those)).every((one) => one !== undefined)).toBe(true)
    })

    test('extend makes all last', async () => {
      const { multi, those } = await three()
      const lease = await multi.acquire({ leaseTime: 5_000 })
      await lease.extend(60_000)
      expect(lease.remaining).toBeGreaterThan(50_000)
      for (const one of await stored(those)) expect(one?.ttlMs).toBeGreaterThan(50_000)
    })

    test('extend finds out that one was stolen', async () => {
      const { multi, those } = await three()
      const lease = await multi.acquire({ leaseTime: 5_000 })
      await stage.world.take(those[2], STRANGER, { kind: 'lock', ttlMs: 60_000 })
      await expect(lease.extend(60_000)).rejects.toMatchObject({
        code: 'HOLDFAST_LEASE_LOST',
        reason: 'stolen',
      })
      expect(lease.held).toBe(false)
    })

    test('releases all though one is not ours any more, and tells the worst', async () => {
      const { multi, those } = await three()
      const lease = await multi.acquire()
      await stage.world.take(those[0], STRANGER, { kind: 'lock', ttlMs: 60_000 })
      expect(await lease.release()).toBe('stolen')
      expect(await stored(those)).toMatchObject([{ value: { [STRANGER]: 1 } }, undefined, undefined])
    })

    stage.slow('MultiLock: the lease time begins when the last one is taken', async () => {
      const those = names()
      const [mine, other] = [await stage.world.holdfast(), await stage.world.holdfast()]
      // A mutex, so that no script takes all at once.
      const sorted = [...those].sort()
      const locks = [mine.lock(sorted[0] ?? ''), mine.mutex(sorted[1] ?? '')]
      const theirs = await other.mutex(sorted[1] ?? '').acquire()
      const waiting = mine.multiLock(locks).acquire({ leaseTime: 1_000 })
      await stage.world.pass(700)
      await theirs.release()
      const lease = await settled(waiting)
      expect(lease.held).toBe(true)
      expect((await stage.world.read(sorted[0] ?? ''))?.ttlMs).toBeLessThanOrEqual(1_000)
      expect(lease.remaining).toBeGreaterThan(500)
    })

    test('minHold closes all for the rest of it', async () => {
      const { multi, those } = await three()
      const lease = await multi.acquire({ minHold: 40_000 })
      expect(await lease.release()).toBe('released')
      for (const one of await stored(those)) expect(one?.ttlMs).toBeGreaterThan(30_000)
    })

    test('isLocked, isHeldBy, remainingTime, forceRelease are about all', async () => {
      const { multi, those, holdfast } = await three()
      expect([await multi.isLocked(), await multi.remainingTime()]).toEqual([false, 0])
      const one = await holdfast.lock(those[1]).acquire({ leaseTime: 9_000 })
      expect([await multi.isLocked(), await multi.isHeldBy(one.owner)]).toEqual([true, false])
      expect(await multi.remainingTime()).toBeGreaterThan(5_000)
      expect(await multi.forceRelease()).toBe(true)
      expect(await multi.forceRelease()).toBe(false)
      expect(await one.release()).toBe('stolen')
    })
  }

  function arguments_(): void {
    test('refuses an empty list, and what is no lock', async () => {
      const holdfast = await stage.world.holdfast()
      expect(() => holdfast.multiLock([])).toThrow(RangeError)
      const bad: unknown[] = [
        undefined,
        null,
        'a name',
        {},
        [{}],
        [undefined],
        [holdfast],
        [holdfast.lock('a'), 7],
      ]
      for (const locks of bad) expect(() => holdfast.multiLock(locks as ExclusiveLock[])).toThrow(TypeError)
    })

    test('refuses two kinds of lock under one name', async () => {
      const holdfast = await stage.world.holdfast()
      const name = stage.name()
      const { read, write } = holdfast.readWriteLock(name)
      expect(() => holdfast.multiLock([read, write])).toThrow(RangeError)
      expect(() => holdfast.multiLock([holdfast.lock(name), holdfast.fencedLock(name)])).toThrow(RangeError)
    })

    test('of a lock that does not re-enter throws inside of it', async () => {
      const holdfast = await stage.world.holdfast()
      const name = stage.name()
      const plain = holdfast.lock(name, { reentrant: false })
      const multi = holdfast.multiLock([holdfast.lock(name), plain, holdfast.lock(stage.name())])
      await multi.using(async () => {
        await expect(multi.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_SELF_HELD' })
      })
      expect(holdfast.stats().held).toBe(0)
    })
  }

  function progress(): void {
    stage.slow('MultiLock: overlapping sets of many callers: all get through, one at a time', async () => {
      const those = [...names(), stage.name()]
      const holdfasts = [
        await stage.world.holdfast(),
        await stage.world.holdfast(),
        await stage.world.holdfast(),
      ]
      const gauges = new Map(those.map((name) => [name, new Gauge()]))
      const through = (sets: readonly string[]): Promise<unknown> =>
        sets.reduceRight<() => Promise<unknown>>(
          (inner, name) => async () => gauges.get(name)?.through(inner),
          () => turns(2),
        )()
      const callers = Array.from({ length: 24 }, async (_, i) => {
        const holdfast = holdfasts[i % 3] ?? holdfasts[0]
        const [one = '', two = ''] = [those[i % 4], those[(i + 1 + (i % 2)) % 4]]
        const locks = (i % 3 === 0 ? [one, two] : [two, one]).map((name) => holdfast?.lock(name))
        await holdfast?.multiLock(locks as ExclusiveLock[]).using(() => through([one, two]))
      })
      await settled(Promise.all(callers))
      for (const gauge of gauges.values()) expect(gauge.most).toBe(1)
    })

    stage.slow('MultiLock: nested multi-locks with overlapping sets, in a circle, get through', async () => {
      const those = names()
      const callers = those.map(async (_, i) => {
        const holdfast = await stage.world.holdfast()
        const lock = (place: number) => holdfast.lock(those[place % 3] ?? '')
        const pair = (from: number) => holdfast.multiLock([lock(from + 1), lock(from)])
        for (let turn = 0; turn < 5; turn++)
          await pair(i).using(async () => {
            await turns()
            // It wants one more; what it has, its neighbours want.
            const more: Lease | null = await pair(i + 1).tryAcquire({ waitTime: 40 })
            await more?.release()
          })
      })
      await settled(Promise.all(callers))
      expect(await stored(those)).toEqual([undefined, undefined, undefined])
    })
  }
}
