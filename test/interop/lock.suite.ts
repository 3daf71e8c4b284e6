/** The re-entrant and the non-re-entrant lock, between Java and Node. */
import { describe, expect } from 'vitest'
import { exclusiveSuite, both, javaLock, type LockKind } from './exclusive.suite.js'
import { JavaLock, reference } from './support/java-objects.js'
import { JavaError } from './support/java-peer.js'
import { watch } from './support/pending.js'
import { AGES_MS, WATCHDOG_MS, type Stage } from './support/stage.js'

const LOCK: LockKind = {
  title: 'Lock and getLock',
  since: '3.0.0',
  reference: (name) => reference('getLock', name),
  node: (holdfast, name) => holdfast.lock(name),
  channel: (name) => `redisson_lock__channel:{${name}}`,
  reentrant: true,
}

const NON_REENTRANT: LockKind = {
  ...LOCK,
  title: 'Lock without re-entry and getNonReentrantLock',
  since: '4.4.0',
  reference: (name) => reference('getNonReentrantLock', name),
  node: (holdfast, name) => holdfast.lock(name, { reentrant: false }),
  reentrant: false,
}

const channel = (name: string) => `redisson_lock__channel:{${name}}`

/** Declares the tests of the lock. */
export function lockSuite(stage: Stage): void {
  exclusiveSuite(stage, LOCK)
  exclusiveSuite(stage, NON_REENTRANT)
  describe('Lock and getLock, more of it', () => {
    messages(stage)
    endings(stage)
    names(stage)
    if (stage.since('4.4.0')) withoutReentry(stage)
  })
}

function messages(stage: Stage): void {
  stage.test(
    'each release is told once, by 0, on the channel that Java uses; a partial one is not',
    async (scene) => {
      const { java, node } = await both(scene, LOCK)
      const heard = await scene.hear(channel(scene.name))
      await java.lock(60_000)
      await java.lock(60_000)
      await java.unlock()
      expect(await heard.take()).toEqual([])
      await java.unlock()
      expect(await heard.take()).toEqual([{ channel: channel(scene.name), payload: '0' }])
      await node.using(() => node.using(async () => undefined))
      expect(await heard.take()).toEqual([{ channel: channel(scene.name), payload: '0' }])
    },
  )

  stage.test('a forced release wakes waiters on the other side', async (scene) => {
    const { java, node } = await both(scene, LOCK)
    const first = await node.acquire({ leaseTime: AGES_MS })
    const waiter = javaLock(scene, LOCK, 'waiter')
    const inJava = watch(waiter.lock(AGES_MS))
    await waiter.thread.untilAsleep()
    expect(await node.forceRelease()).toBe(true)
    await inJava.promise
    const inNode = watch(node.acquire({ pollInterval: AGES_MS }))
    await scene.untilHeardBy(1, channel(scene.name))
    expect(await java.forceUnlock()).toBe(true)
    await (await inNode.promise).release()
    expect(await first.release()).toBe('stolen')
  })

  stage.test('one release, several waiters on both sides: all get their turn', async (scene) => {
    const { node } = await both(scene, LOCK)
    const lease = await node.acquire({ leaseTime: AGES_MS })
    const java = [1, 2, 3].map(async (i) => {
      const lock = javaLock(scene, LOCK, `waiter-${i}`)
      await lock.lock(AGES_MS)
      await lock.unlock()
    })
    const callers = [1, 2, 3].map(() =>
      node.using({ leaseTime: AGES_MS, pollInterval: AGES_MS }, async () => undefined),
    )
    await scene.untilHeardBy(2, channel(scene.name))
    await lease.release()
    await Promise.all([...java, ...callers])
    expect(await node.isLocked()).toBe(false)
  })
}

