/** The fair lock's queue, group F: its deadlines, the living in it, and what lost replies do to it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { FairLock, HoldfastOptions } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { openScene, watch, type Scene } from './scene.js'
import { expected, IDLE, untilUndone } from './support/around.js'
import { answers, sends, teach } from './support/sent.js'

const NAME = 'orders:42'
const QUEUE = `redisson_lock_queue:{${NAME}}`
const DEADLINES = `redisson_lock_timeout:{${NAME}}`

function fairLocks(scene: Scene, count: number, options: HoldfastOptions = {}): readonly FairLock[] {
  return Array.from({ length: count }, () => scene.holdfast(options).fairLock(NAME))
}

async function queue(scene: Scene): Promise<readonly string[]> {
  const reply = await scene.command('LRANGE', QUEUE, 0, -1)
  return Array.isArray(reply) ? reply.map(String) : []
}

function untilQueued(scene: Scene, count: number): Promise<void> {
  return eventually(async () => (await queue(scene)).length === count, `${count} stand in the queue`)
}

async function deadlines(scene: Scene): Promise<readonly number[]> {
  const owners = await queue(scene)
  return Promise.all(owners.map(async (owner) => Number(await scene.command('ZSCORE', DEADLINES, owner))))
}

/** Calls one lock after the other, each when the one before it stands in the queue. */
async function lineUp<T>(scene: Scene, calls: readonly (() => Promise<T>)[]): Promise<readonly Promise<T>[]> {
  const waiters: Promise<T>[] = []
  for (const call of calls) {
    waiters.push(call())
    await untilQueued(scene, waiters.length)
  }
  return waiters
}

test('fault 67: tries that come to nothing do not move the deadlines into the future', async () => {
  await using scene = await openScene()
  const [holder, first, second, third, last] = fairLocks(scene, 5)
  await holder?.acquire({ leaseTime: 30_000 })
  const tries = async (lock: FairLock | undefined): Promise<void> => {
    // On a busy machine there may be no answer in so short a time: that must leave nothing either.
    const once = () => lock?.tryAcquire({ waitTime: 20 }).catch(() => null)
    for (let i = 0; i < 60; i++) expect(await once()).toBeNull()
  }
  await Promise.all([first, second, third].map(tries))
  await untilQueued(scene, 0)
  expect(await scene.command('EXISTS', DEADLINES)).toBe(0)
  const waiting = expected(last?.acquire({ waitTime: 60_000 }) ?? Promise.reject(new Error('none')))
  await untilQueued(scene, 1)
  const [deadline = 0] = await deadlines(scene)
  // Its own wait behind the holder's end, and nothing of the 180 others.
  const endMs = Date.now() + Number(await scene.command('PTTL', NAME))
  expect(Math.abs(deadline - endMs - 60_000)).toBeLessThan(2_000)
  await holder?.forceRelease()
  await (await waiting).release()
})

test('fault 68: a waiter that waits longer than its place is kept is served in its turn', async () => {
  await using scene = await openScene()
  const [holder] = fairLocks(scene, 1, { lockWatchdogTimeout: 600 })
  const lease = await holder?.acquire()
  const served: number[] = []
  const locks = fairLocks(scene, 5, { fairLockWaitTimeout: 300 })
  const waiters = await lineUp(
    scene,
    locks.map((lock, i) => () => lock.using(() => served.push(i))),
  )
  const before = await queue(scene)
  await sleep(2_000)
  expect(await queue(scene)).toEqual(before)
  expect(await lease?.release()).toBe('released')
  await Promise.all(waiters)
  expect(served).toEqual([0, 1, 2, 3, 4])
})

test('fault 68: a waiter whose place was lost stands in the queue again', async () => {
  await using scene = await openScene()
  const [holder, waiter] = fairLocks(scene, 2)
  const lease = await holder?.acquire()
  const waiting = waiter?.acquire({ pollInterval: 50 })
  await untilQueued(scene, 1)
  const [owner] = await queue(scene)
  await scene.command('DEL', QUEUE, DEADLINES)
  await untilQueued(scene, 1)
  expect(await queue(scene)).toEqual([owner])
  await lease?.release()
  expect((await waiting)?.owner).toBe(owner)
})

test('fault 70: each next one is there when holder after holder dies without a word', async () => {
  await using scene = await openScene()
  const locks = fairLocks(scene, 6)
  const first = await locks[0]?.acquire()
  const looks = scene.hear('holdfast:wakeup')
  const served: number[] = []
  const waiters = await lineUp(
    scene,
    locks.slice(1).map((lock, i) => async () => {
      const lease = await lock.acquire({ leaseTime: 300 })
      served.push(i)
      // So that nobody warns of its loss.
      return lease.held
    }),
  )
  await first?.release()
  await Promise.all(waiters)
  expect(served).toEqual([0, 1, 2, 3, 4])
  // By the end of a lease, not by a look now and then.
  expect(looks.filter(({ cause }) => cause === 'expiry').length).toBeGreaterThanOrEqual(4)
})

