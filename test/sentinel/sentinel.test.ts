import { setTimeout as sleep } from 'node:timers/promises'
import { Redis as Redis6 } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { createSentinel as createSentinel6 } from 'redis'
import { createSentinel as createSentinel5 } from 'redis5'
import { Holdfast, type HoldfastOptions } from 'holdfast'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { countOf, inStep } from '../replication/stage.js'
import { eventually } from '../support/eventually.js'
import { PRIMARY_NAME, startWatched, type Watched } from '../support/sentinel.js'

const LONG_MS = 25_000
let servers: Watched
const clean: (() => unknown)[] = []

beforeAll(async () => {
  servers = await startWatched()
}, 60_000)
afterEach(async () => {
  for (const step of clean.splice(0)) await step()
})
afterAll(() => servers[Symbol.asyncDispose]())

interface Opened {
  readonly raw: object
  destroy(): unknown
}

const addresses = (): { host: string; port: number }[] =>
  servers.sentinels.map(({ port }) => ({ host: '127.0.0.1', port }))

function ioredis(Redis: typeof Redis6): Promise<Opened> {
  const client = new Redis({ sentinels: addresses(), name: PRIMARY_NAME, failoverDetector: true })
  client.on('error', () => undefined)
  return Promise.resolve({
    raw: client,
    destroy: () => {
      client.disconnect()
    },
  })
}

async function nodeRedis(createSentinel: typeof createSentinel6): Promise<Opened> {
  const client = createSentinel({ name: PRIMARY_NAME, sentinelRootNodes: addresses() })
  client.on('error', () => undefined)
  await client.connect()
  return { raw: client, destroy: () => client.destroy() }
}

const CLIENTS: Readonly<Record<string, () => Promise<Opened>>> = {
  'ioredis 5': () => ioredis(Redis5 as unknown as typeof Redis6),
  'ioredis 6': () => ioredis(Redis6),
  'node-redis 5': () => nodeRedis(createSentinel5 as unknown as typeof createSentinel6),
  'node-redis 6': () => nodeRedis(createSentinel6),
}

async function start(name: string, options?: HoldfastOptions): Promise<Holdfast> {
  const client = await (CLIENTS[name] as () => Promise<Opened>)()
  const holdfast = new Holdfast(client.raw, options)
  clean.push(
    () => holdfast.close({ drain: 0 }),
    () => client.destroy(),
  )
  return holdfast
}

describe.each(Object.keys(CLIENTS))('Sentinels over %s', (name) => {
  it('hands over by message, after the grant was confirmed by a replica', async () => {
    const [one, other] = [await start(name), await start(name)]
    const primary = await servers.primary()
    await inStep(primary)
    const before = await countOf(primary, 'wait')
    const lease = await one.lock('a').acquire()
    expect(await countOf(primary, 'wait')).toBeGreaterThan(before)
    const waiting = other.lock('a').acquire({ waitTime: 60_000, pollInterval: LONG_MS })
    const channel = 'redisson_lock__channel:{a}'
    await eventually(
      async () => ((await primary.send('PUBSUB', 'NUMSUB', channel)) as [string, number])[1] > 0,
      'a subscription',
    )
    const releasedAt = performance.now()
    expect(await lease.release()).toBe('released')
    const next = await waiting
    expect(performance.now() - releasedAt).toBeLessThan(LONG_MS / 2)
    await next.release()
  })

  it('a lease and who waits for it outlive a switch to another primary', async () => {
    const [one, other] = [await start(name, { lockWatchdogTimeout: 20_000 }), await start(name)]
    const lease = await one.lock('b').acquire()
    const waiting = other.lock('b').acquire({ waitTime: 60_000 })
    await sleep(200)
    const before = await servers.primary()
    // Refused for a while after the last switch.
    const switched = async (): Promise<boolean> => {
      await servers.sentinels[0]?.send('SENTINEL', 'FAILOVER', PRIMARY_NAME).catch(() => undefined)
      return (await servers.primary()) !== before
    }
    await eventually(switched, 'another primary')
    // Until then the old one takes writes that are thrown away: what no client and no lock can know.
    const demoted = async (): Promise<boolean> =>
      String(await before.send('INFO', 'replication')).includes('master_link_status:up')
    await eventually(demoted, 'the old primary following the new one', 60_000)
    // Calls find the new one.
    await one.lock('c').using({ waitTime: 60_000 }, () => undefined)
    expect(lease.held).toBe(true)
    const after = await servers.primary()
    expect(await after.send('HKEYS', 'b')).toEqual([lease.owner])
    await lease.release()
    const next = await waiting
    expect(await after.send('HKEYS', 'b')).toEqual([next.owner])
    await next.release()
  }, 90_000)
})
