/**
 * Commands that were sent again over a new link, while the bytes of the old link are still on their way: they
 * reach the server after newer commands, and must change nothing.
 */
import { describe, expect, test } from 'vitest'
import type { Holdfast, HoldfastOptions, Lease } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import type { Proxy } from '../support/proxy.js'
import { openScene, type Scene } from './scene.js'
import { expected, more, ttl } from './support/around.js'
import { sends, teach, type Step } from './support/sent.js'

const NAME = 'orders:42'
const FAMILIES = ['lock', 'mutex'] as const

/** A scene whose server knows the scripts, and a Holdfast behind a proxy: its client sends again by itself. */
class Stage implements AsyncDisposable {
  readonly scene: Scene
  readonly proxy: Proxy
  readonly holdfast: Holdfast

  private constructor(scene: Scene, proxy: Proxy, holdfast: Holdfast) {
    this.scene = scene
    this.proxy = proxy
    this.holdfast = holdfast
  }

  static async open(options: HoldfastOptions = {}): Promise<Stage> {
    const scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const holdfast = scene.holdfast(options, scene.ioredis({ port: proxy.port }))
    await holdfast.lock(NAME).isLocked()
    return new Stage(scene, proxy, holdfast)
  }

  /**
   * Runs a call whose command of this step stays on the way over the first link, while its copy over the
   * next one is answered. Returns the call's result, and what lets the first one arrive.
   */
  async overtake<T>(step: Step, call: () => Promise<T>): Promise<readonly [T, () => Promise<void>]> {
    const link = this.proxy.accepted
    const gate = this.proxy.holdRequests((request) => request.connection === link && sends(step)(request))
    const result = expected(call())
    await gate.caught()
    this.proxy.cutClients()
    const arrive = async (): Promise<void> => {
      const before = await this.scene.scripts()
      gate.release()
      await eventually(async () => (await this.scene.scripts()) > before, 'the late copy has run')
    }
    return [await result, arrive]
  }

  /** Who holds the lock; undefined: nobody. */
  async owner(): Promise<unknown> {
    const type = await this.scene.command('TYPE', NAME)
    if (type === 'none') return undefined
    return type === 'hash' ? String(await this.scene.command('HKEYS', NAME)) : this.scene.command('GET', NAME)
  }

  count(owner: string): Promise<unknown> {
    return this.scene.command('HGET', NAME, owner)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.scene[Symbol.asyncDispose]()
  }
}

