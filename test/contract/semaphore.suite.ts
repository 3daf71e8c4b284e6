import { describe, expect, test } from 'vitest'
import type { Semaphore, SemaphoreOptions } from '../../src/index.js'
import { hear } from './hear.js'
import { badPermits } from './semaphore-bad.suite.js'
import { Door, Gauge, turns, Watched } from './together.js'
import type { Stage } from './world.js'

const IDLE = { held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 }
const MOST = Number.MAX_SAFE_INTEGER

/** All that the semaphore promises. */
export function semaphoreSuite(stage: Stage): void {
  describe('Semaphore', () => {
    taking(stage)
    numbers(stage)
    usingPermits(stage)
    waitingForPermits(stage)
    ending(stage)
    badPermits(stage)
    otherData(stage)
    observingPermits(stage)
    stage.slowTests()
  })
}

/** A semaphore on a Holdfast of its own. */
async function semaphoreOf(stage: Stage, name: string, options?: SemaphoreOptions): Promise<Semaphore> {
  return (await stage.world.holdfast()).semaphore(name, options)
}

const numberAt = async (stage: Stage, name: string) => (await stage.world.read(name))?.value

function taking(stage: Stage): void {
  test('takes permits, all or none, and gives them back', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 3 })
    const grant = await semaphore.acquire(2)
    expect(grant).toMatchObject({ semaphore: name, permits: 2, released: false })
    expect(await numberAt(stage, name)).toBe('1')
    expect(await semaphore.tryAcquire(2)).toBeNull()
    expect(await numberAt(stage, name)).toBe('1')
    expect(await grant.release()).toBe('released')
    expect(grant.released).toBe(true)
    expect(await numberAt(stage, name)).toBe('3')
  })

  test('gives back once, however often it is asked', async () => {
    const semaphore = await semaphoreOf(stage, stage.name(), { permits: 3 })
    const grant = await semaphore.acquire(2)
    const ends = await Promise.all([grant.release(), grant.release()])
    await grant[Symbol.asyncDispose]()
    expect(ends).toEqual(['released', 'released'])
    expect(await semaphore.available()).toBe(3)
  })

  test('is one for all who name it, whoever began it', async () => {
    const name = stage.name()
    const [one, other] = [await semaphoreOf(stage, name, { permits: 2 }), await semaphoreOf(stage, name)]
    await expect(other.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_NOT_INITIALISED', lock: name })
    await one.acquire()
    expect(await other.tryAcquire()).not.toBeNull()
    expect(await one.tryAcquire()).toBeNull()
    // Whoever comes later with another number has no say.
    expect(await (await semaphoreOf(stage, name, { permits: 50 })).tryAcquire()).toBeNull()
  })

  test('a number that nobody has set is an error at once, not a wait', async () => {
    const semaphore = await semaphoreOf(stage, stage.name())
    for (const call of [
      semaphore.acquire(),
      semaphore.tryAcquire(),
      semaphore.tryAcquire(1, { waitTime: 60_000 }),
      semaphore.using(() => 0),
      semaphore.tryUsing(() => 0),
    ])
      await expect(call).rejects.toMatchObject({ name: 'NotInitialisedError' })
  })

  test('takes one permit where only options are given', async () => {
    const semaphore = await semaphoreOf(stage, stage.name(), { permits: 1 })
    const grant = await semaphore.acquire({ waitTime: 1_000 })
    expect(grant.permits).toBe(1)
    expect(await semaphore.tryAcquire({})).toBeNull()
    expect(await stage.world.settled(semaphore.tryAcquire({ waitTime: 20 }))).toBeNull()
    const error: unknown = await stage.world
      .settled(semaphore.acquire({ waitTime: 20 }))
      .catch((reason: unknown) => reason)
    expect(String(error)).toMatch(/no permit; 0 are free.*20 ms/)
    await grant.release()
    expect(await semaphore.acquire(undefined, {})).toMatchObject({ permits: 1 })
  })

  test('begun by many at once it has its number once', async () => {
    const name = stage.name()
    const all = await Promise.all(
      Array.from({ length: 5 }, async () => semaphoreOf(stage, name, { permits: 5 })),
    )
    const grants = await Promise.all(
      all.flatMap((semaphore) => [1, 2, 3, 4].map(() => semaphore.tryAcquire())),
    )
    expect(grants.filter((grant) => grant !== null)).toHaveLength(5)
    expect(await numberAt(stage, name)).toBe('0')
  })

  test('what is not there any more takes nothing back', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 3 })
    const grants = [await semaphore.acquire(), await semaphore.acquire()] as const
    await stage.world.remove(name)
    const heard = hear('holdfast:release', name)
    expect(await grants[0].release()).toBe('gone')
    expect(heard.map(({ outcome }) => outcome)).toEqual(['gone'])
    expect(await stage.world.read(name)).toBeUndefined()
    await stage.world.storeData(name, 'list')
    expect(await grants[1].release()).toBe('gone')
    expect((await stage.world.read(name))?.value).toEqual(['theirs'])
  })
}

