/** Permits and counts without owners: commands that run twice, late, or for nobody, and what they cost. */
import { describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import type { CountDownLatch, Holdfast, HoldfastOptions, Semaphore } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import type { Proxy, Reply, Request } from '../support/proxy.js'
import { openScene, type Scene } from './scene.js'
import { expected, IDLE, untilUndone } from './support/around.js'

const NAME = 'downloads'
const LATCH = 'arrivals'
const LIBRARIES = ['ioredis', 'node-redis'] as const
const REASON = new Error('the caller went away')

const STEPS = {
  acquire: scripts.semaphoreAcquire,
  end: scripts.semaphoreEnd,
  add: scripts.semaphoreAdd,
  drain: scripts.semaphoreDrain,
  set: scripts.semaphoreSet,
  'count-down': scripts.latchCountDown,
  'set-count': scripts.latchSet,
  cancel: scripts.latchCancel,
} as const
type Step = keyof typeof STEPS

function sends(step: Step): (request: Request) => boolean {
  const { sha } = STEPS[step].script
  return ({ name, words }) => name === 'EVALSHA' && words[1] === sha
}

function answers(step: Step): (reply: Reply) => boolean {
  return ({ request }) => request !== undefined && sends(step)(request)
}

interface Stage {
  readonly proxy: Proxy
  readonly holdfast: Holdfast
  /** Behind the proxy. */
  readonly semaphore: Semaphore
  readonly latch: CountDownLatch
  /** Straight to the server. */
  readonly other: Holdfast
  readonly free: () => Promise<number>
  readonly count: () => Promise<number>
}

/** Five permits, and a latch of three. */
async function stage(
  scene: Scene,
  library: (typeof LIBRARIES)[number],
  options: HoldfastOptions = {},
): Promise<Stage> {
  for (const { script } of Object.values(STEPS)) await scene.command('SCRIPT', 'LOAD', script.source)
  const proxy = await scene.proxy()
  const client =
    library === 'ioredis' ? scene.ioredis({ port: proxy.port }) : await scene.nodeRedis(proxy.port)
  const [holdfast, other] = [scene.holdfast(options, client), scene.holdfast()]
  const [semaphore, latch] = [holdfast.semaphore(NAME), holdfast.countDownLatch(LATCH)]
  await other.semaphore(NAME).trySet(5)
  await other.countDownLatch(LATCH).trySetCount(3)
  await semaphore.available()
  const free = () => other.semaphore(NAME).available()
  const count = () => other.countDownLatch(LATCH).getCount()
  return { proxy, holdfast, semaphore, latch, other, free, count }
}

describe.each(LIBRARIES)('%s', (library) => {
  test('bare permits whose grant got no answer are taken once, and given back once', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, holdfast, free } = await stage(scene, library)
    proxy.dropReply(answers('acquire'))
    const grant = await semaphore.acquire(2)
    expect(proxy.count(sends('acquire'))).toBe(2)
    expect(await free()).toBe(3)
    proxy.dropReply(answers('end'))
    expect(await grant.release()).toBe('released')
    expect(proxy.count(sends('end'))).toBe(2)
    expect(await free()).toBe(5)
    expect(holdfast.stats()).toEqual(IDLE)
  })

  test('an acquire of bare permits that was applied although its caller gave up is undone once', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, holdfast, free } = await stage(scene, library)
    const answer = proxy.holdReplies(answers('acquire'))
    const controller = new AbortController()
    const got = expected(semaphore.acquire(2, { signal: controller.signal }))
    await answer.caught()
    expect(await free()).toBe(3)
    controller.abort(REASON)
    await expect(got).rejects.toBe(REASON)
    answer.release()
    await untilUndone(holdfast)
    expect(await free()).toBe(5)
    const [undoing] = proxy.requests.filter(sends('end'))
    if (undoing === undefined) throw new Error('nothing was undone')
    await proxy.sendAgain(undoing)
    expect(await free()).toBe(5)
  })

  test('an acquire of bare permits that arrives behind its own undoing takes nothing', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, holdfast, free } = await stage(scene, library)
    const late = proxy.holdRequests((request) => request.connection === 1 && sends('acquire')(request))
    const controller = new AbortController()
    const got = expected(semaphore.acquire(2, { signal: controller.signal }))
    await late.caught()
    controller.abort(REASON)
    await expect(got).rejects.toBe(REASON)
    // The undoing goes around over a new link.
    proxy.cutClients()
    await untilUndone(holdfast)
    const before = await scene.scripts()
    late.release()
    await eventually(async () => (await scene.scripts()) > before, 'the late acquire has run')
    expect(await free()).toBe(5)
  })

  test('late copies of what was done with bare permits do nothing', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, free, other } = await stage(scene, library)
    const grant = await semaphore.acquire(2)
    await grant.release()
    await semaphore.release(3)
    await semaphore.add(-1)
    expect(await semaphore.drain()).toBe(7)
    await other.semaphore(NAME).add(4)
    for (const step of ['acquire', 'end', 'add', 'drain', 'set'] as const)
      for (const request of proxy.requests.filter(sends(step))) await proxy.sendAgain(request)
    expect(await free()).toBe(4)
  })

  test('changes of bare permits whose reply is lost are made once, and answered as if nothing had happened', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, free } = await stage(scene, library)
    proxy.dropReply(answers('add'))
    await semaphore.release(3)
    expect(await free()).toBe(8)
    proxy.dropReply(answers('add'))
    expect(await semaphore.releaseIfExists(1)).toBe(true)
    proxy.dropReply(answers('drain'))
    expect(await semaphore.drain()).toBe(9)
    await scene.command('DEL', NAME)
    proxy.dropReply(answers('set'))
    expect(await semaphore.trySet(7)).toBe(true)
    expect(await free()).toBe(7)
  })

  test('a count-down whose reply is lost counts once, also the last one', async () => {
    await using scene = await openScene()
    const { proxy, latch, count } = await stage(scene, library)
    for (const left of [2, 1, 0]) {
      proxy.dropReply(answers('count-down'))
      expect(await latch.countDown()).toBe(left)
      expect(await count()).toBe(left)
    }
    proxy.dropReply(answers('set-count'))
    expect(await latch.trySetCount(4)).toBe(true)
    expect(await count()).toBe(4)
  })

  test('a late copy of a count-down does not count in the next round', async () => {
    await using scene = await openScene()
    const { proxy, latch, other, count } = await stage(scene, library)
    await latch.countDown()
    await other.countDownLatch(LATCH).delete()
    await other.countDownLatch(LATCH).trySetCount(2)
    const [request] = proxy.requests.filter(sends('count-down'))
    if (request === undefined) throw new Error('nothing was counted')
    await proxy.sendAgain(request)
    expect(await count()).toBe(2)
  })

  test('a count-down that is given up is undone: it may be done again', async () => {
    await using scene = await openScene()
    const { proxy, latch, holdfast, count } = await stage(scene, library, { commandTimeout: 300 })
    const answer = proxy.holdReplies(answers('count-down'))
    await expect(latch.countDown()).rejects.toMatchObject({
      code: 'HOLDFAST_UNAVAILABLE',
      outcome: 'unknown',
    })
    expect(await count()).toBe(2)
    answer.release()
    await untilUndone(holdfast)
    expect(await count()).toBe(3)
    expect(await latch.countDown()).toBe(2)
  })

  test('a count-down that is undone late does not reach into the next round', async () => {
    await using scene = await openScene()
    const { proxy, latch, other, holdfast, count } = await stage(scene, library, { commandTimeout: 300 })
    const answer = proxy.holdReplies(answers('count-down'))
    const undoing = proxy.holdRequests(sends('cancel'))
    await expect(latch.countDown()).rejects.toMatchObject({ outcome: 'unknown' })
    answer.release()
    await undoing.caught()
    await other.countDownLatch(LATCH).delete()
    await other.countDownLatch(LATCH).trySetCount(2)
    undoing.release()
    await untilUndone(holdfast)
    expect(await count()).toBe(2)
  })

  test('a number, or a count, whose setting is given up stays, and is not set late', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, latch, holdfast, free, count } = await stage(scene, library, {
      commandTimeout: 300,
    })
    await scene.command('DEL', NAME, LATCH)
    const unknown = { code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' }
    const held = [proxy.holdReplies(answers('set')), proxy.holdReplies(answers('set-count'))]
    const calls = [expected(semaphore.trySet(4)), expected(latch.trySetCount(6))]
    for (const call of calls) await expect(call).rejects.toMatchObject(unknown)
    for (const answer of held) answer.release()
    await untilUndone(holdfast)
    expect([await free(), await count()]).toEqual([4, 6])
    expect([await semaphore.trySet(4), await latch.trySetCount(6)]).toEqual([false, false])
    await scene.command('DEL', NAME, LATCH)
    for (const step of ['set', 'set-count'] as const)
      for (const request of proxy.requests.filter(sends(step))) await proxy.sendAgain(request)
    expect(await scene.command('EXISTS', NAME, LATCH)).toBe(0)
  })

  test('a return of bare permits that gets no answer goes on in the background, and counts once', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, holdfast, free } = await stage(scene, library, { commandTimeout: 300 })
    const grant = await semaphore.acquire(2)
    const told = scene.hear('holdfast:release')
    const answer = proxy.holdReplies(answers('end'))
    expect(await grant.release()).toBe('unknown')
    expect(told).toMatchObject([{ lock: NAME, outcome: 'unknown' }])
    answer.release()
    await untilUndone(holdfast)
    expect(proxy.count(sends('end'))).toBeGreaterThan(1)
    expect(await free()).toBe(5)
  })
})

