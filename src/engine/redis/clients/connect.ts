import { within } from './within.js'

/** A client that we made ourselves, and how to close it. */
export interface OwnClient {
  readonly client: object
  /** Never rejects. */
  close(): Promise<void>
}

interface IoredisModule {
  readonly Redis: new (
    url: string,
    options: { lazyConnect: boolean },
  ) => {
    connect(): Promise<void>
    ping(): Promise<unknown>
    on(event: 'error', listener: () => void): unknown
    disconnect(): void
  }
}

interface NodeRedisModule {
  createClient: (options: { url: string }) => {
    connect(): Promise<unknown>
    ping(): Promise<unknown>
    on(event: 'error', listener: () => void): unknown
    destroy(): void
  }
}

/** Connects with the client library that is installed (ioredis before node-redis). Resolves after PING, or rejects after `limitMs`. */
export async function connectTo(url: string, limitMs: number): Promise<OwnClient> {
  const ioredis = await optional<IoredisModule>('ioredis')
  if (ioredis !== undefined) return connectIoredis(ioredis, url, limitMs)
  const nodeRedis = await optional<NodeRedisModule>('redis')
  if (nodeRedis !== undefined) return connectNodeRedis(nodeRedis, url, limitMs)
  throw new TypeError("Holdfast.connect() needs the package 'ioredis' or 'redis': install one of them")
}

async function connectIoredis({ Redis }: IoredisModule, url: string, limitMs: number): Promise<OwnClient> {
  const client = new Redis(url, { lazyConnect: true })
  // Trouble shows in the calls; a missing listener must not end the process.
  client.on('error', () => undefined)
  try {
    await within(limitMs, open(client), true)
  } catch (error) {
    client.disconnect()
    throw error
  }
  const close = (): Promise<void> => {
    client.disconnect()
    return Promise.resolve()
  }
  return { client, close }
}

async function connectNodeRedis(
  { createClient }: NodeRedisModule,
  url: string,
  limitMs: number,
): Promise<OwnClient> {
  const client = createClient({ url })
  client.on('error', () => undefined)
  try {
    await within(limitMs, open(client), true)
  } catch (error) {
    destroy(client)
    throw error
  }
  const close = (): Promise<void> => {
    destroy(client)
    return Promise.resolve()
  }
  return { client, close }
}

async function open(client: { connect(): Promise<unknown>; ping(): Promise<unknown> }): Promise<void> {
  await client.connect()
  await client.ping()
}

function destroy(client: { destroy(): void }): void {
  try {
    client.destroy()
  } catch {
    // It was closed before.
  }
}

async function optional<T>(name: string): Promise<T | undefined> {
  try {
    return (await import(name)) as T
  } catch (error) {
    if (error instanceof Error && /MODULE_NOT_FOUND/.test(String((error as { code?: unknown }).code)))
      return undefined
    throw error
  }
}
