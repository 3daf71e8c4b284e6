/**
 * Redisson itself, and the stand-in that is written from docs/protocol.md: step by step the same keys, times and
 * messages. So the golden tests, which use the stand-in, stand on Redisson.
 */
import { describe, expect } from 'vitest'
import { PeerLatch } from '../peer/count-down-latch.js'
import { PeerFairLock } from '../peer/fair-lock.js'
import { PeerFencedLock, PeerLock, PeerNonReentrantLock, PeerSpinLock } from '../peer/lock.js'
import { PeerPermits } from '../peer/permit-semaphore.js'
import { PeerReadWriteLock } from '../peer/read-write-lock.js'
import { PeerSemaphore } from '../peer/semaphore.js'
import { dump, Recorder, type Step } from '../peer/snapshot.js'
import { NO_LEASE } from '../peer/wire.js'
import { eventually } from '../support/eventually.js'
import {
  JavaLatch,
  JavaLock,
  JavaPermits,
  JavaSemaphore,
  multiReference,
  reference,
} from './support/java-objects.js'
import { watch } from './support/pending.js'
import { AGES_MS, WATCHDOG_MS, type Scene, type Stage } from './support/stage.js'

const OWNER = 'e6f1c3a2-58d4-4c7b-9a83-6b0f0d2c7d11:91'
const LEASE = 60_000
/** Some TTLs are what is left of others, some scores are a clock's time plus a lease. */
const ROUGHLY_MS = 20_000

/** The same steps on both sides, in order. */
interface Trail {
  readonly java: readonly (() => Promise<unknown>)[]
  readonly peer: readonly (() => Promise<unknown>)[]
}

/** Declares the tests of all objects. */
export function wireSuite(stage: Stage): void {
  describe('Redisson and its stand-in', () => {
    locks(stage)
    readWrite(stage)
    synchronizers(stage)
    permits(stage)
    fair(stage)
    renewals(stage)
  })
}

function locks(stage: Stage): void {
  const kinds = [
    { factory: 'getLock', since: '3.0.0', Peer: PeerLock },
    { factory: 'getNonReentrantLock', since: '4.4.0', Peer: PeerNonReentrantLock },
    { factory: 'getSpinLock', since: '3.15.0', Peer: PeerSpinLock },
    { factory: 'getFencedLock', since: '3.19.0', Peer: PeerFencedLock },
  ].filter(({ since }) => stage.since(since))
  for (const { factory, Peer } of kinds) {
    const again = factory === 'getNonReentrantLock' ? 0 : 1
    stage.test(`${factory}: in, in again, out, out, by force`, async (scene) => {
      const java = new JavaLock(scene.thread(), reference(factory, nameFor(scene, 'java')))
      const peer = new Peer(scene.link, nameFor(scene, 'peer'), OWNER)
      const repeat = <T>(step: T): T[] => Array.from({ length: again }, () => step)
      await expectSameTrail(scene, {
        java: [
          () => java.lock(LEASE),
          ...repeat(() => java.lock(LEASE)),
          ...repeat(() => java.unlock()),
          () => java.unlock(),
          () => java.lock(LEASE),
          () => java.forceUnlock(),
        ],
        peer: [
          () => peer.tryAcquire(LEASE),
          ...repeat(() => peer.tryAcquire(LEASE)),
          ...repeat(() => peer.unlock('1', { leaseMs: LEASE })),
          () => peer.unlock('2'),
          () => peer.tryAcquire(LEASE),
          () => peer.forceUnlock(),
        ],
      })
    })
  }

  stage.test('getMultiLock: every member as if locked alone', async (scene) => {
    const [name, other] = [nameFor(scene, 'java'), `${nameFor(scene, 'java')}:2`]
    const members = [name, other].map((member) => reference('getLock', member))
    const java = new JavaLock(scene.thread(), multiReference(members))
    const peers = ['', ':2'].map((end) => new PeerLock(scene.link, nameFor(scene, 'peer') + end, OWNER))
    await expectSameTrail(scene, {
      java: [() => java.tryLock(0, LEASE), () => java.unlock()],
      peer: [
        () => Promise.all(peers.map((peer) => peer.tryAcquire(LEASE))),
        () => Promise.all(peers.map((peer, i) => peer.unlock(String(i)))),
      ],
    })
  })
}

