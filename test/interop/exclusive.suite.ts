/** What holds between Java and Node for every lock with one holder at a time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { CountingLock, ExclusiveLock, Holdfast, Lease } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { expectPeace } from './support/contest.js'
import { JavaLock } from './support/java-objects.js'
import { JavaError } from './support/java-peer.js'
import { watch } from './support/pending.js'
import { AGES_MS, WATCHDOG_MS, type Scene, type Stage } from './support/stage.js'

/** One kind of lock on both sides. */
export interface LockKind {
  readonly title: string
  /** The first Redisson that has it. */
  readonly since: string
  /** Of Redisson's object. */
  readonly reference: (name: string) => string
  readonly node: (holdfast: Holdfast, name: string) => ExclusiveLock
  /** Where its releases are told, or what the channels of fair waiters begin with; undefined: nowhere. */
  readonly channel: ((name: string) => string) | undefined
  /**
   * Older waiters of Redisson may miss that a lease ran out, and sleep until they are told of a release; that of an
   * expired lease tells them too.
   */
  readonly seesExpirySince?: string
  readonly reentrant: boolean
}

/** Declares the tests of one kind of lock. */
export function exclusiveSuite(stage: Stage, kind: LockKind): void {
  describe(kind.title, () => {
    if (!stage.since(kind.since)) {
      lacking(stage, kind)
      return
    }
    refusals(stage, kind)
    if (kind.channel !== undefined) wakeUps(stage, kind, kind.channel)
    force(stage, kind)
    expiry(stage, kind)
    watchdogs(stage, kind)
    stage.test('Java threads and Node callers never meet inside', async (scene) => {
      const { node } = await both(scene, kind)
      await expectPeace(scene, {
        java: [{ reference: kind.reference(scene.name), kind: 'alone' }],
        node: [{ enter: () => node.acquire(), kind: 'alone' }],
      })
    })
  })
}

/** Both sides of the lock of a test. */
export async function both(
  scene: Scene,
  kind: LockKind,
): Promise<{ readonly java: JavaLock; readonly node: ExclusiveLock }> {
  const holdfast = await scene.holdfast()
  return { java: javaLock(scene, kind), node: kind.node(holdfast, scene.name) }
}

/** The lock of a test in a Java thread. */
export function javaLock(scene: Scene, kind: LockKind, thread?: string): JavaLock {
  return new JavaLock(scene.thread(thread), kind.reference(scene.name))
}

function lacking(stage: Stage, kind: LockKind): void {
  stage.test(`is not in Redisson before ${kind.since}`, async (scene) => {
    await expect(javaLock(scene, kind).isLocked()).rejects.toThrow(/lacks/)
  })
}

function refusals(stage: Stage, kind: LockKind): void {
  stage.test('Java holds it: Node is refused and sees by whom', async (scene) => {
    const { java, node } = await both(scene, kind)
    await java.lock(60_000)
    expect(await node.tryAcquire()).toBeNull()
    expect(await node.isLocked()).toBe(true)
    const owner = await java.thread.owner()
    expect(await node.isHeldBy(owner)).toBe(true)
    expect(await node.remainingTime()).toSatisfy((ms: number) => ms > 0 && ms <= 60_000)
    await java.unlock()
    expect(await node.isLocked()).toBe(false)
    expect(await (await node.acquire()).release()).toBe('released')
  })

  stage.test('Node holds it: Java is refused, at once and after its wait', async (scene) => {
    const { java, node } = await both(scene, kind)
    const lease = await node.acquire({ leaseTime: 60_000 })
    expect(await java.tryLock()).toBe(false)
    expect(await java.tryLock(50, 1_000)).toBe(false)
    expect(await java.isLocked()).toBe(true)
    expect(await java.isHeldByCurrentThread()).toBe(false)
    expect(await java.holdCount()).toBe(0)
    expect(await java.remainTimeToLive()).toSatisfy((ms: number) => ms > 0 && ms <= 60_000)
    expect(await lease.release()).toBe('released')
    expect(await java.isLocked()).toBe(false)
    expect(await java.tryLock()).toBe(true)
  })

  stage.test("Java cannot unlock Node's, and the refusal disturbs nothing", async (scene) => {
    const { java, node } = await both(scene, kind)
    const lease = await node.acquire({ leaseTime: 60_000 })
    await expect(java.unlock()).rejects.toBeInstanceOf(JavaError)
    expect(await node.isHeldBy(lease.owner)).toBe(true)
    expect(await lease.release()).toBe('released')
  })

  if (kind.reentrant) reentry(stage, kind)
}

