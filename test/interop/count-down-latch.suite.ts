/** The count-down latch, between Java and Node. */
import { describe, expect } from 'vitest'
import type { CountDownLatch } from '../../src/index.js'
import { PeerLatch } from '../peer/count-down-latch.js'
import { JavaLatch, reference } from './support/java-objects.js'
import { watch } from './support/pending.js'
import type { Scene, Stage } from './support/stage.js'

interface Sides {
  readonly java: JavaLatch
  readonly node: CountDownLatch
  readonly channel: string
}

/** Declares the tests of the latch. */
export function latchSuite(stage: Stage): void {
  describe('CountDownLatch and getCountDownLatch', () => {
    stage.test('one count for both, set once', async (scene) => {
      const { java, node } = await sides(scene)
      expect(await java.trySetCount(3)).toBe(true)
      expect(await node.trySetCount(5)).toBe(false)
      expect(await node.countDown()).toBe(2)
      await java.countDown()
      expect([await java.getCount(), await node.getCount()]).toEqual([1, 1])
      expect(await java.awaitFor(50)).toBe(false)
      expect(await node.tryWait({ waitTime: 50 })).toBe(false)
      expect(await node.countDown()).toBe(0)
      expect([await java.getCount(), await node.getCount()]).toEqual([0, 0])
      await java.await()
      await node.wait()
      expect(await node.trySetCount(1)).toBe(true)
      expect(await java.trySetCount(2)).toBe(false)
    })

    stage.test('Node counts down to zero: all who wait in Java and in Node go', async (scene) => {
      const { node, waiters } = await waiting(scene, 2)
      expect(await node.countDown()).toBe(1)
      expect(waiters.map(({ settled }) => settled)).toEqual([false, false, false, false])
      await node.countDown()
      await Promise.all(waiters.map(({ promise }) => promise))
    })

    stage.test('Java counts down to zero: all who wait in Java and in Node go', async (scene) => {
      const { java, waiters } = await waiting(scene, 1)
      await java.countDown()
      await Promise.all(waiters.map(({ promise }) => promise))
    })

    // Java's await looks at the count once, and then sleeps until a message, with no time limit.
    stage.test('Node deletes it: all who wait in Java and in Node go, by its message', async (scene) => {
      const { node, waiters } = await waiting(scene, 7)
      expect(await node.delete()).toBe(true)
      await Promise.all(waiters.map(({ promise }) => promise))
    })

    stage.test(
      'a latch that Node has deleted, or set to zero, is set anew by Java, and shut',
      async (scene) => {
        const { java, node } = await sides(scene)
        await node.trySetCount(2)
        expect(await node.delete()).toBe(true)
        expect(await java.trySetCount(1)).toBe(true)
        expect(await java.awaitFor(50)).toBe(false)
        await java.countDown()
        expect(await node.trySetCount(0)).toBe(true)
        await java.await()
        expect(await java.trySetCount(1)).toBe(true)
        expect(await java.awaitFor(50)).toBe(false)
        await node.countDown()
        await java.await()
      },
    )

    stage.test('a count of zero that Java has stored is open, and Node sets the next one', async (scene) => {
      const { java, node } = await sides(scene)
      expect(await java.trySetCount(0)).toBe(true)
      expect(await java.trySetCount(1)).toBe(false)
      await node.wait()
      expect(await node.trySetCount(1)).toBe(true)
      expect(await java.awaitFor(50)).toBe(false)
      await java.countDown()
      await node.wait()
    })

    stage.test('Java deletes it, which tells its own waiters nothing: those of Node go', async (scene) => {
      const { java, node, channel } = await sides(scene)
      await java.trySetCount(2)
      const inNode = node.wait()
      await scene.untilHeardBy(1, channel)
      expect(await java.delete()).toBe(true)
      await inNode
    })
  })
}

/** Two waiters on each side of a latch with a count. */
async function waiting(scene: Scene, count: number) {
  const { java, node, channel } = await sides(scene)
  expect(await node.trySetCount(count)).toBe(true)
  const other = (await scene.holdfast()).countDownLatch(scene.name)
  const latches = ['one', 'two'].map((title) => javaLatch(scene, title))
  const waits = [...latches.map((latch) => latch.await()), node.wait(), other.wait()]
  const waiters = waits.map((wait) => watch(wait))
  for (const { thread } of latches) await thread.untilAsleep()
  await scene.untilHeardBy(3, channel)
  return { java, node, channel, waiters }
}

async function sides(scene: Scene): Promise<Sides> {
  return {
    java: javaLatch(scene),
    node: (await scene.holdfast()).countDownLatch(scene.name),
    channel: new PeerLatch(scene.link, scene.name).channel,
  }
}

function javaLatch(scene: Scene, thread?: string): JavaLatch {
  return new JavaLatch(scene.thread(thread), reference('getCountDownLatch', scene.name))
}
