/** The fenced lock, between Java and Node: one row of tokens for both. */
import { describe, expect } from 'vitest'
import { exclusiveSuite, type LockKind } from './exclusive.suite.js'
import { expectPeace, tokensOf } from './support/contest.js'
import { JavaLock, reference } from './support/java-objects.js'
import type { Scene, Stage } from './support/stage.js'

const FENCED: LockKind = {
  title: 'FencedLock and getFencedLock',
  since: '3.19.0',
  reference: (name) => reference('getFencedLock', name),
  node: (holdfast, name) => holdfast.fencedLock(name),
  channel: (name) => `redisson_lock__channel:{${name}}`,
  reentrant: true,
}

/** Declares the tests of the fenced lock. */
export function fencedSuite(stage: Stage): void {
  exclusiveSuite(stage, FENCED)
  if (!stage.since(FENCED.since)) return
  describe('FencedLock and getFencedLock, the tokens', () => {
    stage.test('they grow with every grant, whoever gets it', async (scene) => {
      const { java, node } = await fenced(scene)
      expect(await java.lockAndGetToken()).toBe(1)
      expect(await node.tryAcquire()).toBeNull()
      await java.unlock()
      const lease = await node.acquire({ leaseTime: 60_000 })
      expect(lease.token).toBe(2)
      expect(await java.getToken()).toBe(2)
      await lease.release()
      expect(await java.tryLockAndGetToken(0, 60_000)).toBe(3)
      expect(await node.token()).toBe(3)
    })

    stage.test('they survive expiry, force from either side and a plain lock() of Java', async (scene) => {
      const { java, node } = await fenced(scene)
      await node.acquire({ leaseTime: 60_000 })
      await java.forceUnlock()
      expect(await java.lockAndGetToken()).toBe(2)
      await node.forceRelease()
      // Another thread: Java goes on to renew what it does not know to be lost.
      await new JavaLock(scene.thread('other'), FENCED.reference(scene.name)).lock(300)
      const lease = await node.acquire({ leaseTime: 60_000 })
      expect(lease.token).toBe(4)
    })

    stage.test('in the order of entry they are in ascending order', async (scene) => {
      const { node } = await fenced(scene)
      await expectPeace(scene, {
        java: [{ reference: FENCED.reference(scene.name), kind: 'fenced' }],
        node: [{ enter: () => node.acquire(), kind: 'fenced' }],
      })
      const tokens = await tokensOf(scene)
      expect(tokens.length).toBeGreaterThan(0)
      expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other))
    })
  })
}

async function fenced(scene: Scene) {
  const holdfast = await scene.holdfast()
  return {
    java: new JavaLock(scene.thread(), FENCED.reference(scene.name)),
    node: holdfast.fencedLock(scene.name),
  }
}
