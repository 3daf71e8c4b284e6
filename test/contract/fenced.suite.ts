import { describe, expect, test } from 'vitest'
import type { FencedLease } from '../../src/index.js'
import { aborting } from './aborting.suite.js'
import { acquiring } from './acquiring.suite.js'
import { badOptions } from './bad-options.suite.js'
import { closing } from './closing.suite.js'
import { leases } from './leases.suite.js'
import { names } from './names.suite.js'
import { observing } from './observing.suite.js'
import { reentry } from './reentry.suite.js'
import { trouble } from './trouble.suite.js'
import { using } from './using.suite.js'
import { subscribing, waiting } from './waiting.suite.js'
import { wrongType } from './wrong-type.suite.js'
import { forKind, type Stage } from './world.js'

/** All that the fenced lock promises: what a lock does, and tokens. */
export function fencedSuite(stage: Stage): void {
  describe('FencedLock', () => {
    const locks = forKind(stage, 'fenced')
    acquiring(locks)
    using(locks)
    aborting(locks)
    leases(locks)
    waiting(locks)
    subscribing(locks)
    closing(locks)
    names(locks)
    wrongType(locks)
    badOptions(locks)
    observing(locks)
    trouble(locks)
    reentry(stage, 'fenced')
    tokens(stage)
    stage.slowTests()
  })
}

/** What only the fenced lock does. */
function tokens(stage: Stage): void {
  const make = async (name = stage.name()) => {
    const holdfast = await stage.world.holdfast()
    return { name, holdfast, lock: holdfast.fencedLock(name) }
  }

  describe('the token', () => {
    test('is 0 before the first grant, and one more with each', async () => {
      const { name, lock } = await make()
      const other = await make(name)
      expect(await lock.token()).toBe(0)
      const seen: number[] = []
      for (const mine of [lock, other.lock, lock]) {
        const lease = await mine.acquire()
        seen.push(lease.token)
        expect(await other.lock.token()).toBe(lease.token)
        await lease.release()
      }
      expect(seen).toEqual([1, 2, 3])
    })

    test('comes with every way of acquiring', async () => {
      const { lock } = await make()
      const seen = [
        await lock.using((lease) => lease.token),
        await lock.using({ leaseTime: 5_000 }, (lease) => lease.token),
        await lock.tryUsing((lease) => lease.token),
        await lock.tryAcquire().then(async (lease) => [lease?.token, await lease?.release()]),
      ]
      expect(seen).toEqual([1, 2, { acquired: true, value: 3 }, [4, 'released']])
    })

    test('is not spent on a caller that finds the lock taken', async () => {
      const { name, lock } = await make()
      const lease = await lock.acquire()
      const other = await make(name)
      expect(await other.lock.tryAcquire()).toBeNull()
      await expect(stage.world.settled(other.lock.acquire({ waitTime: 30 }))).rejects.toThrow()
      expect(await lock.token()).toBe(lease.token)
    })

    test('grows over a release, a forced release, an expiry and a removed key', async () => {
      const { name, lock } = await make()
      const ends: ((lease: FencedLease) => Promise<unknown>)[] = [
        (lease) => lease.release(),
        () => lock.forceRelease(),
        () => stage.world.pass(120),
        () => stage.world.remove(name),
      ]
      let last = 0
      for (const end of ends) {
        const lease = await lock.acquire({ leaseTime: 100 })
        expect(lease.token).toBe(last + 1)
        last = lease.token
        await end(lease)
        expect(await lock.token()).toBe(last)
      }
    })

    test('is still there when the lease is lost or released', async () => {
      const { name, lock } = await make()
      const lost = await lock.acquire({ leaseTime: 50 })
      lost.signal.addEventListener('abort', () => undefined)
      await stage.world.pass(60)
      expect([lost.held, lost.token]).toEqual([false, 1])
      const released = await (await make(name)).lock.acquire()
      await released.release()
      expect(released.token).toBe(2)
    })

    test('of a nested use is higher, and the leases around it have it from then on', async () => {
      const { lock } = await make()
      await lock.using(async (outer) => {
        expect(outer.token).toBe(1)
        await lock.using((inner) => {
          expect([inner.token, outer.token]).toEqual([2, 2])
        })
        const within = await lock.acquire({ within: outer })
        expect([within.token, outer.token]).toEqual([3, 3])
        await within.release()
        expect([outer.held, outer.token]).toEqual([true, 3])
      })
      expect(await lock.token()).toBe(3)
    })

    test('is there where a plain use is around, and a plain use inside changes nothing', async () => {
      const { name, holdfast, lock } = await make()
      const plain = holdfast.lock(name)
      await plain.using(async (outer) => {
        expect('token' in outer).toBe(false)
        const token = await lock.using(async (inner) => {
          await plain.using((innermost) => expect('token' in innermost).toBe(false))
          return inner.token
        })
        expect(token).toBe(1)
      })
      await lock.using(async (outer) => {
        await plain.using(() => undefined)
        expect(outer.token).toBe(2)
      })
      expect(await lock.token()).toBe(2)
    })

    test('of many callers: no two have the same, and it grows in the order of the grants', async () => {
      const { name, lock } = await make()
      const other = await make(name)
      const seen: number[] = []
      const callers = Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? lock : other.lock).using((lease) => seen.push(lease.token)),
      )
      await stage.world.settled(Promise.all(callers))
      expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
    })
  })

  test('shares the lock of the same name with lock() and spinLock()', async () => {
    const { name, lock } = await make()
    const other = await stage.world.holdfast()
    const lease = await lock.acquire()
    expect(await other.lock(name).tryAcquire()).toBeNull()
    expect(await other.spinLock(name).tryAcquire()).toBeNull()
    await lease.release()
    const plain = await other.lock(name).acquire()
    expect(await lock.tryAcquire()).toBeNull()
    await plain.release()
  })

  test.for([
    ['a list', ['RPUSH', 'theirs']],
    ['a word', ['SET', 'theirs']],
    ['a number that cannot grow', ['SET', '9007199254740991']],
    ['a number that is too high to be told', ['SET', '9007199254740993']],
    ['a negative number', ['SET', '-1']],
  ] as const)('%s in the place of the token is WrongTypeError, and stays', async ([, [command, value]]) => {
    if (stage.world.server === undefined) return
    const { name, lock } = await make()
    const key = `redisson_lock_token:{${name}}`
    await stage.server.command(command, key, value)
    const before = await stage.server.command('DUMP', key)
    const wrong = { code: 'HOLDFAST_WRONG_TYPE', lock: name, key }
    await expect(lock.acquire()).rejects.toMatchObject(wrong)
    await expect(lock.tryAcquire({ waitTime: 1_000 })).rejects.toMatchObject(wrong)
    if (value === '9007199254740991') expect(await lock.token()).toBe(Number.MAX_SAFE_INTEGER)
    else await expect(lock.token()).rejects.toMatchObject(wrong)
    expect(await stage.world.read(name)).toBeUndefined()
    expect(await stage.server.command('DUMP', key)).toEqual(before)
  })

  test('a token that breaks under a holder fails the nested use, and not the hold', async () => {
    if (stage.world.server === undefined) return
    const { name, lock } = await make()
    await lock.using(async (outer) => {
      await stage.server.command('SET', `redisson_lock_token:{${name}}`, 'theirs')
      await expect(lock.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_WRONG_TYPE' })
      expect([outer.held, outer.holdCount]).toEqual([true, 1])
      await stage.server.command('SET', `redisson_lock_token:{${name}}`, 7)
      expect(await lock.using((inner) => inner.token)).toBe(8)
    })
  })
}
