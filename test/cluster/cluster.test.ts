import { setTimeout as sleep } from 'node:timers/promises'
import type { Holdfast, HoldfastOptions, Lease } from 'holdfast'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { slotOf } from '../../src/engine/redis/clients/slot.js'
import { countOf } from '../replication/stage.js'
import { startCluster, type TestCluster } from '../support/cluster.js'
import { eventually } from '../support/eventually.js'
import { CLUSTER_CLIENTS, member, type Member } from './clients.js'

/** Who waits looks by itself after this time only: what comes earlier came by message. */
const LONG_MS = 25_000
const PATIENT = { waitTime: 60_000, pollInterval: LONG_MS } as const
const NAMES = Object.keys(CLUSTER_CLIENTS)

let cluster: TestCluster
const members: Member[] = []

beforeAll(async () => {
  cluster = await startCluster()
}, 60_000)
afterEach(async () => {
  await Promise.all(members.splice(0).map((one) => one[Symbol.asyncDispose]()))
})
afterAll(() => cluster[Symbol.asyncDispose]())

async function start(client: string, options?: HoldfastOptions): Promise<Holdfast> {
  const made = await member(client, cluster.port, options)
  members.push(made)
  return made.holdfast
}

/** Resolves when somebody hears the releases of a lock, on the node that has its slot. */
async function heard(name: string): Promise<void> {
  const channel = `redisson_lock__channel:{${name}}`
  await eventually(async () => {
    const primary = await cluster.primaryOf(slotOf(name))
    return ((await primary.send('PUBSUB', 'SHARDNUMSUB', channel)) as [string, number])[1] > 0
  }, `a subscription of ${channel}`)
}

/** The release, and how long until the one that waits has it. */
async function handOver(lease: Lease, waiting: Promise<Lease>): Promise<number> {
  const releasedAt = performance.now()
  expect(await lease.release()).toBe('released')
  const next = await waiting
  const ms = performance.now() - releasedAt
  expect(await next.release()).toBe('released')
  return ms
}

describe.each(NAMES)('a cluster over %s', (client) => {
  it('hands over by a message of the slot, on every node', async () => {
    const [one, other] = [await start(client), await start(client)]
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const lease = await one.lock(name).acquire()
      const waiting = other.lock(name).acquire(PATIENT)
      await heard(name)
      expect(await handOver(lease, waiting)).toBeLessThan(LONG_MS / 2)
    }
  })

  it('waits for the replica of the slot before it grants', async () => {
    const holdfast = await start(client)
    const primary = await cluster.primaryOf(slotOf('waited'))
    const before = await countOf(primary, 'wait')
    await holdfast.lock('waited').using(() => undefined)
    expect(await countOf(primary, 'wait')).toBeGreaterThan(before)
  })

  it('without sharded messages, hands over by messages to all nodes', async () => {
    const options = { shardedPubSub: 'off' } as const
    const [one, other] = [await start(client, options), await start(client, options)]
    const lease = await one.lock('off').acquire()
    const waiting = other.lock('off').acquire(PATIENT)
    const channel = 'redisson_lock__channel:{off}'
    await eventually(async () => {
      const counts = cluster.nodes.map((node) => node.send('PUBSUB', 'NUMSUB', channel))
      return (await Promise.all(counts)).some((count) => (count as [string, number])[1] > 0)
    }, 'a subscription')
    expect(await handOver(lease, waiting)).toBeLessThan(LONG_MS / 2)
  })

  it('takes objects of different slots as one, and keeps them alive', async () => {
    const holdfast = await start(client, { lockWatchdogTimeout: 900 })
    const locks = ['m1', 'm2', 'm3', 'm4'].map((name) => holdfast.lock(name))
    const lease = await holdfast.multiLock(locks).acquire()
    await sleep(1_500)
    expect(lease.held).toBe(true)
    expect(await lease.release()).toBe('released')
    expect(await Promise.all(locks.map((lock) => lock.isLocked()))).toEqual([false, false, false, false])
  })

  it('runs every other object', async () => {
    const holdfast = await start(client)
    const done: string[] = []
    await holdfast.mutex('mutex').using(() => done.push('mutex'))
    await holdfast.fairLock('fair').using(() => done.push('fair'))
    await holdfast.fencedLock('fenced').using((lease) => done.push(`fenced ${String(lease.token)}`))
    await holdfast.spinLock('spin').using(() => done.push('spin'))
    const { read, write } = holdfast.readWriteLock('read-write')
    await write.using(() => read.using(() => done.push('read-write')))
    await holdfast.semaphore('semaphore', { permits: 2 }).using(() => done.push('semaphore'))
    await holdfast.permitSemaphore('permits', { permits: 2 }).using(() => done.push('permits'))
    const latch = holdfast.countDownLatch('latch')
    await latch.trySetCount(1)
    const waiting = latch.wait({ waitTime: 20_000 })
    await latch.countDown()
    await waiting
    expect(done).toEqual([
      'mutex',
      'fair',
      expect.stringMatching(/^fenced \d+$/),
      'spin',
      'read-write',
      'semaphore',
      'permits',
    ])
  })

  it('a slot moves while its lock is held and waited for', async () => {
    const name = `moves:${client}`
    const slot = slotOf(name)
    const [one, other] = [await start(client, { lockWatchdogTimeout: 900 }), await start(client)]
    const lease = await one.lock(name).acquire()
    const waiting = other.lock(name).acquire(PATIENT)
    await heard(name)
    const migration = await cluster.migrate(slot)
    await migration.moveKeys()
    // A key of the slot that is nowhere yet.
    const fresh = one.lock(`{${name}}:fresh`).acquire({ waitTime: 20_000 })
    await sleep(1_200)
    expect(lease.held).toBe(true)
    await migration.end()
    await (await fresh).release()
    await sleep(1_200)
    expect(lease.held).toBe(true)
    await heard(name)
    expect(await handOver(lease, waiting)).toBeLessThan(LONG_MS / 2)
  }, 60_000)
})

// At the end: it leaves the cluster with a node less.
describe('a primary dies', () => {
  it('while its locks are held and waited for, over every client', async () => {
    const names = NAMES.map((client) => `{dies}:${client}`)
    const ones = await Promise.all(NAMES.map((client) => start(client, { lockWatchdogTimeout: 20_000 })))
    const others = await Promise.all(NAMES.map((client) => start(client)))
    const leases = await Promise.all(ones.map((holdfast, i) => holdfast.lock(names[i] ?? '').acquire()))
    const waiting = others.map((holdfast, i) => holdfast.lock(names[i] ?? '').acquire({ waitTime: 90_000 }))
    await sleep(300)
    const primary = await cluster.primaryOf(slotOf('{dies}'))
    await primary.kill()
    const again = ones.map((holdfast, i) =>
      holdfast.lock(`{dies}:again ${String(i)}`).using({ waitTime: 60_000 }, () => NAMES[i]),
    )
    expect(await Promise.all(again)).toEqual(NAMES)
    expect(leases.map(({ held }) => held)).toEqual([true, true, true, true])
    for (const [i, lease] of leases.entries())
      expect(await handOver(lease, waiting[i] as Promise<Lease>)).toBeLessThan(LONG_MS)
  }, 120_000)
})