test('fault 71: with keys and entries that vanish all contenders come through, without an error', async () => {
  await using scene = await openScene()
  const locks = fairLocks(scene, 4)
  let inside = 0
  let most = 0
  const work = async (lock: FairLock): Promise<void> => {
    for (let i = 0; i < 8; i++) {
      await lock.using({ pollInterval: 40 }, async () => {
        inside += 1
        most = Math.max(most, inside)
        await sleep(1)
        inside -= 1
      })
    }
  }
  const contending = Promise.all([...locks, ...locks, ...locks].map(work))
  const state = watch(contending)
  for (let i = 0; !state.settled; i++) {
    const [one = 'nobody'] = await queue(scene)
    if (i % 4 === 0) await scene.command('DEL', QUEUE)
    if (i % 4 === 1) await scene.command('DEL', DEADLINES)
    if (i % 4 === 2) await scene.command('ZREM', DEADLINES, one)
    if (i % 4 === 3) await scene.command('RPUSH', QUEUE, one)
    await sleep(20)
  }
  await contending
  expect(most).toBe(1)
})

describe.each(['ioredis', 'node-redis'] as const)('with %s', (library) => {
  const behindProxy = async (scene: Scene, options: HoldfastOptions = {}) => {
    await teach(scene)
    const proxy = await scene.proxy()
    const client =
      library === 'ioredis' ? scene.ioredis({ port: proxy.port }) : await scene.nodeRedis(proxy.port)
    const holdfast = scene.holdfast(options, client)
    await holdfast.lock(NAME).isLocked()
    return { proxy, holdfast, lock: holdfast.fairLock(NAME) }
  }

  test('fault 69: leaving the queue is repeated until the server has answered', async () => {
    await using scene = await openScene()
    const { proxy, holdfast, lock } = await behindProxy(scene, { commandTimeout: 200 })
    await scene.holdfast().fairLock(NAME).acquire()
    proxy.dropRequest(sends('abandon'), 3)
    expect(await lock.tryAcquire({ waitTime: 150 })).toBeNull()
    await untilUndone(holdfast)
    expect(proxy.count(sends('abandon'))).toBeGreaterThan(1)
    expect(await queue(scene)).toEqual([])
    expect(await scene.command('EXISTS', DEADLINES)).toBe(0)
    expect(holdfast.stats()).toEqual(IDLE)
  })

  test('fault 69: a late enqueue behind its own leaving leaves no ghost in the queue', async () => {
    await using scene = await openScene()
    const { proxy, holdfast, lock } = await behindProxy(scene)
    const lease = await scene.holdfast().fairLock(NAME).acquire()
    const late = proxy.holdRequests((request) => request.connection === 1 && sends('acquire')(request))
    const controller = new AbortController()
    const got = expected(lock.acquire({ signal: controller.signal }))
    await late.caught()
    controller.abort(new Error('the caller went away'))
    await expect(got).rejects.toThrow('the caller went away')
    // The leaving goes around over a new link.
    proxy.cutClients()
    await untilUndone(holdfast)
    const before = await scene.scripts()
    late.release()
    await eventually(async () => (await scene.scripts()) > before, 'the late enqueue has run')
    expect(await queue(scene)).toEqual([])
    expect(await lease.release()).toBe('released')
    expect((await scene.holdfast().fairLock(NAME).tryAcquire())?.held).toBe(true)
  })

  test('fault 69: an enqueue without an answer does not block those behind it', async () => {
    await using scene = await openScene()
    const { proxy, holdfast, lock } = await behindProxy(scene, { commandTimeout: 200, unavailableAfter: 300 })
    const lease = await scene.holdfast().fairLock(NAME).acquire()
    const answered = proxy.holdReplies(answers('acquire'))
    await expect(lock.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' })
    const behind = scene.holdfast().fairLock(NAME).acquire()
    answered.release()
    await untilUndone(holdfast)
    await untilQueued(scene, 1)
    await lease.release()
    expect((await behind).held).toBe(true)
  })

  test('fault 72: a repeated leaving moves those behind it once', async () => {
    await using scene = await openScene()
    const { proxy, holdfast, lock } = await behindProxy(scene, { commandTimeout: 300 })
    const lease = await scene.holdfast().fairLock(NAME).acquire()
    const controller = new AbortController()
    const gone = expected(lock.acquire({ signal: controller.signal, waitTime: 50_000 }))
    await untilQueued(scene, 1)
    const behind = scene.holdfast().fairLock(NAME).acquire({ pollInterval: 3_600_000 })
    await untilQueued(scene, 2)
    const [, before = 0] = await deadlines(scene)
    proxy.dropReply(answers('abandon'), 2)
    controller.abort(new Error('enough'))
    await expect(gone).rejects.toThrow('enough')
    await untilUndone(holdfast)
    expect(proxy.count(sends('abandon'))).toBeGreaterThan(1)
    expect(await deadlines(scene)).toEqual([before - 50_000])
    await lease.release()
    expect((await behind).held).toBe(true)
  })
})