function numbers(stage: Stage): void {
  test('trySet sets once, with a TTL if one is given', async () => {
    const [name, brief] = [stage.name(), stage.name()]
    const semaphore = await semaphoreOf(stage, name)
    expect(await semaphore.available()).toBe(0)
    expect(await semaphore.trySet(4)).toBe(true)
    expect(await semaphore.trySet(9)).toBe(false)
    expect(await stage.world.read(name)).toEqual({ value: '4', ttlMs: -1 })
    expect(await (await semaphoreOf(stage, brief)).trySet(2, { ttl: 50_000 })).toBe(true)
    const ttlMs = (await stage.world.read(brief))?.ttlMs
    expect(ttlMs).toSatisfy((ms: number) => ms > 0 && ms <= 50_000)
  })

  test('add changes the number, below zero too; the TTL stays, also when it is drained', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name)
    await semaphore.trySet(3, { ttl: 50_000 })
    await semaphore.add(-5)
    expect(await semaphore.available()).toBe(-2)
    expect(await semaphore.drain()).toBe(0)
    expect(await semaphore.available()).toBe(-2)
    await semaphore.add(6)
    expect(await semaphore.drain()).toBe(4)
    const { value, ttlMs } = (await stage.world.read(name)) ?? {}
    expect(value).toBe('0')
    expect(ttlMs).toSatisfy((ms: number) => ms > 0 && ms <= 50_000)
  })

  test('bare releases, as Java has them', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name)
    expect(await semaphore.releaseIfExists(2)).toBe(false)
    expect(await stage.world.read(name)).toBeUndefined()
    await semaphore.release()
    await semaphore.release(2)
    expect(await semaphore.releaseIfExists()).toBe(true)
    expect(await numberAt(stage, name)).toBe('4')
  })

  test('with `permits` a missing number counts as that many, and a release does not make another', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 5 })
    expect(await semaphore.available()).toBe(5)
    await semaphore.release(2)
    expect(await stage.world.read(name)).toBeUndefined()
    expect(await semaphore.drain()).toBe(5)
    expect(await numberAt(stage, name)).toBe('0')
    await stage.world.remove(name)
    await semaphore.add(2)
    expect(await numberAt(stage, name)).toBe('7')
  })

  test('the number does not leave what can be counted exactly', async () => {
    const semaphore = await semaphoreOf(stage, stage.name())
    await semaphore.trySet(MOST)
    expect(await semaphore.available()).toBe(MOST)
    await expect(semaphore.add(1)).rejects.toThrow(RangeError)
    await expect(semaphore.release(2)).rejects.toThrow(RangeError)
    expect(await semaphore.drain()).toBe(MOST)
  })
}

function usingPermits(stage: Stage): void {
  test('using takes, runs, and gives back, also when the callback throws', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 3 })
    expect(await semaphore.using((grant) => grant.permits)).toBe(1)
    expect(await semaphore.using(2, async () => numberAt(stage, name))).toBe('1')
    expect(await semaphore.using(3, { waitTime: 5 }, () => numberAt(stage, name))).toBe('0')
    expect(await semaphore.using({ waitTime: 5 }, (grant) => grant.permits)).toBe(1)
    await expect(semaphore.using(() => Promise.reject(new Error('work')))).rejects.toThrow('work')
    expect(await numberAt(stage, name)).toBe('3')
  })

  test('tryUsing says whether it ran', async () => {
    const semaphore = await semaphoreOf(stage, stage.name(), { permits: 1 })
    expect(await semaphore.tryUsing(() => 'done')).toEqual({ acquired: true, value: 'done' })
    const nested = semaphore.using(() => semaphore.tryUsing(1, { waitTime: 20 }, () => 'never'))
    const inner = await stage.world.settled(nested)
    expect(inner).toEqual({ acquired: false })
  })

  test('never more at once than there are permits', async () => {
    const name = stage.name()
    const gauge = new Gauge()
    const [one, other] = [await semaphoreOf(stage, name, { permits: 4 }), await semaphoreOf(stage, name)]
    await one.available()
    const through = (semaphore: Semaphore) => semaphore.using(() => gauge.through(() => turns(2)))
    await one.acquire().then((grant) => grant.release())
    const work = Array.from({ length: 60 }, (_, i) => through(i % 2 === 0 ? one : other))
    await stage.world.settled(Promise.all(work))
    expect(gauge.total).toBe(60)
    expect(gauge.most).toBeLessThanOrEqual(4)
    expect(await numberAt(stage, name)).toBe('4')
  })
}

