/** The spin lock, between Java and Node: nobody is told of anything, and everybody finds out. */
import { describe, expect } from 'vitest'
import { both, exclusiveSuite, type LockKind } from './exclusive.suite.js'
import { reference } from './support/java-objects.js'
import { watch } from './support/pending.js'
import { AGES_MS, type Stage } from './support/stage.js'

const SPIN: LockKind = {
  title: 'SpinLock and getSpinLock',
  since: '3.15.0',
  reference: (name) => reference('getSpinLock', name),
  node: (holdfast, name) => holdfast.spinLock(name),
  channel: undefined,
  reentrant: true,
}

/** Declares the tests of the spin lock. */
export function spinSuite(stage: Stage): void {
  exclusiveSuite(stage, SPIN)
  describe('SpinLock and getSpinLock, the waiting', () => {
    stage.test('to and fro, ages before the leases end, without a message', async (scene) => {
      const { java, node } = await both(scene, SPIN)
      const heard = await scene.hear(`redisson_lock__channel:{${scene.name}}`)
      await java.lock(AGES_MS)
      const inNode = watch(node.acquire({ leaseTime: AGES_MS }))
      expect(inNode.settled).toBe(false)
      await java.unlock()
      const lease = await inNode.promise
      const inJava = watch(java.lock(AGES_MS))
      await lease.release()
      await inJava.promise
      await java.unlock()
      expect(await heard.take()).toEqual([])
    })
  })
}
