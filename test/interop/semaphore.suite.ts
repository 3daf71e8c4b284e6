/** The plain semaphore, between Java and Node. */
import { describe, expect } from 'vitest'
import type { Semaphore } from '../../src/index.js'
import { PeerSemaphore } from '../peer/semaphore.js'
import { expectPeace } from './support/contest.js'
import { JavaSemaphore, reference } from './support/java-objects.js'
import { watch } from './support/pending.js'
import { AGES_MS, type Scene, type Stage } from './support/stage.js'

interface Sides {
  readonly java: JavaSemaphore
  readonly node: Semaphore
  readonly channel: string
}

/** Declares the tests of the semaphore. */
export function semaphoreSuite(stage: Stage): void {
  describe('Semaphore and getSemaphore', () => {
    counting(stage)
    wakeUps(stage)
    stage.test(
      'of Java threads and Node callers never more than there are permits are inside',
      async (scene) => {
        const { java, node } = await sides(scene, 2)
        await expectPeace(scene, {
          java: [{ reference: java.reference, kind: 2 }],
          node: [{ enter: () => node.acquire(), kind: 2 }],
        })
        expect(await java.availablePermits()).toBe(2)
      },
    )
  })
}

async function sides(scene: Scene, permits: number): Promise<Sides> {
  const node = (await scene.holdfast()).semaphore(scene.name)
  if (permits > 0) expect(await node.trySet(permits)).toBe(true)
  const java = javaSemaphore(scene)
  return { java, node, channel: new PeerSemaphore(scene.link, scene.name).channel }
}

function javaSemaphore(scene: Scene, thread?: string): JavaSemaphore {
  return new JavaSemaphore(scene.thread(thread), reference('getSemaphore', scene.name))
}

function counting(stage: Stage): void {
  stage.test('one count for both', async (scene) => {
    const { java, node } = await sides(scene, 0)
    expect(await java.trySetPermits(3)).toBe(true)
    expect(await node.trySet(5)).toBe(false)
    const grant = await node.acquire(2)
    expect(await java.availablePermits()).toBe(1)
    expect(await java.tryAcquire(2)).toBe(false)
    expect(await java.tryAcquire()).toBe(true)
    expect(await node.tryAcquire()).toBeNull()
    await grant.release()
    expect(await java.availablePermits()).toBe(2)
    await node.release()
    expect(await java.drainPermits()).toBe(3)
    expect(await node.available()).toBe(0)
    await java.addPermits(4)
    expect(await node.drain()).toBe(4)
    await node.add(-2)
    expect(await java.availablePermits()).toBe(-2)
  })

  stage.test('Java sets it anew after it was deleted', async (scene) => {
    const { java, node } = await sides(scene, 2)
    expect(await java.delete()).toBe(true)
    await expect(node.tryAcquire()).rejects.toMatchObject({ code: 'HOLDFAST_NOT_INITIALISED' })
    expect(await node.releaseIfExists()).toBe(false)
    expect(await java.trySetPermits(1)).toBe(true)
    expect(await node.tryAcquire()).not.toBeNull()
  })
}

function wakeUps(stage: Stage): void {
  stage.test("Node waits and hears Java's release", async (scene) => {
    const { java, node, channel } = await sides(scene, 1)
    await java.acquire()
    const waiting = watch(node.acquire(1, { pollInterval: AGES_MS }))
    await scene.untilHeardBy(1, channel)
    expect(waiting.settled).toBe(false)
    await java.release()
    expect(await (await waiting.promise).release()).toBe('released')
  })

  // A Java waiter sleeps until it is told: it never looks by itself.
  stage.test("Java waits and hears Node's release, or what Node adds", async (scene) => {
    const { java, node } = await sides(scene, 1)
    const grant = await node.acquire()
    const first = watch(java.acquire())
    await java.thread.untilAsleep()
    expect(first.settled).toBe(false)
    await grant.release()
    await first.promise
    const second = watch(java.acquire())
    await java.thread.untilAsleep()
    expect(second.settled).toBe(false)
    await node.add(1)
    await second.promise
  })

  stage.test('several waiters of Java, and several permits given back at once by Node', async (scene) => {
    const { node } = await sides(scene, 3)
    const grant = await node.acquire(3)
    const waiters = ['one', 'two', 'three'].map((title) => javaSemaphore(scene, title))
    const waiting = waiters.map((java) => watch(java.acquire()))
    for (const { thread } of waiters) await thread.untilAsleep()
    expect(waiting.map(({ settled }) => settled)).toEqual([false, false, false])
    await grant.release()
    await Promise.all(waiting.map(({ promise }) => promise))
  })

  stage.test('several waiters of Node, and several permits given back at once by Java', async (scene) => {
    const { java, node, channel } = await sides(scene, 3)
    await java.acquire(3)
    const waiting = [1, 2].map((permits) => watch(node.acquire(permits, { pollInterval: AGES_MS })))
    await scene.untilHeardBy(1, channel)
    await java.release(3)
    await Promise.all(waiting.map(({ promise }) => promise))
    expect(await java.availablePermits()).toBe(0)
  })

  stage.test('the number is set while both wait', async (scene) => {
    const { java } = await sides(scene, 0)
    const waiter = javaSemaphore(scene, 'waiter')
    const waiting = watch(waiter.acquire())
    await waiter.thread.untilAsleep()
    const node = (await scene.holdfast()).semaphore(scene.name)
    expect(await node.trySet(1)).toBe(true)
    await waiting.promise
    expect(await java.availablePermits()).toBe(0)
  })
}
