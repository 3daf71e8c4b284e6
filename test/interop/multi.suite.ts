/** Several locks as one, between Java and Node: each member is an ordinary lock to everybody else. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { Holdfast, MultiLock } from '../../src/index.js'
import { expectPeace } from './support/contest.js'
import { JavaLock, multiReference, reference } from './support/java-objects.js'
import { watch } from './support/pending.js'
import { AGES_MS, WATCHDOG_MS, type Scene, type Stage } from './support/stage.js'

interface Sides {
  readonly java: JavaLock
  readonly node: MultiLock
  readonly names: readonly [string, string]
  readonly holdfast: Holdfast
}

/** Declares the tests of the multi-lock. */
export function multiSuite(stage: Stage): void {
  describe('MultiLock and getMultiLock', () => {
    stage.test('Java holds both: Node gets neither, nor the two as one', async (scene) => {
      const { java, node, names, holdfast } = await sides(scene)
      await java.lock()
      expect(await node.tryAcquire()).toBeNull()
      for (const name of names) expect(await holdfast.lock(name).tryAcquire()).toBeNull()
      await java.unlock()
      expect(await node.tryAcquire()).not.toBeNull()
    })

    stage.test('Node holds both: Java gets neither, nor the two as one', async (scene) => {
      const { java, node, names } = await sides(scene)
      const lease = await node.acquire({ leaseTime: AGES_MS })
      expect(await java.tryLock()).toBe(false)
      for (const name of names) expect(await single(scene, name).tryLock()).toBe(false)
      expect(await lease.release()).toBe('released')
      expect(await java.tryLock()).toBe(true)
    })

    stage.test('one of them is taken: all or nothing on both sides', async (scene) => {
      const { java, node, names, holdfast } = await sides(scene)
      const [first, second] = names
      await single(scene, second, 'other').lock(AGES_MS)
      expect(await node.tryAcquire()).toBeNull()
      expect(await scene.ttl(first)).toBe(-2)
      await single(scene, second, 'other').unlock()
      const lease = await holdfast.lock(second).acquire({ leaseTime: AGES_MS })
      expect(await java.tryLock()).toBe(false)
      expect(await scene.ttl(first)).toBe(-2)
      await lease.release()
      expect(await java.tryLock()).toBe(true)
    })

    stage.test('each waits for the other', async (scene) => {
      const { java, node } = await sides(scene)
      await java.tryLock(0, AGES_MS)
      const inNode = watch(node.acquire({ leaseTime: AGES_MS }))
      await sleep(100)
      expect(inNode.settled).toBe(false)
      await java.unlock()
      const lease = await inNode.promise
      const inJava = watch(java.tryLock(AGES_MS / 2, AGES_MS))
      await sleep(100)
      expect(inJava.settled).toBe(false)
      await lease.release()
      expect(await inJava.promise).toBe(true)
    })

    stage.test('kept by the watchdogs, and lost as one when Java takes a member by force', async (scene) => {
      const { java, node, names } = await sides(scene)
      const lease = await node.acquire()
      await sleep(1.3 * WATCHDOG_MS)
      expect([lease.held, await java.tryLock()]).toEqual([true, false])
      const lost = new Promise((resolve) => {
        lease.signal.addEventListener('abort', resolve, { once: true })
      })
      await single(scene, names[1]).forceUnlock()
      await lost
      expect(lease.held).toBe(false)
      expect(await lease.release()).toBe('stolen')
      expect(await java.tryLock()).toBe(true)
    })

    stage.test(
      'Java and Node with the two in the opposite order, and single ones between: always progress',
      async (scene) => {
        const { java, holdfast, names } = await sides(scene)
        const [first, second] = names
        const opposite = holdfast.multiLock([holdfast.lock(second), holdfast.lock(first)])
        await expectPeace(scene, {
          java: [{ reference: java.reference, kind: 'alone' }],
          node: [
            { enter: () => opposite.acquire({ leaseTime: AGES_MS }), kind: 'alone' },
            { enter: () => holdfast.lock(first).acquire({ leaseTime: AGES_MS }), kind: 'alone' },
          ],
        })
      },
    )
  })
}

async function sides(scene: Scene): Promise<Sides> {
  const names = [scene.name, `${scene.name}:2`] as const
  const holdfast = await scene.holdfast()
  return {
    names,
    holdfast,
    java: new JavaLock(scene.thread(), multiReference(names.map((name) => reference('getLock', name)))),
    node: holdfast.multiLock(names.map((name) => holdfast.lock(name))),
  }
}

function single(scene: Scene, name: string, thread = 'single'): JavaLock {
  return new JavaLock(scene.thread(thread), reference('getLock', name))
}