test('bare permits cost one script to take and one to give back, free ones all in one write', async () => {
  await using scene = await openScene()
  const { proxy, semaphore } = await stage(scene, 'ioredis')
  await scene.forgetCalls()
  await (await semaphore.acquire(2)).release()
  expect(await scene.scripts()).toBe(2)
  // All five are asked for before the first one is answered.
  const answer = proxy.holdReplies(answers('acquire'))
  const grants = Promise.all(Array.from({ length: 5 }, () => semaphore.acquire()))
  await eventually(() => proxy.count(sends('acquire')) === 6, 'all have asked')
  answer.release()
  await Promise.all((await grants).map((grant) => grant.release()))
  expect((await scene.calls()).get('subscribe')).toBeUndefined()
})

test('notes of requests carry a TTL, under a name that no other program knows', async () => {
  await using scene = await openScene()
  const { semaphore, latch } = await stage(scene, 'ioredis')
  await (await semaphore.acquire(2)).release()
  await semaphore.release()
  await semaphore.drain()
  await semaphore.trySet(1)
  await latch.countDown()
  await latch.delete()
  const keys = (await scene.command('KEYS', '*')) as string[]
  const notes = keys.filter((key) => key !== NAME)
  expect(notes.length).toBeGreaterThan(5)
  for (const note of notes) {
    expect(note).toMatch(/^holdfast_request:\{(downloads|arrivals)\}:/)
    expect(await scene.command('PTTL', note)).toSatisfy((ms: number) => ms > 0 && ms <= 60_000)
  }
})

test('five hundred waiters of one process for bare permits, or for a latch, send few commands', async () => {
  await using scene = await openScene()
  const { semaphore, latch, other } = await stage(scene, 'ioredis')
  const held = await other.semaphore(NAME).acquire(5)
  const controller = new AbortController()
  const { signal } = controller
  const waits = Array.from({ length: 500 }, (_, i) =>
    expected<unknown>(i % 2 === 0 ? semaphore.acquire(1, { signal }) : latch.wait({ signal })),
  )
  const heard = async (channel: string): Promise<boolean> => {
    const [, count] = (await scene.command('PUBSUB', 'NUMSUB', channel)) as [string, number]
    return count > 0
  }
  await eventually(() => heard(`redisson_sc:{${NAME}}`), 'it listens for permits')
  await eventually(() => heard(`redisson_countdownlatch__channel__{${LATCH}}`), 'it listens for zero')
  await new Promise((resolve) => setTimeout(resolve, 300))
  await scene.forgetCalls()
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect(await scene.scripts()).toBeLessThan(5)
  controller.abort(REASON)
  await Promise.allSettled(waits)
  await held.release()
})
