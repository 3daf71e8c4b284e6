/** The fair lock, between Java and Node: one queue for both. */
import { describe, expect } from 'vitest'
import type { ExclusiveLock } from '../../src/index.js'
import { PeerFairLock } from '../peer/fair-lock.js'
import { eventually } from '../support/eventually.js'
import { both, exclusiveSuite, javaLock, type LockKind } from './exclusive.suite.js'
import { JavaLock, reference } from './support/java-objects.js'
import { watch } from './support/pending.js'
import { AGES_MS, type Scene, type Stage } from './support/stage.js'

const FAIR: LockKind = {
  title: 'FairLock and getFairLock',
  since: '3.0.0',
  reference: (name) => reference('getFairLock', name),
  node: (holdfast, name) => holdfast.fairLock(name),
  channel: (name) => `redisson_lock__channel:{${name}}:`,
  seesExpirySince: '3.32.0',
  reentrant: true,
}

const NON_REENTRANT: LockKind = {
  ...FAIR,
  title: 'FairLock without re-entry and getNonReentrantFairLock',
  since: '4.4.0',
  reference: (name) => reference('getNonReentrantFairLock', name),
  node: (holdfast, name) => holdfast.fairLock(name, { reentrant: false }),
  reentrant: false,
}

/** Declares the tests of the fair lock. */
export function fairSuite(stage: Stage): void {
  exclusiveSuite(stage, FAIR)
  exclusiveSuite(stage, NON_REENTRANT)
  describe('FairLock and getFairLock, the queue', () => {
    stage.test('Java and Node enter in the order in which they came', async (scene) => {
      const { java, node } = await both(scene, FAIR)
      const order: string[] = []
      await java.lock(AGES_MS)
      const waiters = []
      for (const [i, who] of ['java', 'node', 'java', 'node', 'node', 'java'].entries()) {
        const title = `${who} ${i}`
        waiters.push(who === 'java' ? javaTurn(scene, title, order) : nodeTurn(node, title, order))
        await queued(scene, i + 1)
      }
      await java.unlock()
      await Promise.all(waiters)
      expect(order).toEqual(['java 0', 'node 1', 'java 2', 'node 3', 'node 4', 'java 5'])
      expect(await queueOf(scene).queue()).toEqual([])
    })

    stage.test('a Node waiter gives up at the head: Java behind it is told, and enters', async (scene) => {
      const { java, node } = await both(scene, FAIR)
      await java.lock(AGES_MS)
      const abort = new AbortController()
      const first = watch(node.acquire({ signal: abort.signal }))
      await queued(scene, 1)
      const second = watch(javaLock(scene, FAIR, 'second').lock(AGES_MS))
      await queued(scene, 2)
      abort.abort(new Error('enough'))
      await expect(first.promise).rejects.toThrow('enough')
      await queued(scene, 1)
      await java.unlock()
      await second.promise
      expect(await queueOf(scene).queue()).toEqual([])
    })

    stage.test("a Java waiter's time is over at the head: Node behind it enters", async (scene) => {
      const { java, node } = await both(scene, FAIR)
      await java.lock(AGES_MS)
      const first = watch(javaLock(scene, FAIR, 'first').tryLock(700, AGES_MS))
      await queued(scene, 1)
      const second = watch(node.acquire({ leaseTime: AGES_MS }))
      await queued(scene, 2)
      expect(await first.promise).toBe(false)
      await queued(scene, 1)
      await java.unlock()
      expect((await second.promise).held).toBe(true)
    })

    stage.test(
      'a Java waiter that is killed at the head: its place lasts as long as its wait',
      async (scene) => {
        const { java, node } = await both(scene, FAIR)
        const other = await scene.otherJava()
        await java.lock(3_000)
        const doomed = watch(
          new JavaLock(other.thread('doomed'), FAIR.reference(scene.name)).tryLock(1_500, AGES_MS),
        )
        doomed.promise.catch(() => undefined)
        await queued(scene, 1)
        await other.kill()
        const lease = await node.acquire({ leaseTime: AGES_MS })
        expect(lease.held).toBe(true)
        expect(await queueOf(scene).queue()).toEqual([])
      },
    )

    stage.test('nobody overtakes a queue by trying once', async (scene) => {
      const { java, node } = await both(scene, FAIR)
      await java.lock(AGES_MS)
      const waiting = watch(node.acquire({ leaseTime: AGES_MS }))
      await queued(scene, 1)
      expect(await javaLock(scene, FAIR, 'hasty').tryLock()).toBe(false)
      expect(await queueOf(scene).queue()).toHaveLength(1)
      await java.unlock()
      await waiting.promise
    })
  })
}

function queueOf({ link, name }: Scene): PeerFairLock {
  return new PeerFairLock(link, name, { owner: 'nobody:1' })
}

async function queued(scene: Scene, count: number): Promise<void> {
  await eventually(async () => (await queueOf(scene).queue()).length === count, `${count} stand in the queue`)
}

async function javaTurn(scene: Scene, title: string, order: string[]): Promise<void> {
  const lock = javaLock(scene, FAIR, title)
  await lock.lock(AGES_MS)
  order.push(title)
  await lock.unlock()
}

async function nodeTurn(lock: ExclusiveLock, title: string, order: string[]): Promise<void> {
  await lock.using({ leaseTime: AGES_MS }, () => order.push(title))
}