function waitingForPermits(stage: Stage): void {
  test('a waiter gets what another process gives back', async () => {
    const name = stage.name()
    const [one, other] = [await semaphoreOf(stage, name, { permits: 1 }), await semaphoreOf(stage, name)]
    const grant = await one.acquire()
    const waiter = new Watched(other.acquire())
    await stage.world.pass(50)
    expect(waiter.state).toBe('pending')
    await grant.release()
    expect(await stage.world.settled(waiter.promise)).toMatchObject({ permits: 1 })
  })

  test('a waiter for several is woken by one release, and by steps', async () => {
    const name = stage.name()
    const [one, other] = [await semaphoreOf(stage, name, { permits: 4 }), await semaphoreOf(stage, name)]
    const grants = [await one.acquire(2), await one.acquire(), await one.acquire()] as const
    const waiter = new Watched(other.acquire(2))
    await stage.world.pass(50)
    await grants[1].release()
    await stage.world.pass(20)
    expect(waiter.state).toBe('pending')
    await grants[2].release()
    const taken = await stage.world.settled(waiter.promise)
    const again = new Watched(other.acquire(4))
    await stage.world.pass(20)
    await taken.release()
    await grants[0].release()
    expect(await stage.world.settled(again.promise)).toMatchObject({ permits: 4 })
  })

  test('a smaller request goes past one that does not fit', async () => {
    const semaphore = await semaphoreOf(stage, stage.name(), { permits: 2 })
    const held = await semaphore.acquire()
    const large = new Watched(semaphore.acquire(2))
    await stage.world.pass(20)
    const small = await stage.world.settled(semaphore.acquire())
    expect(large.state).toBe('pending')
    await Promise.all([held.release(), small.release()])
    expect(await stage.world.settled(large.promise)).toMatchObject({ permits: 2 })
  })

  test('in the order of their coming', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 1 })
    const held = await semaphore.acquire()
    const order: number[] = []
    const waits = Array.from({ length: 10 }, (_, i) => semaphore.using(() => order.push(i)))
    await stage.world.pass(20)
    await held.release()
    await stage.world.settled(Promise.all(waits))
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('permits that are added, or set, wake waiters', async () => {
    const name = stage.name()
    const [one, other] = [await semaphoreOf(stage, name), await semaphoreOf(stage, name)]
    await one.trySet(0)
    const waiter = other.acquire(3)
    await stage.world.pass(50)
    await one.add(3)
    await (await stage.world.settled(waiter)).release()
    const bare = other.acquire(4)
    await stage.world.pass(20)
    await one.release()
    expect(await stage.world.settled(bare)).toMatchObject({ permits: 4 })
  })

  test('waitTime ends the waiting, with what was seen', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 2 })
    await semaphore.acquire()
    const call = semaphore.acquire(2, { waitTime: 150 })
    const error: unknown = await stage.world.settled(call).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'HOLDFAST_WAIT_TIMEOUT', lock: name })
    expect(String(error)).toMatch(/2 permits; 1 is free.*150 ms/)
    expect(await stage.world.settled(semaphore.tryAcquire(2, { waitTime: 50 }))).toBeNull()
  })

  test('a number that is removed under waiters ends the waiting', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name)
    await semaphore.trySet(0)
    const waits = [1, 2].map((n) => new Watched(semaphore.acquire(n, { pollInterval: 30 })))
    await stage.world.pass(20)
    await stage.world.remove(name)
    for (const { promise } of waits)
      await expect(stage.world.settled(promise)).rejects.toMatchObject({ code: 'HOLDFAST_NOT_INITIALISED' })
  })

  stage.slow('a message that is lost costs no more than the next look', async () => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast({ subscriber: 'off' })
    const one = await semaphoreOf(stage, name, { permits: 1 })
    const grant = await one.acquire()
    const waiter = holdfast.semaphore(name).acquire()
    await stage.world.pass(1_000)
    await grant.release()
    expect(await stage.world.settled(waiter)).toMatchObject({ permits: 1 })
  })
}

