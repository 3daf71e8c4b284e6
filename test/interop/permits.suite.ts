/** The semaphore whose permits have ids and leases, between Java and Node. */
import { describe, expect } from 'vitest'
import type { PermitSemaphore } from '../../src/index.js'
import { PeerPermits } from '../peer/permit-semaphore.js'
import { eventually } from '../support/eventually.js'
import { expectPeace } from './support/contest.js'
import { JavaPermits, reference } from './support/java-objects.js'
import { watch } from './support/pending.js'
import { AGES_MS, WATCHDOG_MS, type Scene, type Stage } from './support/stage.js'

interface Sides {
  readonly java: JavaPermits
  readonly node: PermitSemaphore
  /** Raw. */
  readonly view: PeerPermits
}

/** Declares the tests of the permit semaphore. */
export function permitsSuite(stage: Stage): void {
  describe('PermitSemaphore and getPermitExpirableSemaphore', () => {
    crossing(stage)
    wakeUps(stage)
    leases(stage)
    // Older ones cannot give back or count as many as are asked about here.
    if (stage.since('3.19.1')) totals(stage)
    stage.test(
      'of Java threads and Node callers never more than there are permits are inside',
      async (scene) => {
        const { java, node } = await sides(scene, 2)
        const enter = async () => {
          const lease = await node.acquire()
          return { release: () => lease.release() }
        }
        await expectPeace(scene, {
          java: [{ reference: java.reference, kind: 2 }],
          node: [{ enter, kind: 2 }],
        })
        expect(await java.availablePermits()).toBe(2)
      },
    )
  })
}

async function sides(scene: Scene, permits: number, thread?: string): Promise<Sides> {
  const node = (await scene.holdfast()).permitSemaphore(scene.name)
  if (permits > 0) expect(await node.trySet(permits)).toBe(true)
  const java = new JavaPermits(scene.thread(thread), reference('getPermitExpirableSemaphore', scene.name))
  return { java, node, view: new PeerPermits(scene.link, scene.name) }
}

function crossing(stage: Stage): void {
  stage.test(
    'what one side takes the other lacks; each releases by id what the other took',
    async (scene) => {
      const { java, node, view } = await sides(scene, 2)
      const id = await java.acquire()
      expect(id).toMatch(/^[0-9a-f]{32}$/)
      const lease = await node.acquire({ leaseTime: AGES_MS })
      expect(new Set(await view.ids())).toEqual(new Set([id, ...lease.ids]))
      expect(await java.tryAcquire(0)).toBeNull()
      expect(await node.tryAcquire()).toBeNull()
      await node.release(id)
      expect(await java.tryRelease(id)).toBe(false)
      expect(await java.tryRelease(lease.ids[0] ?? '')).toBe(true)
      expect(await java.availablePermits()).toBe(2)
      await expect(node.release(lease.ids[0] ?? '')).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
    },
  )

  stage.test('the number is set once, by whoever comes first', async (scene) => {
    const { java, node } = await sides(scene, 0)
    expect(await java.trySetPermits(3)).toBe(true)
    expect(await node.trySet(5)).toBe(false)
    expect(await node.available()).toBe(3)
    expect(await java.trySetPermits(4)).toBe(false)
  })

  if (!stage.since('3.41.0')) return
  stage.test('several at once: all or none', async (scene) => {
    const { java, node } = await sides(scene, 3)
    const lease = await node.acquire(2, { leaseTime: AGES_MS })
    const unknown = '00'.repeat(16)
    expect(await java.tryReleaseAll([...lease.ids, unknown])).toBe(0)
    expect(await java.availablePermits()).toBe(1)
    expect(await java.tryReleaseAll(lease.ids)).toBe(2)
    const [one, two] = [await java.acquire(), await java.acquire()]
    await expect(node.releaseAll([one, two, unknown])).rejects.toMatchObject({ code: 'HOLDFAST_NOT_HELD' })
    expect(await java.availablePermits()).toBe(1)
    await node.releaseAll([one, two])
    expect(await java.availablePermits()).toBe(3)
  })
}

