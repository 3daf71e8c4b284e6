/** Renewal, group A: what the watchdog makes of the server's answers, and of none. */
import { expect, test } from 'vitest'
import type { Holdfast, Lease, LostEvent } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import type { Proxy } from '../support/proxy.js'
import { openScene, type Scene } from './scene.js'
import { about, more, OTHER, ttl } from './support/around.js'
import { answers, sends, teach } from './support/sent.js'

// The tests of this file run side by side and hear of each other: every one has names of its own.
const LEASE = 1_800

interface Outage {
  readonly outage: string
  /** Only for a client that rejects what gets no reply, where others send it again. */
  readonly rejects?: true
  readonly begin: (scene: Scene, proxy: Proxy) => Promise<unknown> | undefined
  readonly end: (scene: Scene, proxy: Proxy) => Promise<unknown>
}

const OUTAGES: readonly Outage[] = [
  {
    outage: 'held-back writes',
    begin: (scene) => scene.command('CLIENT', 'PAUSE', 60_000, 'WRITE'),
    end: (scene) => scene.command('CLIENT', 'UNPAUSE'),
  },
  {
    outage: 'BUSY replies',
    begin: async (scene) => {
      await scene.command('CONFIG', 'SET', 'busy-reply-threshold', 10)
      scene.server.send('EVAL', 'while true do end', 0).catch(() => undefined)
    },
    end: (scene) => scene.command('SCRIPT', 'KILL'),
  },
  {
    outage: 'READONLY replies',
    begin: (scene) => scene.command('REPLICAOF', '127.0.0.1', 1),
    end: (scene) => scene.command('REPLICAOF', 'NO', 'ONE'),
  },
  {
    outage: 'a broken link',
    begin: (_scene, proxy) => {
      proxy.refuse()
      proxy.cutAll()
      return undefined
    },
    end: (_scene, proxy) => proxy.accept(),
  },
  {
    outage: 'replies that get lost',
    rejects: true,
    begin: (_scene, proxy) => {
      proxy.dropReply(answers('renew'), 2)
      return undefined
    },
    end: () => Promise.resolve(),
  },
  {
    outage: 'revoked rights',
    begin: (scene) => scene.command('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
    end: (scene) => scene.command('ACL', 'SETUSER', 'default', '+@all'),
  },
]

async function outlives({ outage: name, rejects, begin, end }: Outage): Promise<void> {
  await using scene = await openScene()
  await teach(scene)
  const proxy = await scene.proxy()
  const failed = scene.hear('holdfast:renew:failed')
  const renewed = scene.hear('holdfast:renew:ok')
  const lost = scene.hear('holdfast:lost')
  const client =
    rejects === true
      ? await scene.nodeRedis(proxy.port)
      : scene.ioredis({ port: proxy.port, retryStrategy: () => 20 })
  const holdfast = scene.holdfast({ lockWatchdogTimeout: LEASE, commandTimeout: 150 }, client)
  const lease = await holdfast.lock(name).acquire()

  await begin(scene, proxy)
  await more(failed, name, 2)
  await end(scene, proxy)
  await more(renewed, name, 1)
  expect(await ttl(scene, name)).toBeGreaterThan(LEASE / 2)
  expect(lease.held).toBe(true)
  // And so it goes on.
  await more(renewed, name, 1)
  expect(about(lost, name)).toEqual([])
  expect(await lease.release()).toBe('released')
}

test.concurrent.each(OUTAGES)('fault 3: the watchdog outlives $outage', outlives)

test.concurrent('fault 4: after a loss the next lease of the same lock is renewed', async () => {
  await using scene = await openScene()
  const name = 'taken again'
  const renewed = scene.hear('holdfast:renew:ok')
  const lost = scene.hear('holdfast:lost')
  const lock = scene.holdfast({ lockWatchdogTimeout: 900 }).lock(name)
  const first = await lock.acquire()
  expect(first.held).toBe(true)
  await scene.command('DEL', name)
  await eventually(() => about(lost, name).length === 1, 'the loss is noticed')

  const second = await lock.acquire()
  // Nobody gives the first one back: what it left behind must not stand in the way of the second.
  expect(first.held).toBe(false)
  for (let times = 0; times < 9; times++) {
    await more(renewed, name, 1)
    expect(await ttl(scene, name)).toBeGreaterThan(0)
  }
  expect(about(renewed, name).every(({ owner }) => owner === second.owner)).toBe(true)
  expect(second.held).toBe(true)
  expect(about(lost, name)).toHaveLength(1)
})

interface Ours {
  readonly holdfast: Holdfast
  readonly lease: Lease
  readonly proxy: Proxy
  readonly losses: () => readonly LostEvent[]
  /** Another lock that is renewed, to count periods by. */
  readonly periods: (times: number) => Promise<void>
}

async function holdWithWitness(scene: Scene, family: 'lock' | 'mutex', name: string): Promise<Ours> {
  const proxy = await scene.proxy()
  const renewed = scene.hear('holdfast:renew:ok')
  const lost = scene.hear('holdfast:lost')
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 900 }, scene.ioredis({ port: proxy.port }))
  const witness = `witness of ${name}`
  await holdfast.lock(witness).acquire()
  const lease = await holdfast[family](name).acquire()
  expect(lease.held).toBe(true)
  const periods = (times: number): Promise<void> => more(renewed, witness, times)
  return { holdfast, lease, proxy, losses: () => about(lost, name), periods }
}