function reentry(stage: Stage, kind: LockKind): void {
  stage.test('Java inside twice: free for Node after the second unlock only', async (scene) => {
    const { java, node } = await both(scene, kind)
    await java.lock(60_000)
    await java.lock(60_000)
    const owner = await java.thread.owner()
    expect(await (node as CountingLock).holdCount(owner)).toBe(2)
    await java.unlock()
    expect(await node.tryAcquire()).toBeNull()
    await java.unlock()
    expect(await node.tryAcquire()).not.toBeNull()
  })

  stage.test('Node inside twice: free for Java after the outer release only', async (scene) => {
    const { java, node } = await both(scene, kind)
    await node.using(async () => {
      await node.using(async () => {
        expect(await java.tryLock()).toBe(false)
      })
      expect(await java.tryLock()).toBe(false)
    })
    expect(await java.tryLock()).toBe(true)
  })
}

function wakeUps(stage: Stage, kind: LockKind, channel: NonNullable<LockKind['channel']>): void {
  stage.test("Node waits and hears Java's release, ages before the lease ends", async (scene) => {
    const { java, node } = await both(scene, kind)
    await java.lock(AGES_MS)
    const waiting = watch(node.acquire({ pollInterval: AGES_MS }))
    await waitsOn(scene, channel(scene.name))
    expect(waiting.settled).toBe(false)
    await java.unlock()
    expect(await (await waiting.promise).release()).toBe('released')
  })

  stage.test("Java waits and hears Node's release, ages before the lease ends", async (scene) => {
    const { java, node } = await both(scene, kind)
    const lease = await node.acquire({ leaseTime: AGES_MS })
    const waiting = watch(java.lock())
    await java.thread.untilAsleep()
    expect(waiting.settled).toBe(false)
    await lease.release()
    await waiting.promise
    expect(await java.isHeldByCurrentThread()).toBe(true)
    await java.unlock()
  })

  stage.test('Java waits with a limit, and has it before the limit', async (scene) => {
    const { java, node } = await both(scene, kind)
    const lease = await node.acquire({ leaseTime: AGES_MS })
    const waiting = watch(java.tryLock(AGES_MS, AGES_MS))
    await java.thread.untilAsleep()
    await lease.release()
    expect(await waiting.promise).toBe(true)
    expect(await java.remainTimeToLive()).toBeGreaterThan(AGES_MS / 2)
  })

  stage.test('the lock goes to and fro', async (scene) => {
    const { java, node } = await both(scene, kind)
    for (let i = 0; i < 5; i++) {
      await java.lock(AGES_MS)
      const inNode = watch(node.acquire({ leaseTime: AGES_MS, pollInterval: AGES_MS }))
      await waitsOn(scene, channel(scene.name))
      await java.unlock()
      const lease = await inNode.promise
      const inJava = watch(java.lock(AGES_MS))
      await java.thread.untilAsleep()
      expect(inJava.settled).toBe(false)
      await lease.release()
      await inJava.promise
      await java.unlock()
    }
  })
}

/** Until somebody listens where the release will be told. */
async function waitsOn({ link }: Scene, channel: string): Promise<void> {
  await eventually(async () => {
    const reply = await link.command('PUBSUB', 'CHANNELS', `${channel}*`)
    return Array.isArray(reply) && reply.length > 0
  }, 'the waiter listens')
}

