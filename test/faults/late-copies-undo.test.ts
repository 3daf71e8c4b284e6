/** Acquires that nobody waits for any more: what is undone, in which order, and what is never sent. */
import { describe, expect, test } from 'vitest'
import { ManualClock, type Holdfast } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import type { Proxy, Request } from '../support/proxy.js'
import { openScene, type Scene } from './scene.js'
import { expected, IDLE, untilSettled, untilUndone } from './support/around.js'
import { answers, sends, teach } from './support/sent.js'

const NAME = 'orders:42'
const FAMILIES = ['lock', 'mutex'] as const
const LIBRARIES = ['ioredis', 'node-redis'] as const
type Library = (typeof LIBRARIES)[number]
const REASON = new Error('the caller went away')

const CASES = FAMILIES.flatMap((family) => LIBRARIES.map((library) => ({ family, library })))

async function behindProxy(
  scene: Scene,
  library: Library,
  options: { readonly clock?: ManualClock; readonly commandTimeout?: number } = {},
): Promise<readonly [Proxy, Holdfast]> {
  const proxy = await scene.proxy()
  const client =
    library === 'ioredis' ? scene.ioredis({ port: proxy.port }) : await scene.nodeRedis(proxy.port)
  const holdfast = scene.holdfast(options, client)
  await holdfast.lock(NAME).isLocked()
  return [proxy, holdfast]
}

describe.each(CASES)('$family, $library', ({ family, library }) => {
  test('an acquire that arrives behind its own undoing leaves the lock free', async () => {
    await using scene = await openScene()
    await teach(scene)
    const [proxy, holdfast] = await behindProxy(scene, library)
    const onFirst = ({ connection }: Request): boolean => connection === 1
    const late = proxy.holdRequests((request) => onFirst(request) && sends('acquire')(request))
    const behind = proxy.holdRequests((request) => onFirst(request) && sends('release')(request))
    const controller = new AbortController()
    const got = expected(holdfast[family](NAME).acquire({ signal: controller.signal }))
    await late.caught()
    controller.abort(REASON)
    await expect(got).rejects.toBe(REASON)
    expect(holdfast.stats().compensating).toBe(1)
    await eventually(() => proxy.count(sends('release')) === 1, 'the undoing is behind the acquire')

    // The undoing goes around over a new link.
    proxy.cutClients()
    await untilUndone(holdfast)
    expect(await scene.command('EXISTS', NAME)).toBe(0)
    const before = await scene.scripts()
    late.release()
    await eventually(async () => (await scene.scripts()) > before, 'the late acquire has run')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
    const next = await scene.holdfast()[family](NAME).tryAcquire()
    expect(next?.held).toBe(true)
    behind.release()
    await eventually(async () => (await scene.scripts()) > before + 2, 'the late undoing has run')
    expect(await next?.release()).toBe('released')
    expect(holdfast.stats()).toEqual(IDLE)
  })

  test('an acquire given up at its deadline is undone in the order it was sent', async () => {
    await using scene = await openScene()
    await teach(scene)
    const [proxy, holdfast] = await behindProxy(scene, library)
    const gate = proxy.holdRequests(sends('acquire'))
    const got = holdfast[family](NAME).acquire({ waitTime: 150 })
    await expect(got).rejects.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' })
    gate.release()
    await untilUndone(holdfast)
    expect(await scene.command('EXISTS', NAME)).toBe(0)
    expect(proxy.count(sends('acquire'))).toBe(1)
  })

  test('an acquire given up between NOSCRIPT and EVAL is not sent', async () => {
    await using scene = await openScene()
    await teach(scene)
    const [proxy, holdfast] = await behindProxy(scene, library)
    const lock = holdfast[family](NAME)
    await (await lock.acquire()).release()
    await scene.command('SCRIPT', 'FLUSH')
    const before = proxy.count(sends('acquire'))
    const gate = proxy.holdReplies(answers('acquire'))
    const controller = new AbortController()
    const got = expected(lock.acquire({ signal: controller.signal }))
    await gate.caught()
    controller.abort(REASON)
    await expect(got).rejects.toBe(REASON)
    gate.release()
    await untilUndone(holdfast)
    expect(proxy.count(sends('acquire')) - before).toBe(1)
    expect(await scene.command('EXISTS', NAME)).toBe(0)
    expect(await scene.holdfast()[family](NAME).tryAcquire()).not.toBeNull()
  })

  test('an undoing that overtakes the EVAL of its acquire still ends in a free lock', async () => {
    await using scene = await openScene()
    const [proxy, holdfast] = await behindProxy(scene, library)
    const gate = proxy.holdRequests((request) => request.name === 'EVAL' && sends('acquire')(request))
    const got = expected(holdfast[family](NAME).acquire({ waitTime: 150 }))
    const evaluation = await gate.caught()
    await expect(got).rejects.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' })
    // The acquire is lost on the first link; a copy of it turns up when all is over.
    gate.drop()
    proxy.cutAll()
    await untilUndone(holdfast)
    if (evaluation === undefined) throw new Error('nothing was held')
    await proxy.sendAgain(evaluation)
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  })

  test('forgotten scripts go unnoticed', async () => {
    await using scene = await openScene()
    const [proxy, holdfast] = await behindProxy(scene, library)
    const lock = holdfast[family](NAME)
    const lease = await lock.acquire()
    await scene.command('SCRIPT', 'FLUSH')
    await lease.extend(20_000)
    await scene.command('SCRIPT', 'FLUSH')
    expect(await lease.release()).toBe('released')
    for (const step of ['acquire', 'renew', 'release'] as const) expect(proxy.count(sends(step))).toBe(2)
    expect(await scene.command('EXISTS', NAME)).toBe(0)
  })
})

describe.each(FAMILIES)('%s', (family) => {
  const AGES: readonly (readonly [string, (clock: ManualClock) => Promise<void> | void])[] = [
    ['took longer than its lease', (clock) => clock.advance(9_950)],
    ['the machine slept over', (clock) => clock.sleepMachine(9_950)],
  ]

  test.each(AGES)('a grant that %s is given back, and the next one counts', async (_how, age) => {
    await using scene = await openScene()
    await teach(scene)
    const clock = new ManualClock()
    const [proxy, holdfast] = await behindProxy(scene, 'ioredis', { clock, commandTimeout: 60_000 })
    const granted = scene.hear('holdfast:acquire:granted')
    for (const call of ['acquire', 'tryAcquire'] as const) {
      const gate = proxy.holdReplies(answers('acquire'))
      const getting = holdfast[family](NAME)[call]({ leaseTime: 10_000 })
      await gate.caught()
      const [stale] = proxy.requests.filter(sends('acquire')).slice(-1)
      await age(clock)
      gate.release()
      await untilSettled(clock, getting)
      const lease = await getting
      expect(lease?.held).toBe(true)
      expect(lease?.remaining).toBeGreaterThan(9_000)
      // An owner that was given back is dead.
      expect(stale?.words).not.toContain(lease?.owner)
      await untilUndone(holdfast)
      const type = family === 'lock' ? 'HKEYS' : 'GET'
      expect(String(await scene.command(type, NAME))).toBe(lease?.owner)
      expect(await lease?.release()).toBe('released')
      expect(await scene.command('EXISTS', NAME)).toBe(0)
      if (stale === undefined) throw new Error('nothing was sent')
      expect(await proxy.sendAgain(stale)).toBe(-2)
    }
    expect(granted).toHaveLength(2)
    expect(proxy.count(sends('acquire'))).toBe(4)
  })
})