interface Instead {
  readonly what: string
  readonly family: 'lock' | 'mutex'
  readonly write: ((name: string) => readonly (string | number)[]) | undefined
}

const INSTEAD: readonly Instead[] = [
  { what: 'no key', family: 'lock', write: undefined },
  { what: "somebody else's key", family: 'lock', write: (name) => ['HSET', name, OTHER, 1] },
  { what: 'another type of key', family: 'lock', write: (name) => ['SET', name, 'a value'] },
  { what: 'no key', family: 'mutex', write: undefined },
  { what: "somebody else's key", family: 'mutex', write: (name) => ['SET', name, 'another token'] },
  { what: 'another type of key', family: 'mutex', write: (name) => ['RPUSH', name, 'a'] },
]

test.concurrent.each(INSTEAD)(
  'fault 7: renewal of a $family that finds $what stops and tells once',
  async ({ what, family, write }) => {
    await using scene = await openScene()
    const name = `${family}: ${what}`
    const { lease, proxy, losses, periods } = await holdWithWitness(scene, family, name)
    const { signal } = lease
    const aborts: unknown[] = []
    signal.addEventListener('abort', () => aborts.push(signal.reason))
    await periods(1)
    await scene.command('DEL', name)
    if (write !== undefined) await scene.command(...write(name))
    const before = proxy.count(sends('renew', name))
    const image = await scene.command('DUMP', name)

    await eventually(() => losses().length > 0, 'the loss is told')
    await periods(3)
    expect(proxy.count(sends('renew', name)) - before).toBeLessThanOrEqual(1)
    expect(losses()).toEqual([{ lock: name, owner: lease.owner, reason: 'stolen' }])
    expect(aborts).toEqual([expect.objectContaining({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })])
    expect(lease.held).toBe(false)
    expect(await lease.release()).toBe('stolen')
    expect(await scene.command('DUMP', name)).toEqual(image)
    expect(await ttl(scene, name)).toBe(write === undefined ? -2 : -1)
  },
)

test.concurrent.each(['lock', 'mutex'] as const)(
  'fault 8: renewal of a %s never takes it again',
  async (family) => {
    await using scene = await openScene()
    const name = `a ${family} with a gap`
    const { lease, losses, periods } = await holdWithWitness(scene, family, name)
    const other = scene.holdfast()[family](name)
    // Between two renewals the key runs out, and somebody else has it and gives it back.
    await periods(1)
    await scene.command('PEXPIRE', name, 1)
    await (await other.acquire({ pollInterval: 5 })).release()

    await eventually(() => losses().length > 0, 'the gap is told')
    expect(losses()).toEqual([{ lock: name, owner: lease.owner, reason: 'stolen' }])
    expect(await scene.command('EXISTS', name)).toBe(0)
    await periods(2)
    expect(await scene.command('EXISTS', name)).toBe(0)
    expect(await lease.release()).toBe('stolen')
  },
)

interface Silence {
  readonly silence: string
  readonly begin: (scene: Scene, proxy: Proxy) => void
  readonly end: (scene: Scene) => void
}

const SILENCES: readonly Silence[] = [
  {
    silence: 'a frozen server',
    begin: (scene) => scene.server.pause(),
    end: (scene) => scene.server.resume(),
  },
  {
    silence: 'a network that swallows all',
    begin: (_scene, proxy) => {
      proxy.blackHole()
    },
    end: () => undefined,
  },
]

test.concurrent.each(SILENCES)(
  'fault 9: with $silence the holder gives up before the server',
  async ({ silence: name, begin, end }) => {
    await using scene = await openScene()
    const proxy = await scene.proxy()
    const failed = scene.hear('holdfast:renew:failed')
    // Half of the lease is kept as a reserve, so that the order of both ends can be told on any machine.
    const options = { lockWatchdogTimeout: 1_800, clockDrift: 0.5, commandTimeout: 100 }
    const holdfast = scene.holdfast(options, scene.ioredis({ port: proxy.port }))
    const { signal } = await holdfast.lock(name).acquire()
    begin(scene, proxy)
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve)
    })
    end(scene)
    // Taken over by nobody yet, although no word came from the server since.
    expect(await scene.command('EXISTS', name)).toBe(1)
    expect(signal.reason).toMatchObject({ reason: 'expired' })
    // The softer warnings came before.
    expect(about(failed, name).length).toBeGreaterThan(0)
    expect(about(failed, name).every(({ slack }) => slack > 0)).toBe(true)
  },
)
