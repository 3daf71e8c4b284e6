import { setTimeout as sleep } from 'node:timers/promises'
import { Holdfast } from '../../src/index.js'
import { open, type OpenClient, type Variant } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { raw, type Raw } from '../support/raw.js'
import { startRedis } from '../support/server.js'
import { atEnd, closeLater, takenAs, type Stored, type World } from './world.js'

/** A real server and a client library. */
export async function redisWorld(variant: Variant): Promise<World> {
  const server = await startRedis()
  const link = await raw(server.port)
  const clients = new Map<Holdfast, OpenClient>()
  // In one step: nobody finds the key gone in between.
  const replace = async (key: string, ...commands: readonly (string | number)[][]): Promise<void> => {
    const steps = [['MULTI'], ['DEL', key], ...commands, ['EXEC']]
    await Promise.all(steps.map((words) => link.command(...words)))
  }
  const world: World = {
    server: {
      command: (...words) => link.command(...words),
      client: async () => {
        const client = await open(variant, server.port)
        atEnd(() => {
          client.destroy()
        })
        return client.raw as object
      },
      cut: (holdfast) => clients.get(holdfast)?.destroy(),
      again: (holdfast) => new Holdfast(clients.get(holdfast)?.raw as object),
    },
    holdfast: async (options) => {
      const client = await open(variant, server.port)
      const holdfast = closeLater(world, new Holdfast(client.raw as object, options), () => {
        client.destroy()
      })
      clients.set(holdfast, client)
      return holdfast
    },
    now: () => performance.now(),
    pass: async (ms) => {
      await sleep(ms)
    },
    until: eventually,
    settled: (promise) => promise,
    operations: async () => {
      const info = String(await link.command('INFO', 'commandstats'))
      const calls = [...info.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)]
      return calls.reduce((sum, [, count]) => sum + Number(count), 0)
    },
    read: (key) => read(link, key),
    storeData: (key, type) =>
      replace(key, type === 'list' ? ['RPUSH', key, 'theirs'] : ['HSET', key, 'item:42', '3']),
    take: (key, owner, { kind, ttlMs }) =>
      replace(key, written(key, takenAs(kind, owner)), ['PEXPIRE', key, ttlMs]),
    remove: async (key) => {
      await link.command('DEL', key)
    },
    persist: async (key) => {
      await link.command('PERSIST', key)
    },
    end: async () => {
      for (const client of clients.values()) client.destroy()
      await link[Symbol.asyncDispose]()
      await server.stop()
    },
  }
  return world
}

function written(key: string, value: unknown): (string | number)[] {
  if (typeof value === 'string') return ['SET', key, value]
  return ['HSET', key, ...Object.entries(value as Record<string, string | number>).flat()]
}

async function read(link: Raw, key: string): Promise<Stored | undefined> {
  const type = await link.command('TYPE', key)
  const ttlMs = Number(await link.command('PTTL', key))
  if (type === 'none' || ttlMs === -2) return undefined
  if (type === 'string') return { value: await link.command('GET', key), ttlMs }
  if (type === 'list') return { value: await link.command('LRANGE', key, 0, -1), ttlMs }
  return { value: pairs(await link.command('HGETALL', key)), ttlMs }
}

function pairs(flat: unknown): Record<string, unknown> {
  const words = Array.isArray(flat) ? flat.map(String) : []
  const entries = words.flatMap((field, i) => (i % 2 === 0 ? [[field, countOr(words[i + 1])] as const] : []))
  return Object.fromEntries(entries)
}

function countOr(value: string | undefined): unknown {
  return value !== undefined && /^\d+$/.test(value) ? Number(value) : value
}