describe.each(FAMILIES)('%s', (family) => {
  test('a late acquire does not take the lock again after its release', async () => {
    await using stage = await Stage.open()
    const [lease, arrive] = await stage.overtake('acquire', () => stage.holdfast[family](NAME).acquire())
    expect(stage.proxy.count(sends('acquire'))).toBe(2)
    expect(await stage.owner()).toBe(lease.owner)
    if (family === 'lock') expect(await stage.count(lease.owner)).toBe('1')
    expect(await lease.release()).toBe('released')
    await arrive()
    expect(await stage.owner()).toBeUndefined()
  })

  test('a late acquire leaves the next owner alone', async () => {
    await using stage = await Stage.open()
    const [lease, arrive] = await stage.overtake('acquire', () => stage.holdfast[family](NAME).acquire())
    await lease.release()
    const next = await stage.scene.holdfast()[family](NAME).acquire()
    await arrive()
    expect(await stage.owner()).toBe(next.owner)
    expect(await next.release()).toBe('released')
    expect(await stage.owner()).toBeUndefined()
  })

  test('a late acquire of the holder changes nothing', async () => {
    await using stage = await Stage.open()
    const [lease, arrive] = await stage.overtake('acquire', () => stage.holdfast[family](NAME).acquire())
    await lease.extend(90_000)
    await arrive()
    expect(await stage.owner()).toBe(lease.owner)
    if (family === 'lock') expect(await stage.count(lease.owner)).toBe('1')
    expect(await ttl(stage.scene, NAME)).toBeGreaterThan(80_000)
    expect(await lease.release()).toBe('released')
    expect(await stage.owner()).toBeUndefined()
  })

  test('a late renewal neither makes the key nor touches the next owner', async () => {
    await using stage = await Stage.open({ lockWatchdogTimeout: 1_800 })
    const renewed = stage.scene.hear('holdfast:renew:ok')
    const lease = await stage.holdfast[family](NAME).acquire()
    const [, arrive] = await stage.overtake('renew', () => more(renewed, NAME, 1))
    expect(await lease.release()).toBe('released')
    await arrive()
    expect(await stage.owner()).toBeUndefined()

    const again = await stage.holdfast[family](NAME).acquire()
    const [, arriveToo] = await stage.overtake('renew', () => more(renewed, NAME, 1))
    expect(await again.release()).toBe('released')
    const next = await stage.scene.holdfast()[family](NAME).acquire({ leaseTime: 500 })
    const before = await ttl(stage.scene, NAME)
    await arriveToo()
    expect(await ttl(stage.scene, NAME)).toBeLessThanOrEqual(before)
    await next.release()
  })

  test('a late renewal, and a late shorter extension, shorten nothing', async () => {
    await using stage = await Stage.open({ lockWatchdogTimeout: 1_800 })
    const renewed = stage.scene.hear('holdfast:renew:ok')
    const lease = await stage.holdfast[family](NAME).acquire()
    const [, arrive] = await stage.overtake('renew', () => more(renewed, NAME, 1))
    const [, arriveToo] = await stage.overtake('renew', () => lease.extend(20_000))
    await lease.extend(60_000)
    for (const late of [arrive, arriveToo]) {
      await late()
      expect(await ttl(stage.scene, NAME)).toBeGreaterThan(50_000)
    }
    expect(lease.remaining).toBeGreaterThan(50_000)
    expect(await lease.release()).toBe('released')
  })

  test('a late release spares the next lease of the same process', async () => {
    await using stage = await Stage.open()
    const lock = stage.holdfast[family](NAME)
    const lease = await lock.acquire()
    const [outcome, arrive] = await stage.overtake('release', () => lease.release())
    expect(outcome).toBe('released')
    expect(stage.proxy.count(sends('release'))).toBe(2)
    const next = await lock.acquire()
    await arrive()
    expect(next.held).toBe(true)
    expect(await stage.owner()).toBe(next.owner)
    expect(await next.release()).toBe('released')
    expect(await stage.owner()).toBeUndefined()
  })

  test('a late release with a minimum hold spares the next lease', async () => {
    await using stage = await Stage.open()
    const lock = stage.holdfast[family](NAME)
    const lease = await lock.acquire({ minHold: 400 })
    const [outcome, arrive] = await stage.overtake('release', () => lease.release())
    expect(outcome).toBe('released')
    const next = await lock.acquire()
    await arrive()
    expect(await stage.owner()).toBe(next.owner)
    expect(await ttl(stage.scene, NAME)).toBeGreaterThan(20_000)
  })
})

/** A lock that is held twice, and the inner hold. */
async function nest(stage: Stage): Promise<readonly [outer: Lease, inner: Lease]> {
  const lock = stage.holdfast.lock(NAME)
  const outer = await lock.acquire()
  return [outer, await lock.acquire({ within: outer })]
}

test('a late nested acquire does not keep the lock from being freed', async () => {
  await using stage = await Stage.open()
  const lock = stage.holdfast.lock(NAME)
  const outer = await lock.acquire()
  const [inner, arrive] = await stage.overtake('acquire', () => lock.acquire({ within: outer }))
  expect(await stage.count(outer.owner)).toBe('2')
  expect(await inner.release()).toBe('still-held')
  expect(await stage.count(outer.owner)).toBe('1')
  await arrive()
  expect(await outer.release()).toBe('released')
  expect(await stage.owner()).toBeUndefined()
})

test('a late nested acquire does not take the lock again', async () => {
  await using stage = await Stage.open()
  const lock = stage.holdfast.lock(NAME)
  const outer = await lock.acquire()
  const [inner, arrive] = await stage.overtake('acquire', () => lock.acquire({ within: outer }))
  await inner.release()
  expect(await outer.release()).toBe('released')
  await arrive()
  expect(await stage.owner()).toBeUndefined()
})

test('a late leave does not free a lock that was entered again', async () => {
  await using stage = await Stage.open()
  const [outer, inner] = await nest(stage)
  const [outcome, arrive] = await stage.overtake('leave', () => inner.release())
  expect(outcome).toBe('still-held')
  expect(await stage.count(outer.owner)).toBe('1')
  const again = await stage.holdfast.lock(NAME).acquire({ within: outer })
  await arrive()
  expect(await again.release()).toBe('still-held')
  expect(outer.held).toBe(true)
  expect(await stage.owner()).toBe(outer.owner)
  expect(await outer.release()).toBe('released')
  expect(await stage.owner()).toBeUndefined()
})

test('a late leave spares the next owner', async () => {
  await using stage = await Stage.open()
  const [outer, inner] = await nest(stage)
  const [, arrive] = await stage.overtake('leave', () => inner.release())
  await outer.release()
  const [next] = await nest(stage)
  await arrive()
  expect(await stage.count(next.owner)).toBe('2')
})