function ending(stage: Stage): void {
  test('an abort ends the waiting with its reason, before any I/O if it was there before', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 1 })
    const held = await semaphore.acquire()
    const controller = new AbortController()
    const reason = new Error('not any more')
    const waiter = new Watched(semaphore.acquire(1, { signal: controller.signal }))
    await stage.world.pass(30)
    controller.abort(reason)
    await expect(waiter.promise).rejects.toBe(reason)
    const before = await stage.world.operations()
    for (const call of [
      semaphore.acquire(1, { signal: controller.signal }),
      semaphore.tryAcquire(1, { signal: controller.signal }),
      semaphore.using(1, { signal: controller.signal }, () => 0),
    ])
      await expect(call).rejects.toBe(reason)
    expect(await stage.world.operations()).toBe(before)
    await held.release()
    expect(await semaphore.available()).toBe(1)
  })

  test('an abort in the tick of the grant gives the permits back', async () => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 1 })
    const controller = new AbortController()
    const call = semaphore.acquire(1, { signal: controller.signal })
    controller.abort(new Error('at once'))
    await expect(stage.world.settled(call)).rejects.toThrow('at once')
    await stage.world.until(
      async () => [undefined, '1'].includes((await numberAt(stage, name)) as never),
      'free',
    )
    expect(await stage.world.settled(semaphore.acquire())).toMatchObject({ permits: 1 })
  })

  test('closing ends waiters and lets work finish', async () => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast()
    const semaphore = holdfast.semaphore(name, { permits: 1 })
    const door = new Door()
    const work = new Watched(semaphore.using(() => door.opened))
    await stage.world.until(() => holdfast.stats().held === 1, 'the work runs')
    const waiter = new Watched(semaphore.acquire())
    const closed = new Watched(holdfast.close())
    await expect(stage.world.settled(waiter.promise)).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    await turns()
    expect(closed.state).toBe('pending')
    door.open()
    await stage.world.settled(Promise.all([work.promise, closed.promise]))
    expect(await numberAt(stage, name)).toBe('1')
    for (const call of [() => semaphore.acquire(), () => semaphore.release(), () => semaphore.available()])
      await expect(call()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  })

  test('leaves nothing behind in the process', async () => {
    const holdfast = await stage.world.holdfast()
    const semaphore = holdfast.semaphore(stage.name(), { permits: 2 })
    await stage.world.settled(Promise.all(Array.from({ length: 30 }, () => semaphore.using(() => turns(1)))))
    expect(holdfast.stats()).toEqual(IDLE)
  })
}

function otherData(stage: Stage): void {
  test.each(['list', 'hash'] as const)('a %s under the name is named and left alone', async (type) => {
    const name = stage.name()
    const semaphore = await semaphoreOf(stage, name, { permits: 1 })
    await stage.world.storeData(name, type)
    const before = await stage.world.read(name)
    for (const call of [
      () => semaphore.acquire(),
      () => semaphore.tryAcquire(1, { waitTime: 1_000 }),
      () => semaphore.release(),
      () => semaphore.releaseIfExists(),
      () => semaphore.add(-1),
      () => semaphore.drain(),
      () => semaphore.trySet(1),
      () => semaphore.available(),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'HOLDFAST_WRONG_TYPE', key: name, lock: name })
    expect(await stage.world.read(name)).toEqual(before)
  })
}

function observingPermits(stage: Stage): void {
  test('tells what it does', async () => {
    const name = stage.name()
    const heard = {
      start: hear('holdfast:acquire:start', name),
      wait: hear('holdfast:acquire:wait', name),
      granted: hear('holdfast:acquire:granted', name),
      timeout: hear('holdfast:acquire:timeout', name),
      aborted: hear('holdfast:acquire:aborted', name),
      failed: hear('holdfast:acquire:failed', name),
      wakeup: hear('holdfast:wakeup', name),
      release: hear('holdfast:release', name),
    }
    const [semaphore, other] = [
      await semaphoreOf(stage, name, { permits: 2 }),
      await semaphoreOf(stage, name),
    ]
    await expect(other.acquire()).rejects.toThrow()
    const grant = await semaphore.acquire(2)
    const waiter = other.acquire(2)
    await stage.world.pass(50)
    await grant.release()
    await stage.world.settled(waiter)
    await stage.world.settled(other.tryAcquire(1, { waitTime: 20 }))
    const controller = new AbortController()
    const aborted = new Watched(other.acquire(1, { signal: controller.signal }))
    controller.abort(new Error('no'))
    await expect(stage.world.settled(aborted.promise)).rejects.toThrow('no')
    expect(heard.release).toMatchObject([{ owner: heard.granted[0]?.owner, outcome: 'released' }])
    expect(heard.release[0]?.held).toBeGreaterThanOrEqual(0)
    expect(heard.start).toHaveLength(5)
    expect(heard.wait.length).toBeGreaterThanOrEqual(2)
    expect(heard.granted.map(({ holdCount }) => holdCount)).toEqual([2, 2])
    expect(heard.timeout).toHaveLength(1)
    expect(heard.aborted).toMatchObject([{ reason: { message: 'no' } }])
    expect(heard.failed).toMatchObject([{ error: { code: 'HOLDFAST_NOT_INITIALISED' } }])
    expect(heard.wakeup.map(({ cause }) => cause)).toContain('message')
  })
}
