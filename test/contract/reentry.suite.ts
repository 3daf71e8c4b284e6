import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import type { CountingLock, Holdfast, HoldfastOptions, Lease } from '../../src/index.js'
import type { AnyLease } from '../../src/options.js'
import { hear, hearWarnings } from './hear.js'
import { Door, Gauge, turns, Watched } from './together.js'
import { countingLockOf, STRANGER, takenAs, type CountingKind, type Stage } from './world.js'

/** Re-entry follows the call tree: `using` and `lease.run` open a scope in which the same lock re-enters. */
export function reentry(stage: Stage, kind: CountingKind = 'lock'): void {
  const make = async (
    options?: HoldfastOptions,
  ): Promise<{ name: string; holdfast: Holdfast; lock: CountingLock }> => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast(options)
    return { name, holdfast, lock: countingLockOf(kind, holdfast, name) }
  }
  const countOf = async (name: string, owner: string) =>
    ((await stage.world.read(name))?.value as Record<string, number> | undefined)?.[
      kind === 'write' ? `${owner}:write` : owner
    ]

  describe('nested use', () => {
    test('enters as the same owner, once more, and leaves as often', async () => {
      const { name, lock } = await make()
      await lock.using(async (outer) => {
        expect(await countOf(name, outer.owner)).toBe(1)
        await lock.using(async (inner) => {
          expect(inner.owner).toBe(outer.owner)
          expect([inner.holdCount, outer.holdCount]).toEqual([2, 2])
          expect(await countOf(name, outer.owner)).toBe(2)
          await lock.using(async (third) => {
            expect(third.holdCount).toBe(3)
            expect(await lock.holdCount()).toBe(3)
            expect(await lock.holdCount(outer.owner)).toBe(3)
            expect(await lock.holdCount(STRANGER)).toBe(0)
            await expect(lock.holdCount('')).rejects.toThrow(/owner must be a non-empty string/)
          })
          expect(await inner.release()).toBe('still-held')
        })
        expect(outer.holdCount).toBe(1)
        expect(await countOf(name, outer.owner)).toBe(1)
      })
      expect(await stage.world.read(name)).toBeUndefined()
      expect(await lock.holdCount()).toBe(0)
    })

    test('of any lock object of that name, by any method, also after timers and events', async () => {
      const { name, holdfast, lock } = await make()
      await lock.using(async (outer) => {
        await turns()
        const another = countingLockOf(kind, holdfast, name)
        const owners = [
          await another.using((lease) => lease.owner),
          await another.tryUsing((lease) => lease.owner),
          await another.acquire().then(async (lease) => [lease.owner, await lease.release()]),
          await another.tryAcquire().then(async (lease) => [lease?.owner, await lease?.release()]),
          await new Promise((resolve) => setImmediate(() => resolve(another.using((lease) => lease.owner)))),
        ]
        expect(owners).toEqual([
          outer.owner,
          { acquired: true, value: outer.owner },
          [outer.owner, 'still-held'],
          [outer.owner, 'still-held'],
          outer.owner,
        ])
      })
    })

    test('is about the mapped name', async () => {
      const name = stage.name()
      const holdfast = await stage.world.holdfast({ nameMapper: () => name })
      await countingLockOf(kind, holdfast, 'one').using(async (outer) => {
        const inner = await countingLockOf(kind, holdfast, 'two').tryAcquire()
        expect(inner).toMatchObject({ owner: outer.owner, lock: 'two', holdCount: 2 })
        await inner?.release()
      })
    })

    test('does not reach to other names, nor to another Holdfast', async () => {
      const { name, holdfast, lock } = await make()
      const other = await stage.world.holdfast()
      await lock.using(async (outer) => {
        expect(await countingLockOf(kind, other, name).tryAcquire()).toBeNull()
        const free = await holdfast.lock(stage.name()).acquire()
        expect(free.owner).not.toBe(outer.owner)
        expect(free.holdCount).toBe(1)
      })
    })

    stage.slow('nested use does not begin outside of a scope: acquire() is always a new owner', async () => {
      const { lock } = await make()
      const lease = await lock.acquire()
      expect(await lock.tryAcquire()).toBeNull()
      expect(await stage.world.settled(lock.tryAcquire({ waitTime: 250 }))).toBeNull()
      await lease.release()
    })

    test('with a leaseTime of its own makes the hold last at least so long', async () => {
      const { name, lock } = await make()
      await lock.using({ leaseTime: 1_000 }, async (outer) => {
        await lock.using({ leaseTime: 60_000 }, () => 0)
        expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(50_000)
        expect(outer.remaining).toBeGreaterThan(50_000)
        await lock.using({ leaseTime: 5 }, () => 0)
        expect((await stage.world.read(name))?.ttlMs).toBeGreaterThan(50_000)
        expect(outer.remaining).toBeGreaterThan(50_000)
      })
    })

    stage.slow(
      'nested use without a leaseTime inside a lease with one is renewed for as long as it lasts',
      async () => {
        const { lock } = await make({ lockWatchdogTimeout: 1_500 })
        const outer = await lock.acquire({ leaseTime: 1_000 })
        await outer.run(async () => {
          await lock.using(async (inner) => {
            await stage.world.pass(1_600)
            expect(inner.held).toBe(true)
            expect(await lock.isHeldBy(outer.owner)).toBe(true)
          })
        })
        await stage.world.until(() => !outer.held, 'nobody renews it any more')
        expect(await outer.release()).toBe('expired')
      },
    )

    test('keeps the asynchronous context of the user', async () => {
      const context = new AsyncLocalStorage<number>()
      const { lock } = await make()
      await context.run(1, () =>
        lock.using(async () => {
          await context.run(2, () => lock.using(() => expect(context.getStore()).toBe(2)))
          expect(context.getStore()).toBe(1)
        }),
      )
    })
  })

  describe('lease.run', () => {
    test('opens the scope of a lease that was taken by acquire()', async () => {
      const { lock } = await make()
      const lease = await lock.acquire()
      const value = await lease.run(async () => {
        const inner = await lock.tryAcquire()
        expect(inner?.owner).toBe(lease.owner)
        return inner?.release()
      })
      expect(value).toBe('still-held')
      expect(await lock.tryAcquire()).toBeNull()
      expect(await lease.release()).toBe('released')
    })

    test("gives the callback's error", async () => {
      const { lock } = await make()
      const lease = await lock.acquire()
      const failing = lease.run(() => {
        throw new Error('the work failed')
      })
      await expect(failing).rejects.toThrow('the work failed')
      expect(lease.held).toBe(true)
    })

    test('cannot be entered when the lease is lost', async () => {
      const { lock } = await make()
      const lease = await lock.acquire({ leaseTime: 30 })
      await stage.world.until(() => !lease.held, 'the lease expires')
      await expect(lease.run(() => 0)).rejects.toMatchObject({
        code: 'HOLDFAST_LEASE_LOST',
        reason: 'expired',
      })
    })
  })

  describe('siblings inside one lease', () => {
    test('take turns, in the order in which they came', async () => {
      const { name, lock } = await make()
      const gauge = new Gauge()
      const order: number[] = []
      await stage.world.settled(
        lock.using(async (outer) => {
          const sibling = (i: number) =>
            lock.using(() =>
              gauge.through(async () => {
                order.push(i)
                await turns()
              }),
            )
          await Promise.all([0, 1, 2, 3, 4, 5].map(sibling))
          expect(await countOf(name, outer.owner)).toBe(1)
        }),
      )
      expect(gauge).toMatchObject({ most: 1, total: 6 })
      expect(order).toEqual([0, 1, 2, 3, 4, 5])
    })

    test('enter their own children without waiting for the next sibling', async () => {
      const { lock } = await make()
      const order: string[] = []
      const sibling = (name: string) =>
        lock.using(async () => {
          order.push(`${name} in`)
          await lock.using((lease) => order.push(`${name} child ${lease.holdCount}`))
          order.push(`${name} out`)
        })
      await stage.world.settled(lock.using(() => Promise.all([sibling('a'), sibling('b')])))
      expect(order).toEqual(['a in', 'a child 3', 'a out', 'b in', 'b child 3', 'b out'])
    })

    test('get null from tryAcquire, and what waitTime and signal say', async () => {
      const { lock } = await make()
      await lock.using(async () => {
        const door = new Door()
        const busy = lock.using(() => door.opened)
        await turns()
        expect(await lock.tryAcquire()).toBeNull()
        expect(await lock.tryUsing(() => 0)).toEqual({ acquired: false })
        expect(await stage.world.settled(lock.tryAcquire({ waitTime: 20 }))).toBeNull()
        await expect(stage.world.settled(lock.acquire({ waitTime: 20 }))).rejects.toMatchObject({
          code: 'HOLDFAST_WAIT_TIMEOUT',
        })
        const controller = new AbortController()
        const aborted = new Watched(lock.acquire({ signal: controller.signal }))
        const waiting = lock.using(() => 'entered')
        await turns()
        controller.abort(new Error('gone'))
        await expect(aborted.promise).rejects.toThrow('gone')
        door.open()
        await busy
        expect(await waiting).toBe('entered')
      })
    })

    test.for([0, 1, 2, 3, 4, 5, 6, 8])(
      'whose acquire is aborted on its way (after %d microtasks) let the next one in',
      async (microtasks) => {
        const { name, lock } = await make()
        await lock.using(async (outer) => {
          const controller = new AbortController()
          const aborted = lock.acquire({ signal: controller.signal })
          for (let i = 0; i < microtasks; i++) await undefined
          controller.abort(new Error('gone'))
          const [outcome] = await Promise.allSettled([aborted])
          if (outcome.status === 'fulfilled') await outcome.value.release()
          const next = await stage.world.settled(lock.acquire({ waitTime: 5_000 }))
          expect(next.owner).toBe(outer.owner)
          expect(next.holdCount).toBe(2)
          await next.release()
        })
        await stage.world.until(async () => (await stage.world.read(name)) === undefined, 'it is free')
      },
    )

    stage.slow(
      'siblings that wait for themselves without a waitTime are told so after one watchdog time-out',
      async () => {
        const { lock } = await make({ lockWatchdogTimeout: 1_500 })
        const startMs = stage.world.now()
        await lock.using(async () => {
          const lease = await lock.acquire()
          await expect(stage.world.settled(lock.acquire())).rejects.toMatchObject({
            name: 'SelfHeldError',
            code: 'HOLDFAST_SELF_HELD',
          })
          expect(lease.held).toBe(true)
          await lease.release()
          await lock.using(() => 'and then it re-enters')
        })
        expect(stage.world.now() - startMs).toBeGreaterThanOrEqual(1_499)
      },
    )
  })

  describe('children that outlive their parent', () => {
    test('keep the lock, and the last one frees it', async () => {
      const { name, lock } = await make()
      const door = new Door()
      const children: Promise<unknown>[] = []
      const parent = await lock.acquire()
      await parent.run(async () => {
        children.push(lock.using((lease) => door.opened.then(() => lease.held)))
        await stage.world.until(async () => (await lock.holdCount()) === 2, 'the child is inside')
      })
      expect(await parent.release()).toBe('still-held')
      expect(parent.held).toBe(false)
      expect(await countOf(name, parent.owner)).toBe(1)
      expect(await countingLockOf(kind, await stage.world.holdfast(), name).tryAcquire()).toBeNull()
      door.open()
      expect(await Promise.all(children)).toEqual([true])
      expect(await stage.world.read(name)).toBeUndefined()
    })

    stage.slow(
      'children that outlive their parent keep the watchdog of their own, and of nobody else',
      async () => {
        const { lock } = await make({ lockWatchdogTimeout: 1_500 })
        const parent = await lock.acquire({ leaseTime: 1_000 })
        const child = await lock.acquire({ within: parent })
        await parent.release()
        await stage.world.pass(1_600)
        expect(child.held).toBe(true)
        expect(await child.release()).toBe('released')
      },
    )

    test('and begin after its release compete like anybody else', async () => {
      const { name, lock } = await make()
      const door = new Door()
      const detached: Promise<Lease>[] = []
      const first = await lock.using((lease) => {
        detached.push(door.opened.then(() => lock.acquire()))
        return lease.owner
      })
      const stranger = await countingLockOf(kind, await stage.world.holdfast(), name).acquire()
      door.open()
      const [late] = detached.map((attempt) => new Watched(attempt))
      await stage.world.pass(40)
      expect(late?.state).toBe('pending')
      await stranger.release()
      expect((await stage.world.settled(late?.promise ?? Promise.reject(new Error('none')))).owner).not.toBe(
        first,
      )
    })

    test('and wait inside while it is released compete from then on', async () => {
      const { lock } = await make()
      const parent = await lock.acquire()
      const [door, late] = [new Door(), new Door()]
      const attempts: Promise<unknown>[] = []
      await parent.run(async () => {
        attempts.push(lock.using(() => door.opened))
        await stage.world.until(() => parent.holdCount === 2, 'the first is inside')
        attempts.push(lock.using((lease) => lease.owner))
        attempts.push(late.opened.then(() => lock.tryAcquire()))
        await turns()
      })
      await parent.release()
      late.open()
      expect(await stage.world.settled(attempts[2] ?? Promise.reject(new Error('none')))).toBeNull()
      await stage.world.pass(20)
      door.open()
      const [, owner] = await stage.world.settled(Promise.all(attempts))
      expect(owner).toMatch(/:/)
      expect(owner).not.toBe(parent.owner)
    })
  })

  describe('within', () => {
    test('re-enters where no scope reaches', async () => {
      const { name, lock } = await make()
      const lease = await lock.acquire()
      const inner = await lock.acquire({ within: lease })
      expect(inner).toMatchObject({ owner: lease.owner, holdCount: 2 })
      expect(await countOf(name, lease.owner)).toBe(2)
      expect(await lock.tryAcquire({ within: lease })).toBeNull()
      const third = await lock.acquire({ within: inner })
      expect(third.holdCount).toBe(3)
      expect(await third.release()).toBe('still-held')
      expect(await lease.release()).toBe('still-held')
      expect(await inner.release()).toBe('released')
    })

    test('is refused for what is no lease of this lock', async () => {
      const { holdfast, lock } = await make()
      const lease = await holdfast.lock(stage.name()).acquire()
      await expect(lock.acquire({ within: lease })).rejects.toThrow(TypeError)
      await expect(lock.acquire({ within: {} as AnyLease })).rejects.toThrow(/within must be a lease/)
      await expect(lock.tryAcquire({ within: null as unknown as AnyLease })).rejects.toThrow(
        /within must be a lease/,
      )
      const mine = await lock.acquire()
      const rigid = holdfast.lock(lock.name, { reentrant: false })
      await expect(rigid.acquire({ within: mine })).rejects.toThrow(/does not re-enter/)
    })

    test('is refused for a lease of another Holdfast', async () => {
      const { name, lock } = await make()
      const foreign = await countingLockOf(kind, await stage.world.holdfast(), name).acquire()
      await expect(lock.acquire({ within: foreign, waitTime: 0 })).rejects.toThrow(TypeError)
    })

    test('is refused when the lease was released or lost', async () => {
      const { lock } = await make()
      const lease = await lock.acquire()
      await lease.release()
      await expect(lock.acquire({ within: lease })).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
      const short = await lock.acquire({ leaseTime: 30 })
      await stage.world.until(() => !short.held, 'the lease expires')
      await expect(lock.acquire({ within: short })).rejects.toMatchObject({ code: 'HOLDFAST_LEASE_LOST' })
    })
  })

  describe('loss inside a scope', () => {
    test('is found by the nested acquire, and told to every lease, once', async () => {
      const { name, lock } = await make()
      const lost = hear('holdfast:lost', name)
      const work = lock.using(async (outer) => {
        const inner = await lock.acquire()
        const signals = [outer.signal, inner.signal]
        await stage.world.take(name, STRANGER, { kind, ttlMs: 60_000 })
        await expect(lock.acquire({ within: inner })).rejects.toMatchObject({
          code: 'HOLDFAST_LEASE_LOST',
          reason: 'stolen',
        })
        expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
        expect(await inner.release()).toBe('stolen')
      })
      await expect(work).rejects.toMatchObject({ reason: 'stolen' })
      expect(lost).toHaveLength(1)
      expect(await stage.world.read(name)).toMatchObject({ value: takenAs(kind, STRANGER) })
    })

    test('is found by leaving', async () => {
      const { name, lock } = await make()
      const outer = await lock.acquire()
      const { signal } = outer
      const inner = await lock.acquire({ within: outer })
      await stage.world.remove(name)
      expect(await inner.release()).toBe('stolen')
      expect(signal.aborted).toBe(true)
      expect(await outer.release()).toBe('stolen')
    })

    test('sends siblings that wait for their turn to compete at once', async () => {
      const { name, lock } = await make()
      const door = new Door()
      const work = lock.using(async (outer) => {
        const inside = lock.using(() => door.opened)
        await stage.world.until(() => outer.holdCount === 2, 'the sibling is inside')
        const waiting = lock.acquire()
        await turns()
        await stage.world.remove(name)
        await expect(outer.extend(1_000)).rejects.toMatchObject({ reason: 'stolen' })
        const next = await stage.world.settled(waiting)
        expect(next.owner).not.toBe(outer.owner)
        await next.release()
        door.open()
        await expect(inside).rejects.toMatchObject({ reason: 'stolen' })
      })
      await expect(work).rejects.toMatchObject({ reason: 'stolen' })
    })

    test('ends the scope: nested use competes like anybody else', async () => {
      const { name, lock } = await make()
      const work = lock.using({ leaseTime: 40 }, async (outer) => {
        await stage.world.until(() => outer.signal.aborted, 'the lease expires')
        const next = await stage.world.settled(lock.acquire())
        expect(next.owner).not.toBe(outer.owner)
        expect(await countOf(name, next.owner)).toBe(1)
        await next.release()
      })
      await expect(stage.world.settled(work)).rejects.toMatchObject({ reason: 'expired' })
    })
  })

  describe('a lock that does not re-enter', () => {
    test('throws SelfHeldError inside its own scope', async () => {
      const { name, holdfast } = await make()
      const rigid = holdfast.lock(name, { reentrant: false })
      await rigid.using(async () => {
        for (const attempt of [
          rigid.acquire(),
          rigid.tryAcquire(),
          rigid.using(() => 0),
          rigid.tryUsing(() => 0),
        ])
          await expect(attempt).rejects.toMatchObject({ code: 'HOLDFAST_SELF_HELD', lock: name })
      })
      expect(await stage.world.read(name)).toBeUndefined()
    })

    test('also inside the scope of a lock that does', async () => {
      // A read/write lock is another lock, whatever its name.
      if (kind === 'read' || kind === 'write') return
      const { name, holdfast, lock } = await make()
      const rigid = holdfast.lock(name, { reentrant: false })
      await lock.using(async () => {
        await expect(rigid.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_SELF_HELD' })
      })
      await rigid.using(async (outer) => {
        await lock.using((inner) => {
          expect(inner.owner).toBe(outer.owner)
        })
      })
    })
  })

  describe('waiting for what the same tree took by acquire()', () => {
    stage.slow(
      'waiting for what the same tree took by acquire() is diagnosed at once, and warned of after one watchdog time-out, with both lines',
      async () => {
        const { name, lock } = await make({ lockWatchdogTimeout: 1_500 })
        const diagnoses = hear('holdfast:diagnosis', name)
        const warnings = hearWarnings(name)
        await turns()
        // A note of the place is taken once a millisecond at most.
        await stage.world.pass(5)
        const lease = await lock.acquire()
        await stage.world.pass(5)
        const controller = new AbortController()
        const attempt = new Watched(lock.acquire({ signal: controller.signal }))
        await stage.world.until(() => warnings.length > 0, 'the warning is emitted')
        controller.abort()
        await expect(attempt.promise).rejects.toThrow()
        const told = diagnoses.filter((event) => event.kind === 'self-wait')
        expect(told).toMatchObject([{ lock: name }])
        const [{ message } = { message: '' }] = told
        const places = new Set(message.match(/reentry\.suite\.[jt]s:\d+:\d+/g))
        expect(places.size).toBe(2)
        expect(warnings).toMatchObject([{ code: 'HOLDFAST_SELF_WAIT', message }])
        await lease.release()
      },
    )

    test('is none when the other call comes from elsewhere', async () => {
      const { name, lock } = await make()
      const diagnoses = hear('holdfast:diagnosis', name)
      const elsewhere = new Door()
      const waiter = elsewhere.opened.then(() => lock.acquire())
      await stage.world.pass(5)
      const lease = await new Promise<Lease>((resolve) => setImmediate(() => resolve(lock.acquire())))
      elsewhere.open()
      await stage.world.pass(30)
      await lease.release()
      await (await stage.world.settled(waiter)).release()
      expect(diagnoses.filter(({ kind }) => kind === 'self-wait')).toEqual([])
    })
  })
}
