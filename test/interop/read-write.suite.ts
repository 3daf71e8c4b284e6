/** The read-write lock, between Java and Node. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { ReadWriteLock } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { exclusiveSuite, type LockKind } from './exclusive.suite.js'
import { expectPeace } from './support/contest.js'
import { JavaLock, reference } from './support/java-objects.js'
import { watch } from './support/pending.js'
import { AGES_MS, EFFORT, WATCHDOG_MS, type Scene, type Stage } from './support/stage.js'

const WRITE: LockKind = {
  title: 'ReadWriteLock.write and writeLock',
  since: '3.0.0',
  reference: (name) => reference('getReadWriteLock', name, 'writeLock'),
  node: (holdfast, name) => holdfast.readWriteLock(name).write,
  channel: (name) => `redisson_rwlock:{${name}}`,
  reentrant: true,
}

interface Sides {
  readonly node: ReadWriteLock
  readonly read: JavaLock
  readonly write: JavaLock
}

/** Declares the tests of the read-write lock. */
export function readWriteSuite(stage: Stage): void {
  exclusiveSuite(stage, WRITE)
  describe('ReadWriteLock and getReadWriteLock, both sides of it', () => {
    together(stage)
    wakeUps(stage)
    handOvers(stage)
    downgrades(stage)
    renewals(stage)
    stage.test('readers and writers of Java and Node: no writer meets anybody', async (scene) => {
      const { node } = await sides(scene)
      const [readLock, writeLock] = (['readLock', 'writeLock'] as const).map((part) =>
        reference('getReadWriteLock', scene.name, part),
      )
      await expectPeace(scene, {
        java: [
          { reference: readLock ?? '', kind: 'shared' },
          { reference: writeLock ?? '', kind: 'alone' },
        ],
        node: [
          { enter: () => node.read.acquire(), kind: 'shared' },
          { enter: () => node.write.acquire(), kind: 'alone' },
        ],
      })
    })
  })
}

async function sides(scene: Scene, thread?: string): Promise<Sides> {
  return { node: (await scene.holdfast()).readWriteLock(scene.name), ...javaSides(scene, thread) }
}

function javaSides(scene: Scene, thread?: string): { readonly read: JavaLock; readonly write: JavaLock } {
  const one = scene.thread(thread)
  return {
    read: new JavaLock(one, reference('getReadWriteLock', scene.name, 'readLock')),
    write: new JavaLock(one, reference('getReadWriteLock', scene.name, 'writeLock')),
  }
}

const channelOf = ({ name }: Scene) => `redisson_rwlock:{${name}}`

function together(stage: Stage): void {
  stage.test(
    'Java and Node read at once; no writer of either gets in before the last one is gone',
    async (scene) => {
      const { node, read } = await sides(scene)
      const { write } = javaSides(scene, 'writer')
      await read.lock(60_000)
      const lease = await node.read.acquire({ leaseTime: 60_000 })
      expect(await node.write.tryAcquire()).toBeNull()
      expect(await write.tryLock()).toBe(false)
      expect([await read.isLocked(), await node.read.isLocked()]).toEqual([true, true])
      await read.unlock()
      expect(await write.tryLock()).toBe(false)
      expect(lease.held).toBe(true)
      expect(await lease.release()).toBe('released')
      expect(await write.tryLock()).toBe(true)
      expect(await node.read.tryAcquire()).toBeNull()
    },
  )

  stage.test("Node's reader leaves first: Java's holds on, with its own time", async (scene) => {
    const { node, read } = await sides(scene)
    await read.lock(60_000)
    const lease = await node.read.acquire({ leaseTime: AGES_MS })
    expect(await scene.ttl()).toBeGreaterThan(AGES_MS / 2)
    await lease.release()
    expect(await scene.ttl()).toSatisfy((ms: number) => ms > 0 && ms <= 60_000)
    expect(await read.isHeldByCurrentThread()).toBe(true)
    expect(await node.write.tryAcquire()).toBeNull()
    await read.unlock()
    expect(await node.write.tryAcquire()).not.toBeNull()
  })

  stage.test("Java's reader leaves first: Node's holds on, with its own time", async (scene) => {
    const { node, read } = await sides(scene)
    const lease = await node.read.acquire({ leaseTime: 60_000 })
    await read.lock(AGES_MS)
    await read.unlock()
    expect(await scene.ttl()).toSatisfy((ms: number) => ms > 0 && ms <= 60_000)
    expect(await node.read.isHeldBy(lease.owner)).toBe(true)
    expect(await lease.release()).toBe('released')
    expect(await scene.ttl()).toBe(-2)
  })

  stage.test('readers inside twice on either side', async (scene) => {
    const { node, read } = await sides(scene)
    const { write } = javaSides(scene, 'writer')
    await read.lock(60_000)
    await read.lock(60_000)
    await node.read.using(() =>
      node.read.using(async () => {
        await read.unlock()
        await read.unlock()
        expect(await write.tryLock()).toBe(false)
      }),
    )
    expect(await write.tryLock()).toBe(true)
  })
}