function readWrite(stage: Stage): void {
  stage.test('getReadWriteLock: write, read inside, downgrade, out; by force', async (scene) => {
    const [name, thread] = [nameFor(scene, 'java'), scene.thread()]
    const read = new JavaLock(thread, reference('getReadWriteLock', name, 'readLock'))
    const write = new JavaLock(thread, reference('getReadWriteLock', name, 'writeLock'))
    const peer = new PeerReadWriteLock(scene.link, nameFor(scene, 'peer'), OWNER)
    await expectSameTrail(scene, {
      java: [
        () => write.lock(LEASE),
        () => read.lock(LEASE),
        () => write.unlock(),
        () => read.lock(2 * LEASE),
        () => read.unlock(),
        () => read.unlock(),
        () => write.lock(LEASE),
        () => read.forceUnlock(),
        () => write.forceUnlock(),
        () => read.lock(LEASE),
        () => read.forceUnlock(),
      ],
      peer: [
        () => peer.write(LEASE),
        () => peer.read(LEASE),
        () => peer.unlockWrite('1'),
        () => peer.read(2 * LEASE),
        () => peer.unlockRead('2'),
        () => peer.unlockRead('3'),
        () => peer.write(LEASE),
        () => peer.forceUnlock('read'),
        () => peer.forceUnlock('write'),
        () => peer.read(LEASE),
        () => peer.forceUnlock('read'),
      ],
    })
  })

  stage.test('getReadWriteLock: write leases add up', async (scene) => {
    const java = new JavaLock(scene.thread(), reference('getReadWriteLock', scene.name, 'writeLock'))
    await java.lock(LEASE)
    await java.lock(LEASE)
    expect(await scene.ttl()).toBeGreaterThan(1.5 * LEASE)
    await java.unlock()
    expect(await scene.ttl()).toBeLessThanOrEqual(LEASE)
  })
}

function synchronizers(stage: Stage): void {
  stage.test('getSemaphore: set, taken, given back, added, drained', async (scene) => {
    const java = new JavaSemaphore(scene.thread(), reference('getSemaphore', nameFor(scene, 'java')))
    const peer = new PeerSemaphore(scene.link, nameFor(scene, 'peer'))
    await expectSameTrail(scene, {
      java: [
        () => java.trySetPermits(3),
        () => java.tryAcquire(2),
        () => java.tryAcquire(2),
        () => java.release(2),
        () => java.addPermits(-1),
        () => java.addPermits(4),
        () => java.drainPermits(),
        () => java.release(),
        () => java.trySetPermits(3),
        () => java.delete(),
        () => java.release(),
      ],
      peer: [
        () => peer.trySet(3),
        () => peer.tryAcquire(2),
        () => peer.tryAcquire(2),
        () => peer.release(2),
        () => peer.add(-1),
        () => peer.add(4),
        () => peer.drain(),
        () => peer.release(),
        () => peer.trySet(3),
        () => peer.delete(),
        () => peer.release(),
      ],
    })
  })

  stage.test('getCountDownLatch: set, counted down, deleted', async (scene) => {
    const java = new JavaLatch(scene.thread(), reference('getCountDownLatch', nameFor(scene, 'java')))
    const peer = new PeerLatch(scene.link, nameFor(scene, 'peer'))
    await expectSameTrail(scene, {
      java: [
        () => java.countDown(),
        () => java.trySetCount(2),
        () => java.trySetCount(3),
        () => java.countDown(),
        () => java.countDown(),
        () => java.trySetCount(1),
        () => java.delete(),
        () => java.delete(),
      ],
      peer: [
        () => peer.countDown(),
        () => peer.trySetCount(2),
        () => peer.trySetCount(3),
        () => peer.countDown(),
        () => peer.countDown(),
        () => peer.trySetCount(1),
        () => peer.delete(),
        () => peer.delete(),
      ],
    })
  })
}

