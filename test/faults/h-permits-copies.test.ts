/** Permits with leases, group H: commands that run twice, late, or for nobody. */
import { describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import type { Holdfast, HoldfastOptions, PermitSemaphore } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import type { Proxy, Reply, Request } from '../support/proxy.js'
import { openScene, type Scene } from './scene.js'
import { expected, IDLE, untilUndone } from './support/around.js'

const NAME = 'downloads'
const LIBRARIES = ['ioredis', 'node-redis'] as const
const REASON = new Error('the caller went away')

const STEPS = {
  acquire: scripts.permitsAcquire,
  release: scripts.permitsRelease,
  give: scripts.permitsGive,
  renew: scripts.permitsRenew,
  count: scripts.permitsCount,
  'try-set': scripts.permitsTrySet,
  set: scripts.permitsSet,
  add: scripts.permitsAdd,
  update: scripts.permitsUpdate,
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
  readonly scene: Scene
  readonly proxy: Proxy
  readonly holdfast: Holdfast
  /** Behind the proxy. */
  readonly semaphore: PermitSemaphore
  /** Straight to the server. */
  readonly other: PermitSemaphore
}

/** Three permits. */
async function stage(
  scene: Scene,
  library: (typeof LIBRARIES)[number],
  options: HoldfastOptions = {},
): Promise<Stage> {
  for (const { script } of Object.values(STEPS)) await scene.command('SCRIPT', 'LOAD', script.source)
  const proxy = await scene.proxy()
  const client =
    library === 'ioredis' ? scene.ioredis({ port: proxy.port }) : await scene.nodeRedis(proxy.port)
  const holdfast = scene.holdfast(options, client)
  const semaphore = holdfast.permitSemaphore(NAME, { permits: 3 })
  const other = scene.holdfast().permitSemaphore(NAME)
  await other.trySet(3)
  await semaphore.available()
  return { scene, proxy, holdfast, semaphore, other }
}

describe.each(LIBRARIES)('%s', (library) => {
  test('permits whose grant got no answer are taken once, and given back once', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other, holdfast } = await stage(scene, library)
    proxy.dropReply(answers('acquire'))
    const lease = await semaphore.acquire(2)
    expect(proxy.count(sends('acquire'))).toBe(2)
    expect([await other.available(), await other.acquired()]).toEqual([1, 2])
    proxy.dropReply(answers('release'))
    expect(await lease.release()).toBe('released')
    expect(proxy.count(sends('release'))).toBe(2)
    expect([await other.available(), await other.total()]).toEqual([3, 3])
    expect(holdfast.stats()).toEqual(IDLE)
  })

  test('an acquire of permits that arrives behind its own undoing takes nothing', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other, holdfast } = await stage(scene, library)
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
    expect([await other.available(), await other.acquired()]).toEqual([3, 0])
  })

  test('a late copy of a release frees nothing that others took since', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other } = await stage(scene, library)
    const lease = await semaphore.acquire(3)
    expect(await lease.release()).toBe('released')
    const theirs = await other.acquire(3)
    const [release] = proxy.requests.filter(sends('release'))
    if (release === undefined) throw new Error('nothing was released')
    expect(await proxy.sendAgain(release)).toBe(0)
    expect([await other.available(), await other.acquired()]).toEqual([0, 3])
    expect(await theirs.release()).toBe('released')
    expect(await other.total()).toBe(3)
  })

  test('permits given back by their ids, whose reply is lost, were given back', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other } = await stage(scene, library)
    const { ids } = await other.acquire(3)
    const [first = '', ...rest] = ids
    proxy.dropReply(answers('give'))
    await semaphore.release(first)
    proxy.dropReply(answers('give'))
    await semaphore.releaseAll(rest)
    expect(proxy.count(sends('give'))).toBe(4)
    expect([await other.available(), await other.total()]).toEqual([3, 3])
  })

  test('a change of the number whose reply is lost is made once, and answered as if nothing had happened', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other } = await stage(scene, library)
    proxy.dropReply(answers('add'))
    await semaphore.add(2)
    expect(await other.total()).toBe(5)
    proxy.dropReply(answers('set'))
    await semaphore.set(4)
    expect(await other.total()).toBe(4)
    await scene.command('DEL', NAME)
    proxy.dropReply(answers('try-set'))
    expect(await semaphore.trySet(7)).toBe(true)
    expect(await semaphore.trySet(9)).toBe(false)
    expect(await other.total()).toBe(7)
  })

  test('a late copy of a change of the number changes nothing', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other } = await stage(scene, library)
    await semaphore.set(5)
    await semaphore.add(1)
    await other.set(2)
    for (const step of ['set', 'add'] as const) {
      const [request] = proxy.requests.filter(sends(step))
      if (request === undefined) throw new Error('nothing was sent')
      await proxy.sendAgain(request)
    }
    expect(await other.total()).toBe(2)
  })

  test('a late copy of a change that was refused, or changed nothing, changes nothing', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other } = await stage(scene, library)
    await semaphore.set(3)
    expect(await semaphore.trySet(9)).toBe(false)
    await expect(semaphore.add(Number.MAX_SAFE_INTEGER)).rejects.toThrow(RangeError)
    await other.set(-0)
    await other.add(-5)
    const copies = (['set', 'add'] as const).map((step) => proxy.requests.find(sends(step)))
    for (const copy of copies) await proxy.sendAgain(copy as Request)
    expect(await other.total()).toBe(-5)
    await scene.command('DEL', NAME)
    await proxy.sendAgain(proxy.requests.find(sends('try-set')) as Request)
    expect(await scene.command('GET', NAME)).toBeNull()
  })

  test("a late copy of a change of a permit's expiry does not bring it forward again", async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other } = await stage(scene, library)
    const { ids } = await other.acquire({ leaseTime: 60_000 })
    const [id = ''] = ids
    proxy.dropReply(answers('update'))
    expect(await semaphore.updateLeaseTime(id, 5_000)).toBe(true)
    expect(proxy.count(sends('update'))).toBe(2)
    expect(await other.updateLeaseTime(id, 600_000)).toBe(true)
    const [copy] = proxy.requests.filter(sends('update'))
    if (copy === undefined) throw new Error('nothing was changed')
    await proxy.sendAgain(copy)
    expect(await other.remainingTime(id)).toBeGreaterThan(500_000)
  })

  test('a change of the number that was given up is not made later', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other, holdfast } = await stage(scene, library, { commandTimeout: 300 })
    const { ids } = await other.acquire({ leaseTime: 600_000 })
    const [id = ''] = ids
    for (const [step, call] of [
      ['set', () => semaphore.set(9)],
      ['add', () => semaphore.add(9)],
      ['update', () => semaphore.updateLeaseTime(id, 5_000)],
    ] as const) {
      // Not what the client sends again over its next link.
      let link: number | undefined
      const late = proxy.holdRequests(
        (request) => sends(step)(request) && (link ??= request.connection) === request.connection,
      )
      const got = expected<unknown>(call())
      await late.caught()
      await expect(got).rejects.toMatchObject({ outcome: 'unknown' })
      // The undoing goes around over a new link.
      proxy.cutClients()
      await untilUndone(holdfast)
      // Whatever became of it, this comes after it.
      await other.set(3)
      await other.updateLeaseTime(id, 600_000)
      const before = await scene.scripts()
      late.release()
      await eventually(async () => (await scene.scripts()) > before, 'the late change has run')
      expect(await other.total()).toBe(3)
      expect(await other.remainingTime(id)).toBeGreaterThan(500_000)
    }
  })

  test('a late renewal of permits brings none of them back', async () => {
    await using scene = await openScene()
    const { proxy, semaphore, other } = await stage(scene, library)
    const lease = await semaphore.acquire(2)
    await lease.extend(60_000)
    await lease.release()
    const [renewal] = proxy.requests.filter(sends('renew'))
    if (renewal === undefined) throw new Error('nothing was renewed')
    expect(await proxy.sendAgain(renewal)).toEqual([0])
    expect([await other.available(), await other.acquired()]).toEqual([3, 0])
  })
})