function wakeUps(stage: Stage): void {
  stage.test("Node's writer hears when Java's last reader leaves", async (scene) => {
    const { node, read } = await sides(scene)
    await read.lock(AGES_MS)
    const waiting = watch(node.write.acquire({ pollInterval: AGES_MS }))
    await scene.untilHeardBy(1, channelOf(scene))
    expect(waiting.settled).toBe(false)
    await read.unlock()
    expect(await (await waiting.promise).release()).toBe('released')
  })

  stage.test("Java's writer hears when Node's last reader leaves", async (scene) => {
    const { node, write } = await sides(scene)
    const leases = [
      await node.read.acquire({ leaseTime: AGES_MS }),
      await node.read.acquire({ leaseTime: AGES_MS }),
    ]
    const waiting = watch(write.lock(AGES_MS))
    await write.thread.untilAsleep()
    await leases[0]?.release()
    await sleep(50)
    expect(waiting.settled).toBe(false)
    await leases[1]?.release()
    await waiting.promise
  })

  stage.test("all readers of Node hear Java's writer leave", async (scene) => {
    const { node, write } = await sides(scene)
    await write.lock(AGES_MS)
    const waiting = [1, 2, 3].map(() =>
      watch(node.read.acquire({ leaseTime: AGES_MS, pollInterval: AGES_MS })),
    )
    await scene.untilHeardBy(1, channelOf(scene))
    await write.unlock()
    const leases = await Promise.all(waiting.map(({ promise }) => promise))
    expect(leases.map(({ held }) => held)).toEqual([true, true, true])
  })

  stage.test("all readers of Java hear Node's writer leave", async (scene) => {
    const { node } = await sides(scene)
    const lease = await node.write.acquire({ leaseTime: AGES_MS })
    const readers = [1, 2, 3].map((i) => javaSides(scene, `reader-${i}`).read)
    const waiting = readers.map((read) => watch(read.lock(AGES_MS)))
    for (const { thread } of readers) await thread.untilAsleep()
    expect(waiting.map(({ settled }) => settled)).toEqual([false, false, false])
    await lease.release()
    await Promise.all(waiting.map(({ promise }) => promise))
  })
}

function handOvers(stage: Stage): void {
  for (const side of ['readLock', 'writeLock'] as const) {
    stage.test(`${side}: whenever Node's write ends, Java's waiter hears it`, async (scene) => {
      const { node } = await sides(scene)
      const java = new JavaLock(scene.thread(), reference('getReadWriteLock', scene.name, side))
      for (let i = 0; i < 300 * EFFORT; i++) {
        const lease = await node.write.acquire({ leaseTime: AGES_MS })
        const waiting = watch(java.lock(AGES_MS).then(() => java.unlock()))
        // Java is just about to sleep, or not quite yet.
        await busyFor(Math.random() * 3)
        await lease.release()
        await Promise.race([
          waiting.promise,
          eventually(() => waiting.settled, `Java hears of the end of write ${i}`),
        ])
      }
    })
  }
}