function wakeUps(stage: Stage): void {
  stage.test("Node waits and hears Java's release, ages before the lease ends", async (scene) => {
    const { java, node, view } = await sides(scene, 1)
    const id = await java.acquire(AGES_MS)
    const waiting = watch(node.acquire({ pollInterval: AGES_MS }))
    await scene.untilHeardBy(1, view.channel)
    expect(waiting.settled).toBe(false)
    await java.release(id)
    expect(await (await waiting.promise).release()).toBe('released')
  })

  stage.test("Java waits and hears Node's release, ages before the lease ends", async (scene) => {
    const { java, node } = await sides(scene, 1)
    const lease = await node.acquire({ leaseTime: AGES_MS })
    const waiting = watch(java.acquire())
    await java.thread.untilAsleep()
    expect(waiting.settled).toBe(false)
    await lease.release()
    await java.release(await waiting.promise)
  })

  stage.test('permits that are added wake both sides', async (scene) => {
    const { java, node, view } = await sides(scene, 1)
    await java.acquire()
    const inNode = watch(node.acquire({ pollInterval: AGES_MS }))
    await scene.untilHeardBy(1, view.channel)
    await java.addPermits(1)
    await inNode.promise
    const inJava = watch(java.acquire())
    await java.thread.untilAsleep()
    await node.add(1)
    await inJava.promise
    expect(await java.availablePermits()).toBe(0)
  })

  stage.test('one release of several permits lets several Java waiters in', async (scene) => {
    const { node } = await sides(scene, 2)
    const lease = await node.acquire(2, { leaseTime: AGES_MS })
    const waiting: Promise<string>[] = []
    for (const title of ['one', 'two']) {
      const thread = scene.thread(title)
      waiting.push(new JavaPermits(thread, reference('getPermitExpirableSemaphore', scene.name)).acquire())
      await thread.untilAsleep()
    }
    await lease.release()
    await Promise.all(waiting)
  })
}

function leases(stage: Stage): void {
  stage.test("Java's lease runs out under a waiting Node, Node's under a waiting Java", async (scene) => {
    const { java, node } = await sides(scene, 1)
    const id = await java.acquire(500)
    const lease = await node.acquire({ leaseTime: 500 })
    const { signal } = lease
    expect(await java.tryRelease(id)).toBe(false)
    const next = await java.acquire()
    expect(lease.held).toBe(false)
    expect(await lease.release()).toBe('expired')
    await eventually(() => signal.aborted, 'the loss is told')
    expect(await java.tryRelease(next)).toBe(true)
  })

  stage.test("each changes the lease of the other's permit", async (scene) => {
    const { java, node, view } = await sides(scene, 2)
    const id = await java.acquire(60_000)
    expect(await node.updateLeaseTime(id, AGES_MS)).toBe(true)
    expect(await view.leaseOf(id)).toBeGreaterThan(AGES_MS / 2)
    const lease = await node.acquire({ leaseTime: 60_000 })
    expect(await java.updateLeaseTime(lease.ids[0] ?? '', AGES_MS)).toBe(true)
    expect(await node.remainingTime(lease.ids[0] ?? '')).toBeGreaterThan(AGES_MS / 2)
  })

  stage.test('a permit that Java took without a lease never expires, also for Node', async (scene) => {
    const { java, node } = await sides(scene, 1)
    const id = await java.acquire()
    expect(await node.remainingTime(id)).toBe(Infinity)
    expect(await node.acquired()).toBe(1)
    await node.release(id)
  })

  stage.test('our watchdog keeps a permit while a Java program waits for it', async (scene) => {
    const { java, node } = await sides(scene, 1)
    const lease = await node.acquire()
    expect(await java.tryAcquire(1.6 * WATCHDOG_MS)).toBeNull()
    expect([lease.held, await lease.release()]).toEqual([true, 'released'])
  })

  stage.test('Java releases a permit of ours by its id: the lease is lost', async (scene) => {
    const { java, node } = await sides(scene, 1)
    const lease = await node.acquire()
    expect(await java.tryRelease(lease.ids[0] ?? '')).toBe(true)
    await eventually(() => lease.signal.aborted, 'the loss is seen at the next renewal')
    expect(await lease.release()).toBe('stolen')
    expect(await java.availablePermits()).toBe(1)
  })
}

function totals(stage: Stage): void {
  stage.test('both count alike, and change the total alike', async (scene) => {
    const { java, node } = await sides(scene, 3)
    await java.acquire()
    await node.acquire({ leaseTime: AGES_MS })
    const counts = async () => [
      [await java.availablePermits(), await java.acquiredPermits()],
      [await node.available(), await node.acquired()],
    ]
    expect(await counts()).toEqual([
      [1, 2],
      [1, 2],
    ])
    await java.setPermits(5)
    expect(await node.total()).toBe(5)
    await node.set(1)
    expect(await counts()).toEqual([
      [-1, 2],
      [-1, 2],
    ])
    expect(await node.tryAcquire()).toBeNull()
    expect(await java.tryAcquire(0)).toBeNull()
  })
}
