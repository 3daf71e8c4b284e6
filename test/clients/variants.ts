/** The client libraries and versions that every adapter test is run over. */
import { Redis as Redis6 } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { createClient as createClient6 } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { eventually } from '../support/eventually.js'

/** Settings that a test asks for, in no client's words. */
export interface Settings {
  readonly username?: string
  readonly password?: string
  readonly database?: number
  readonly resp?: 2 | 3
  readonly keyPrefix?: string
  /** The client gives up when the link drops. */
  readonly noReconnect?: boolean
  /** Replies in the most inconvenient form that the client's settings allow. */
  readonly oddReplies?: boolean
}

/** A client as tests use it, whatever library it is of. */
export interface OpenClient {
  readonly raw: unknown
  /** How often the link was established. */
  epoch(): number | undefined
  command(...words: string[]): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  connect(): Promise<unknown>
  listeners(event: string): number
  /** In good order. */
  quit(): Promise<unknown>
  destroy(): void
}

/** One library in one version. */
export interface Variant {
  readonly name: 'ioredis 5' | 'ioredis 6' | 'node-redis 5' | 'node-redis 6'
  readonly library: 'ioredis' | 'node-redis'
  /** For programs that tests write. */
  readonly module: string
  /** Commands in flight are sent again when the link is back. */
  readonly resends: boolean
  /** Takes commands in subscriber mode, with its default settings. */
  readonly mixesMessages: boolean
  /** The client before any connection attempt. */
  create(port: number, settings?: Settings): OpenClient
}

/** A client that is connected. */
export async function open(variant: Variant, port: number, settings: Settings = {}): Promise<OpenClient> {
  const client = variant.create(port, settings)
  await client.connect()
  return client
}

function ioredis(name: 'ioredis 5' | 'ioredis 6', module: string, Redis: typeof Redis6): Variant {
  const create = (port: number, settings: Settings = {}): OpenClient => {
    const { username, password, database, resp, keyPrefix, noReconnect, oddReplies } = settings
    const client = new Redis({
      port,
      host: '127.0.0.1',
      lazyConnect: true,
      ...(username !== undefined && { username, password: password ?? '' }),
      ...(database !== undefined && { db: database }),
      ...(resp !== undefined && { protocol: resp }),
      ...(keyPrefix !== undefined && { keyPrefix }),
      ...(noReconnect === true && { retryStrategy: null }),
      ...(oddReplies === true && { stringNumbers: true, enableAutoPipelining: true }),
    })
    client.on('error', () => undefined)
    return {
      raw: client,
      epoch: () => Reflect.get(client, 'connectionEpoch') as number | undefined,
      command: (...words) => client.call(...(words as [string, ...string[]])),
      subscribe: (channel) => client.subscribe(channel),
      connect: () => client.connect(),
      listeners: (event) => client.listenerCount(event),
      quit: () => client.quit(),
      destroy: () => {
        client.disconnect()
      },
    }
  }
  return { name, library: 'ioredis', module, resends: true, mixesMessages: name === 'ioredis 6', create }
}

function nodeRedis(
  name: 'node-redis 5' | 'node-redis 6',
  module: string,
  createClient: typeof createClient6,
): Variant {
  const create = (port: number, settings: Settings = {}): OpenClient => {
    const { username, password, database, resp, keyPrefix, noReconnect, oddReplies } = settings
    const client = createClient({
      socket: { port, host: '127.0.0.1', ...(noReconnect === true && { reconnectStrategy: false }) },
      ...(username !== undefined && { username, password: password ?? '' }),
      ...(database !== undefined && { database }),
      ...(resp !== undefined && { RESP: resp }),
      ...(keyPrefix !== undefined && { keyPrefix }),
      ...(oddReplies === true && { commandOptions: { typeMapping: { 36: Buffer, 58: String, 43: Buffer } } }),
    })
    client.on('error', () => undefined)
    return {
      raw: client,
      epoch: () => client.socketEpoch,
      command: (...words) => client.sendCommand(words),
      subscribe: (channel) => client.subscribe(channel, () => undefined),
      connect: () => client.connect(),
      listeners: (event) => client.listenerCount(event),
      quit: () => client.close(),
      destroy: () => {
        if (client.isOpen) client.destroy()
      },
    }
  }
  return {
    name,
    library: 'node-redis',
    module,
    resends: false,
    mixesMessages: name === 'node-redis 6',
    create,
  }
}

export const IOREDIS_5: Variant = ioredis('ioredis 5', 'ioredis5', Redis5 as unknown as typeof Redis6)
export const IOREDIS_6: Variant = ioredis('ioredis 6', 'ioredis', Redis6)
export const NODE_REDIS_5: Variant = nodeRedis(
  'node-redis 5',
  'redis5',
  createClient5 as unknown as typeof createClient6,
)
export const NODE_REDIS_6: Variant = nodeRedis('node-redis 6', 'redis', createClient6)

/** Waits until the client's link is up for the n-th time. */
export function untilEpoch(client: OpenClient, epoch: number): Promise<void> {
  return eventually(() => (client.epoch() ?? 0) >= epoch, `link number ${String(epoch)}`)
}
