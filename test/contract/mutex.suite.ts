import { describe, expect, test } from 'vitest'
import { hear } from './hear.js'
import { aborting } from './aborting.suite.js'
import { acquiring } from './acquiring.suite.js'
import { badOptions } from './bad-options.suite.js'
import { closing } from './closing.suite.js'
import { leases } from './leases.suite.js'
import { names } from './names.suite.js'
import { observing } from './observing.suite.js'
import { trouble } from './trouble.suite.js'
import { using } from './using.suite.js'
import { subscribing, waiting } from './waiting.suite.js'
import { wrongType } from './wrong-type.suite.js'
import { forKind, type Stage } from './world.js'

/** All that the mutex promises. */
export function mutexSuite(stage: Stage): void {
  describe('Mutex', () => {
    const mutexes = forKind(stage, 'mutex')
    acquiring(mutexes)
    using(mutexes)
    aborting(mutexes)
    leases(mutexes)
    waiting(mutexes)
    subscribing(mutexes)
    closing(mutexes)
    names(mutexes)
    wrongType(mutexes)
    badOptions(mutexes)
    observing(mutexes)
    trouble(mutexes)
    scope(stage)
    stage.slowTests()
  })
}

/** What only the mutex does. */
function scope(stage: Stage): void {
  test('does not re-enter: nested use throws SelfHeldError', async () => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast()
    const mutex = holdfast.mutex(name)
    await mutex.using(async (lease) => {
      const attempts = [mutex.acquire(), mutex.tryAcquire(), holdfast.mutex(name).using(() => 0)]
      for (const attempt of attempts)
        await expect(attempt).rejects.toMatchObject({ code: 'HOLDFAST_SELF_HELD', lock: name })
      await expect(mutex.acquire({ within: lease })).rejects.toThrow(TypeError)
      expect(await holdfast.lock(stage.name()).using(() => 'other locks are free')).toBe(
        'other locks are free',
      )
    })
    expect(await stage.world.read(name)).toBeUndefined()
  })

  test('meets holders that tell nobody by polling from 20 ms on, not only by messages', async () => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast()
    await stage.world.take(name, 'a token of another library', { kind: 'mutex', ttlMs: 60_000 })
    const wakeups = hear('holdfast:wakeup', name)
    const startMs = stage.world.now()
    const waiter = holdfast.mutex(name).acquire()
    await stage.world.until(() => wakeups.filter(({ cause }) => cause === 'poll').length > 2, 'it polls')
    await stage.world.remove(name)
    expect((await stage.world.settled(waiter)).held).toBe(true)
    expect(wakeups.at(-1)?.cause).toBe('poll')
    // Only a clock of our own is exact: three pauses that begin with 20 ms, and one more.
    if (stage.world.server === undefined) expect(stage.world.now() - startMs).toBeLessThanOrEqual(400)
  })

  test('is the lock that SET NX PX and compare-and-delete make', async () => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast()
    const lease = await holdfast.mutex(name).acquire({ leaseTime: 9_000 })
    expect(await stage.world.read(name)).toEqual({
      value: lease.owner,
      ttlMs: expect.toSatisfy((ttl: number) => ttl > 0 && ttl <= 9_000) as number,
    })
    await stage.world.take(name, 'a token of another library', { kind: 'mutex', ttlMs: 60_000 })
    expect(await holdfast.mutex(name).isHeldBy('a token of another library')).toBe(true)
    expect(await lease.release()).toBe('stolen')
  })
}