/** Shorter than a timer can be. */
async function busyFor(ms: number): Promise<void> {
  const endMs = performance.now() + ms
  while (performance.now() < endMs) await nextTurn()
}

function downgrades(stage: Stage): void {
  stage.test(
    "Node goes from writing to reading: Java's readers hear it and join, its writers do not",
    async (scene) => {
      const { node, read } = await sides(scene)
      const { write } = javaSides(scene, 'writer')
      const writing = await node.write.acquire({ leaseTime: AGES_MS })
      const reading = await writing.run(() => node.read.acquire({ leaseTime: AGES_MS }))
      const joining = watch(read.lock(AGES_MS))
      await scene.untilHeardBy(1, channelOf(scene))
      await sleep(50)
      expect(joining.settled).toBe(false)
      expect(await writing.release()).toBe('released')
      await joining.promise
      expect(await write.tryLock()).toBe(false)
      expect(await reading.release()).toBe('released')
      await read.unlock()
      expect(await write.tryLock()).toBe(true)
    },
  )

  stage.test("Java goes from writing to reading: Node's readers join, its writers do not", async (scene) => {
    const { node, read, write } = await sides(scene)
    await write.lock(AGES_MS)
    await read.lock(AGES_MS)
    // Java tells nobody.
    const joining = watch(node.read.acquire({ leaseTime: AGES_MS, pollInterval: 100 }))
    await scene.untilHeardBy(1, channelOf(scene))
    expect(joining.settled).toBe(false)
    await write.unlock()
    const lease = await joining.promise
    expect(await node.write.tryAcquire()).toBeNull()
    await read.unlock()
    expect(lease.held).toBe(true)
    expect(await lease.release()).toBe('released')
    expect(await scene.ttl()).toBe(-2)
  })
}

function renewals(stage: Stage): void {
  stage.test("Java's watchdog cuts the time of all readers; Node's lease outlives it", async (scene) => {
    const node = (await scene.holdfast()).readWriteLock(scene.name)
    const java = await scene.otherJava()
    const lease = await node.read.acquire({ leaseTime: 60_000 })
    await new JavaLock(java.thread('reader'), reference('getReadWriteLock', scene.name, 'readLock')).lock()
    await eventually(async () => (await scene.ttl()) <= WATCHDOG_MS, "Java's renewal has cut the TTL")
    await java.kill()
    await sleep(1.5 * WATCHDOG_MS)
    expect(await javaSides(scene).write.tryLock()).toBe(false)
    expect(lease.held).toBe(true)
    expect(await node.read.isHeldBy(lease.owner)).toBe(true)
    expect(await lease.release()).toBe('released')
    expect(await javaSides(scene).write.tryLock()).toBe(true)
  })

  stage.test('readers of both under their watchdogs', async (scene) => {
    const { node, read } = await sides(scene)
    await read.lock()
    const lease = await node.read.acquire()
    await sleep(1.6 * WATCHDOG_MS)
    expect(await read.isHeldByCurrentThread()).toBe(true)
    expect(await node.write.tryAcquire()).toBeNull()
    expect([lease.held, await lease.release()]).toEqual([true, 'released'])
    await read.unlock()
  })

  stage.test("Node's force on the readers takes Java's hold, and Java's takes Node's", async (scene) => {
    const { node, read } = await sides(scene)
    await read.lock()
    expect(await node.read.forceRelease()).toBe(true)
    expect(await read.isHeldByCurrentThread()).toBe(false)
    const lease = await node.read.acquire()
    expect(await read.forceUnlock()).toBe(true)
    await eventually(() => lease.signal.aborted, 'the loss is seen')
    expect(await lease.release()).toBe('stolen')
  })
}