function permits(stage: Stage): void {
  stage.test(
    'getPermitExpirableSemaphore: set, taken, lengthened, given back, total changed',
    async (scene) => {
      const java = new JavaPermits(
        scene.thread(),
        reference('getPermitExpirableSemaphore', nameFor(scene, 'java')),
      )
      const peer = new PeerPermits(scene.link, nameFor(scene, 'peer'))
      // Changing the total came with 3.19.1, several ids at once with 3.23.4.
      const newer = <T>(step: T): T[] => (stage.since('3.23.4') ? [step] : [])
      const ids: { java: string[]; peer: string[] } = { java: [], peer: [] }
      const fromJava = async (leaseMs?: number) => void ids.java.push(await java.acquire(leaseMs))
      const fromPeer = async (leaseMs?: number) => {
        const { ids: taken } = await peer.tryAcquire(leaseMs === undefined ? {} : { leaseMs })
        ids.peer.push(...(taken ?? []))
      }
      await expectSameTrail(scene, {
        java: [
          () => java.trySetPermits(3),
          () => fromJava(),
          () => fromJava(LEASE),
          () => java.updateLeaseTime(ids.java[1] ?? '', 2 * LEASE),
          () => java.tryRelease(ids.java[0] ?? ''),
          () => java.tryRelease(ids.java[0] ?? ''),
          () => java.addPermits(-1),
          () => java.addPermits(2),
          ...newer(() => java.setPermits(5)),
          ...newer(() => java.tryReleaseAll(ids.java.slice(1))),
        ],
        peer: [
          () => peer.trySet(3),
          () => fromPeer(),
          () => fromPeer(LEASE),
          () => peer.updateLease(ids.peer[1] ?? '', 2 * LEASE),
          () => peer.tryRelease(ids.peer[0] ?? ''),
          () => peer.tryRelease(ids.peer[0] ?? ''),
          () => peer.add(-1),
          () => peer.add(2),
          ...newer(() => peer.set(5)),
          ...newer(() => peer.tryReleaseAll(ids.peer.slice(1))),
        ],
      })
    },
  )
}

function fair(stage: Stage): void {
  stage.test('getFairLock: two wait; the head is told, enters, and the other moves up', async (scene) => {
    const ref = reference('getFairLock', scene.name)
    const [holder, first, second] = ['holder', 'first', 'second'].map(
      (title) => new JavaLock(scene.thread(title), ref),
    ) as [JavaLock, JavaLock, JavaLock]
    const view = new PeerFairLock(scene.link, scene.name, { owner: OWNER })
    await holder.lock(AGES_MS)
    const before = Date.now()
    const inFirst = watch(first.lock(AGES_MS))
    await eventually(async () => (await view.queue()).length === 1, 'the first one queues')
    const inSecond = watch(second.lock(AGES_MS))
    await eventually(async () => (await view.queue()).length === 2, 'the second one queues')
    const owners = await view.queue()
    const [one, two] = await Promise.all(owners.map((owner) => view.deadlineOf(owner)))
    // now + wait + what is left of the lease; behind it: one more wait.
    const earliest = before + 300_000 + (await scene.ttl())
    expect(one).toSatisfy((ms: number) => ms >= earliest && ms <= earliest + AGES_MS)
    expect(Number(two) - Number(one)).toBe(300_000)
    await holder.unlock()
    await inFirst.promise
    expect(owners[0]).toBe(await first.thread.owner())
    expect(await view.queue()).toEqual(owners.slice(1))
    expect(await view.deadlineOf(owners[1] ?? '')).toBe(Number(two) - 300_000)
    await first.unlock()
    await inSecond.promise
    await second.unlock()
    const left = Object.keys(await dump(scene.link, scene.name))
    // Some versions leave these to their TTL.
    expect(left.filter((key) => !key.startsWith('redisson_unlock_latch'))).toEqual([])
  })
}

