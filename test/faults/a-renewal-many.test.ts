/** Renewal, group A: many locks at once, odd servers, and trouble without end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Holdfast, Lease } from '../../src/index.js'
import { openScene, type Scene } from './scene.js'
import { more } from './support/around.js'
import { keysOf, sends, teach } from './support/sent.js'

function acquireAll(holdfast: Holdfast, names: readonly string[]): Promise<readonly Lease[]> {
  return Promise.all(names.map((name) => holdfast.lock(name).acquire()))
}

function names(count: number, end = ''): readonly string[] {
  return Array.from({ length: count }, (_, index) => `name:${index}${end}`)
}

const SHORTEST_TTL = `
local shortest = math.huge
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  shortest = math.min(shortest, redis.call('PTTL', key))
end
return shortest`

/** The shortest rest of all locks. */
async function shortestTtl(scene: Scene): Promise<number> {
  return Number(await scene.command('EVAL', SHORTEST_TTL, 0, 'name:*'))
}

test('fault 13: two thousand locks are renewed in time by few commands', async () => {
  await using scene = await openScene()
  await teach(scene)
  const proxy = await scene.proxy()
  const renewed = scene.hear('holdfast:renew:ok')
  const lost = scene.hear('holdfast:lost')
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 1_500 }, scene.ioredis({ port: proxy.port }))
  const leases = await acquireAll(holdfast, names(2_000))
  for (let period = 0; period < 4; period++) {
    await more(renewed, 'name:1999', 1)
    expect(await shortestTtl(scene)).toBeGreaterThan(0)
  }
  expect(lost).toEqual([])
  expect(leases.every(({ held }) => held)).toBe(true)
  const batches = proxy.requests.filter(sends('renew')).map((request) => keysOf(request).length)
  expect(Math.max(...batches)).toBeLessThanOrEqual(100)
  // Twenty of them make one round; some rounds are split because the locks were taken one after the other.
  const keys = batches.reduce((sum, size) => sum + size, 0)
  expect(keys).toBeGreaterThanOrEqual(4 * 1_900)
  expect(keys / batches.length).toBeGreaterThan(25)
})

test('fault 14: renewal goes on behind a single address of a cluster', async () => {
  await using scene = await openScene(['--cluster-enabled', 'yes'])
  await scene.command('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
  await expect.poll(() => scene.command('CLUSTER', 'INFO'), { timeout: 15_000 }).toMatch(/state:ok/)
  const renewed = scene.hear('holdfast:renew:ok')
  const lost = scene.hear('holdfast:lost')
  for (const client of [scene.ioredis(), await scene.nodeRedis()]) {
    const holdfast = scene.holdfast({ lockWatchdogTimeout: 600 }, client)
    const leases = await acquireAll(holdfast, names(50))
    const before = renewed.length
    await more(renewed, 'name:49', 9)
    expect(lost).toEqual([])
    expect(leases.every(({ held }) => held)).toBe(true)
    expect(new Set(renewed.slice(before).map(({ lock }) => lock)).size).toBe(50)
    expect(await shortestTtl(scene)).toBeGreaterThan(0)
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => 'released'))
  }
})

/** The same trouble in every run. */
class Dice {
  #state = 20_240_229

  next(sides: number): number {
    this.#state = (Math.imul(this.#state, 1_103_515_245) + 12_345) >>> 0
    return (this.#state >>> 8) % sides
  }
}

/** Each is over within one renewal period. */
const TROUBLES: readonly ((scene: Scene) => Promise<unknown>)[] = [
  (scene) => scene.command('CLIENT', 'PAUSE', 200, 'WRITE'),
  (scene) => scene.command('CLIENT', 'PAUSE', 200, 'ALL'),
  (scene) => scene.command('DEBUG', 'SLEEP', 0.2),
  (scene) => scene.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
  (scene) => scene.command('CLIENT', 'KILL', 'TYPE', 'pubsub'),
  (scene) => scene.command('SCRIPT', 'FLUSH'),
  async (scene) => {
    scene.server.pause()
    await sleep(200)
    scene.server.resume()
  },
]

test('fault 16: no lock is lost in a soak of small troubles', async () => {
  await using scene = await openScene()
  const lost = scene.hear('holdfast:lost')
  const failed = scene.hear('holdfast:renew:failed')
  const renewed = scene.hear('holdfast:renew:ok')
  const options = { lockWatchdogTimeout: 2_000 }
  const holdfasts = [
    scene.holdfast(options),
    scene.holdfast(options, scene.ioredis()),
    scene.holdfast(options, await scene.nodeRedis()),
  ]
  const all: Lease[] = []
  for (const [index, holdfast] of holdfasts.entries()) {
    all.push(...(await acquireAll(holdfast, names(60, `:${index}`))))
    // So that there is always a renewal near.
    await sleep(220)
  }
  const dice = new Dice()
  const log: string[] = []
  while (log.length < 16) {
    const kind = dice.next(TROUBLES.length)
    await TROUBLES[kind]?.(scene)
    await sleep(dice.next(300))
    const slack = Math.min(...renewed.map((event) => event.slack))
    log.push(
      `${kind}: shortest TTL ${await shortestTtl(scene)}, least slack ${slack}, failed ${failed.length}`,
    )
    expect(lost, log.join('\n')).toEqual([])
  }
  // As long as a lease without any trouble: what went wrong unseen would come out.
  await more(renewed, 'name:59:0', 3)
  expect(await shortestTtl(scene), log.join('\n')).toBeGreaterThan(0)
  expect(renewed.length).toBeGreaterThan(180)
  expect(lost, log.join('\n')).toEqual([])
  expect(all.every(({ held }) => held)).toBe(true)
})