function endings(stage: Stage): void {
  stage.test('Java is killed: what its watchdog kept is free after the time-out', async (scene) => {
    const { node } = await both(scene, LOCK)
    const other = await scene.otherJava()
    await new JavaLock(other.thread('doomed'), LOCK.reference(scene.name)).lock()
    expect(await node.tryAcquire()).toBeNull()
    await other.kill()
    expect(await scene.ttl()).toBeLessThanOrEqual(WATCHDOG_MS)
    await (await node.acquire({ waitTime: AGES_MS })).release()
  })

  stage.test('a Java waiter is interrupted: it leaves, and Node goes on', async (scene) => {
    const { java, node } = await both(scene, LOCK)
    const lease = await node.acquire()
    const waiting = watch(java.lockInterruptibly())
    await java.thread.untilAsleep()
    await java.thread.interrupt()
    await expect(waiting.promise).rejects.toMatchObject({ className: 'InterruptedException' })
    expect(await lease.release()).toBe('released')
    expect(await java.isLocked()).toBe(false)
  })

  stage.test('a Node waiter is aborted: it leaves, and Java goes on', async (scene) => {
    const { java, node } = await both(scene, LOCK)
    await java.lock(AGES_MS)
    const abort = new AbortController()
    const waiting = watch(node.acquire({ signal: abort.signal }))
    await scene.untilHeardBy(1, channel(scene.name))
    abort.abort(new Error('enough'))
    await expect(waiting.promise).rejects.toThrow('enough')
    await java.unlock()
    expect(await java.tryLock()).toBe(true)
  })

  stage.test(
    'a lease of Node that is longer than its Java predecessor keeps its whole TTL',
    async (scene) => {
      const { java, node } = await both(scene, LOCK)
      await java.lock(1_000)
      const lease = await node.acquire({ leaseTime: AGES_MS })
      expect(await java.remainTimeToLive()).toBeGreaterThan(AGES_MS / 2)
      await lease.extend(2 * AGES_MS)
      expect(await java.remainTimeToLive()).toBeGreaterThan(AGES_MS)
    },
  )
}

const NAMES = ['{a}b', 'a{b}c{d}', 'with:colons:in', 'with spaces', 'näme ☃', 'a.*[b]?', 'my{lock', 'my}lock']

function names(stage: Stage): void {
  for (const odd of NAMES) {
    stage.test(`the name ${JSON.stringify(odd)}: one lock, one channel`, async (scene) => {
      const name = `${odd}${scene.name}`
      const java = new JavaLock(scene.thread(), reference('getLock', name))
      const node = (await scene.holdfast()).lock(name)
      const lease = await node.acquire({ leaseTime: AGES_MS })
      expect(await java.tryLock()).toBe(false)
      const inJava = watch(java.lock(AGES_MS))
      await java.thread.untilAsleep()
      await lease.release()
      await inJava.promise
      const inNode = watch(node.acquire({ pollInterval: AGES_MS }))
      await scene.untilHeardBy(1, name.includes('{') ? `redisson_lock__channel:${name}` : channel(name))
      await java.unlock()
      await inNode.promise
    })
  }
}

function withoutReentry(stage: Stage): void {
  stage.test('nobody enters twice without re-entry: each side says so in its own words', async (scene) => {
    const { java, node } = await both(scene, NON_REENTRANT)
    await java.lock(60_000)
    await expect(java.tryLock()).rejects.toBeInstanceOf(JavaError)
    await expect(java.lock()).rejects.toMatchObject({ className: 'IllegalMonitorStateException' })
    await java.unlock()
    const nested = node.using(() => node.acquire())
    await expect(nested).rejects.toMatchObject({ code: 'HOLDFAST_SELF_HELD' })
    expect(await java.tryLock()).toBe(true)
  })

  stage.test('with and without re-entry exclude each other, and wake each other', async (scene) => {
    const { java } = await both(scene, NON_REENTRANT)
    const node = (await scene.holdfast()).lock(scene.name)
    await java.lock(AGES_MS)
    const waiting = watch(node.acquire({ pollInterval: AGES_MS }))
    await scene.untilHeardBy(1, channel(scene.name))
    await java.unlock()
    const lease = await waiting.promise
    expect(await java.tryLock()).toBe(false)
    await lease.release()
  })
}