function renewals(stage: Stage): void {
  stage.test("a Java reader's renewal, and the holds of other owners", async (scene) => {
    const java = new JavaLock(scene.thread(), reference('getReadWriteLock', scene.name, 'readLock'))
    const other = new PeerReadWriteLock(scene.link, scene.name, OWNER)
    await other.read(AGES_MS)
    await java.lock()
    const owner = await java.thread.owner()
    const mine = other.holdKey(1, owner)
    const theirs = other.holdKey(1)
    let renewed = false
    let last = await scene.ttl(mine)
    await eventually(async () => {
      const ttl = await scene.ttl(mine)
      renewed ||= ttl > last
      last = ttl
      return renewed
    }, "Java's hold is renewed")
    // Older ones cut everybody's holds down to their own watchdog's time-out.
    if (stage.since('4.4.0')) expect(await scene.ttl(theirs)).toBeGreaterThan(AGES_MS / 2)
    else expect(await scene.ttl(theirs)).toBeLessThanOrEqual(WATCHDOG_MS)
    // The key of the lock is cut down by all.
    expect(await scene.ttl()).toBeLessThanOrEqual(WATCHDOG_MS)
    await java.unlock()
  })

  stage.test('a Java writer is renewed like a plain lock', async (scene) => {
    const java = new JavaLock(scene.thread(), reference('getReadWriteLock', scene.name, 'writeLock'))
    await java.lock()
    let last = await scene.ttl()
    await eventually(async () => {
      const [before, now] = [last, await scene.ttl()]
      last = now
      return now > before
    }, 'the TTL is raised')
    await java.unlock()
  })
}

function nameFor(scene: Scene, side: 'java' | 'peer'): string {
  return `${scene.name}:${side}`
}

async function expectSameTrail(scene: Scene, { java, peer }: Trail): Promise<void> {
  const begun = Date.now()
  const sides = [
    { steps: java, name: nameFor(scene, 'java'), owner: await scene.thread().owner() },
    { steps: peer, name: nameFor(scene, 'peer'), owner: OWNER },
  ]
  const trails = sides.map(async ({ steps, name, owner }) => {
    const recorder = await Recorder.on(scene.link, name)
    scene.atEnd(() => {
      recorder.close()
    })
    const trail: unknown[] = []
    for (const step of steps) trail.push(plain(await recorder.act(step), { name, owner, begun }))
    return trail
  })
  const [inJava, inPeer] = await Promise.all(trails)
  expect(inPeer).toEqual(inJava)
}

interface Side {
  readonly name: string
  readonly owner: string
  /** Epoch ms of the client. */
  readonly begun: number
}

/** What was left behind, without what differs from run to run. */
function plain({ keys, messages }: Step<unknown>, { name, owner, begun }: Side): unknown {
  const kept = Object.entries(keys)
    // Gone a moment after the answer.
    .filter(([key]) => !key.startsWith('redisson_unlock_latch'))
    .map(([key, { type, value, ttl }]) => ({
      key,
      type,
      value: type === 'zset' ? leases(value, begun) : value,
      ttl: ttl === 'none' ? ttl : Math.ceil(ttl / ROUGHLY_MS),
    }))
    .sort((one, other) => (one.key < other.key ? -1 : 1))
  // Some versions release the members of a multi-lock side by side.
  const told = [...messages].sort((one, other) => one.channel.localeCompare(other.channel))
  const words = JSON.stringify({ kept, told })
  return JSON.parse(words.replaceAll(name, 'n').replaceAll(owner, 'OWNER')) as unknown
}

/** Leases of permits; which ids they have is left to chance. */
function leases(scores: unknown, begun: number): readonly unknown[] {
  const expiries = Object.values(scores as Record<string, number>)
  const roughly = (ms: number) => Math.round((ms - begun) / ROUGHLY_MS)
  return expiries.map((ms) => (ms === Number(NO_LEASE) ? 'none' : roughly(ms))).sort()
}