function force(stage: Stage, kind: LockKind): void {
  stage.test("Java's force takes it from Node, who is told and releases nothing", async (scene) => {
    const { java, node } = await both(scene, kind)
    const lease = await node.acquire()
    expect(await java.forceUnlock()).toBe(true)
    await java.lock(60_000)
    await eventually(() => lease.signal.aborted, 'the loss is seen at the next renewal')
    expect(lease.signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
    expect(lease.held).toBe(false)
    expect(await lease.release()).toBe('stolen')
    expect(await java.isHeldByCurrentThread()).toBe(true)
  })

  stage.test("Node's force takes it from Java, whose unlock fails", async (scene) => {
    const { java, node } = await both(scene, kind)
    await java.lock()
    expect(await node.forceRelease()).toBe(true)
    expect(await java.isHeldByCurrentThread()).toBe(false)
    const lease = await node.acquire({ leaseTime: 60_000 })
    await expect(java.unlock()).rejects.toMatchObject({ className: 'IllegalMonitorStateException' })
    expect(await node.isHeldBy(lease.owner)).toBe(true)
  })

  stage.test('nothing to take by force: both say so', async (scene) => {
    const { java, node } = await both(scene, kind)
    expect(await java.forceUnlock()).toBe(false)
    expect(await node.forceRelease()).toBe(false)
  })
}

function expiry(stage: Stage, kind: LockKind): void {
  const deaf = kind.seesExpirySince !== undefined && !stage.since(kind.seesExpirySince)
  stage.test("Java's lease runs out under a waiting Node", async (scene) => {
    const { java, node } = await both(scene, kind)
    await java.lock(600)
    const lease = await node.acquire({ waitTime: AGES_MS, leaseTime: 60_000 })
    await expect(java.unlock()).rejects.toBeInstanceOf(JavaError)
    expect(await lease.release()).toBe('released')
  })

  stage.test("Node's lease runs out under a waiting Java", async (scene) => {
    const { java, node } = await both(scene, kind)
    const lease = await node.acquire({ leaseTime: 600 })
    const { signal } = lease
    const waiting = java.lock(60_000)
    if (deaf) {
      await eventually(() => !lease.held, 'the lease is over')
      expect(await lease.release()).toBe('expired')
    }
    await waiting
    expect(lease.held).toBe(false)
    expect(await lease.release()).toBe('expired')
    await eventually(() => signal.aborted, 'the loss is told')
    expect(await java.isHeldByCurrentThread()).toBe(true)
  })
}

function watchdogs(stage: Stage, kind: LockKind): void {
  stage.test("Java's watchdog keeps what Java has, ours what Node has, each its own only", async (scene) => {
    const { java, node } = await both(scene, kind)
    await java.lock()
    const other = `${scene.name}:other`
    const lease = await kind.node(await scene.holdfast(), other).acquire()
    const lowest = await lowestTtls(scene, [scene.name, other], 1.6 * WATCHDOG_MS)
    expect(Math.min(...lowest)).toBeGreaterThan(0)
    expect(await node.tryAcquire()).toBeNull()
    expect(await java.isHeldByCurrentThread()).toBe(true)
    expect([lease.held, await lease.release()]).toEqual([true, 'released'])
    await java.unlock()
  })

  stage.test(
    "what Java's watchdog kept and Node took over is not renewed by Java any more",
    async (scene) => {
      const { java, node } = await both(scene, kind)
      await java.lock()
      await java.unlock()
      const lease = await node.acquire({ leaseTime: 60_000 })
      await sleep(0.8 * WATCHDOG_MS)
      // A renewal would cut it down to the time-out of the watchdog.
      expect(await scene.ttl()).toBeGreaterThan(60_000 - 3 * WATCHDOG_MS)
      await lease.release()
    },
  )

  stage.test('what our watchdog kept and Java took over is not renewed by Node any more', async (scene) => {
    const { java, node } = await both(scene, kind)
    const lease: Lease = await node.acquire()
    await lease.release()
    await java.lock(1_500)
    await eventually(async () => !(await java.isLocked()), "Java's lease runs out")
    expect(await node.isLocked()).toBe(false)
  })
}

/** The lowest TTL of each key while so much time passes; 0 or less once it was gone. */
async function lowestTtls(scene: Scene, keys: readonly string[], ms: number): Promise<readonly number[]> {
  const lowest = keys.map(() => Infinity)
  const until = performance.now() + ms
  while (performance.now() < until) {
    const seen = await Promise.all(keys.map((key) => scene.ttl(key)))
    seen.forEach((ttl, i) => (lowest[i] = Math.min(lowest[i] ?? 0, ttl)))
    await sleep(50)
  }
  return lowest
}
