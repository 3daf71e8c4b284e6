/** Several independent servers, or engines, for locks over all of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { FREE } from '../../src/engine/model/state.js'
import { sharedStore } from '../../src/engine/memory/memory-store.js'
import { Holdfast, ManualClock, type HoldfastOptions } from '../../src/index.js'
import { open, type Variant } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { atEnd } from './world.js'

/** What is stored under a name on one server: owner → count. */
export type Counts = Readonly<Record<string, number>>

/** So many stores, and their time. */
export interface RedWorld {
  /** A Holdfast on each, as one process has them; closed when the test is finished. */
  process(options?: HoldfastOptions): Promise<readonly Holdfast[]>
  pass(ms: number): Promise<void>
  settled<T>(promise: Promise<T>): Promise<T>
  until(condition: () => boolean | Promise<boolean>, what: string): Promise<void>
  /** What each has under the name. */
  read(name: string): Promise<readonly (Counts | undefined)[]>
  /** Another process takes the lock there, whoever has it, and tells nobody. */
  take(place: number, name: string, owner: string): Promise<void>
  /** Removes the key there and tells nobody. */
  remove(place: number, name: string): Promise<void>
  readonly servers: readonly RedisServer[] | undefined
  end(): Promise<void>
}

const STEP_MS = 10
const GIVE_UP_MS = 300_000

/** Memory engines on one clock that the tests move. */
export function redMemoryWorld(size: number): Promise<RedWorld> {
  const clock = new ManualClock()
  const ids = Array.from({ length: size }, () => `red:${crypto.randomUUID()}`)
  const stores = ids.map((id) => sharedStore(id, clock))
  const until = async (condition: () => boolean | Promise<boolean>, what: string) => {
    const endMs = clock.now() + GIVE_UP_MS
    while (!(await condition())) {
      if (clock.now() > endMs) throw new Error(`never came true: ${what}`)
      await clock.advance(STEP_MS)
    }
  }
  const settled = async <T>(promise: Promise<T>): Promise<T> => {
    let open = true
    const done = () => {
      open = false
    }
    promise.then(done, done)
    await clock.advance(0)
    await until(() => !open, 'the promise settles')
    return promise
  }
  return Promise.resolve({
    process: async (options) => {
      const members = await Promise.all(
        ids.map((id) => Holdfast.connect(`memory:${id}`, { clock, ...options })),
      )
      for (const member of members) atEnd(() => settled(member.close({ drain: 0 })))
      return members
    },
    pass: (ms) => clock.advance(ms),
    settled,
    until,
    read: (name) =>
      Promise.resolve(
        stores.map((store) => {
          const { value } = store.read(name)
          return value?.kind === 'lock' ? Object.fromEntries(value.counts) : undefined
        }),
      ),
    take: (place, name, owner) => {
      const value = { kind: 'lock', counts: new Map([[owner, 1]]) } as const
      stores[place]?.write(name, { ...FREE, value, expiresAtMs: clock.now() + 60_000 })
      return Promise.resolve()
    },
    remove: (place, name) => {
      stores[place]?.write(name, FREE)
      return Promise.resolve()
    },
    servers: undefined,
    end: () => Promise.resolve(),
  })
}

/** Real servers, and a client library. */
export async function redServers(variant: Variant, size: number): Promise<RedWorld> {
  const servers = await Promise.all(Array.from({ length: size }, () => startRedis()))
  return {
    process: (options) =>
      Promise.all(
        servers.map(async ({ port }) => {
          const client = await open(variant, port)
          const holdfast = new Holdfast(client.raw as object, options)
          atEnd(async () => {
            await holdfast.close({ drain: 0 })
            client.destroy()
          })
          return holdfast
        }),
      ),
    pass: async (ms) => {
      await sleep(ms)
    },
    settled: (promise) => promise,
    until: eventually,
    read: (name) => Promise.all(servers.map((server) => countsOn(server, name))),
    take: async (place, name, owner) => {
      await servers[place]?.send('DEL', name)
      await servers[place]?.send('HSET', name, owner, 1)
      await servers[place]?.send('PEXPIRE', name, 60_000)
    },
    remove: async (place, name) => {
      await servers[place]?.send('DEL', name)
    },
    servers,
    end: async () => {
      await Promise.all(servers.map((server) => server.stop()))
    },
  }
}

async function countsOn(server: RedisServer, name: string): Promise<Counts | undefined> {
  const flat = await server.send('HGETALL', name)
  const words = Array.isArray(flat) ? flat.map(String) : []
  if (words.length === 0) return undefined
  return Object.fromEntries(words.flatMap((word, i) => (i % 2 === 0 ? [[word, Number(words[i + 1])]] : [])))
}
