import { hasMethods } from './shape.js'

/** The options of an ioredis client that matter here. */
export interface IoredisOptions {
  readonly keyPrefix?: unknown
  readonly db?: number | undefined
  readonly stringNumbers?: boolean | undefined
  readonly redisOptions?: IoredisOptions | undefined
  readonly host?: string | undefined
  /** The address of a node of a cluster. */
  readonly key?: string | undefined
  readonly path?: string | undefined
  readonly sentinels?: unknown
  readonly retryStrategy?: unknown
  readonly reconnectOnError?: unknown
  readonly autoResendUnfulfilledCommands?: boolean | undefined
}

/** What is used of an ioredis client, `Redis` or `Cluster`, of version 5 or 6. */
export interface IoredisClient {
  readonly status: string
  readonly options: IoredisOptions
  readonly isCluster?: boolean | undefined
  readonly mode?: string | undefined
  /** Counts the links. Private in the library's types. */
  readonly connectionEpoch?: number | undefined
  /** Set when the user closes the client. Private in the library's types. */
  readonly manuallyClosing?: boolean | undefined
  /** What the current link is set to. Private in the library's types. */
  readonly condition?: { readonly select?: number | undefined } | null | undefined
  readonly stream?:
    { readonly writable?: boolean; unref?(): unknown; cork?(): void; uncork?(): void } | undefined
  evalsha(sha: string, keyCount: number, keys: readonly string[], args: readonly string[]): Promise<unknown>
  evalshaBuffer(
    sha: string,
    keyCount: number,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown>
  eval(source: string, keyCount: number, keys: readonly string[], args: readonly string[]): Promise<unknown>
  evalBuffer(
    source: string,
    keyCount: number,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown>
  call(command: string, ...args: readonly string[]): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  psubscribe(pattern: string): Promise<unknown>
  punsubscribe(pattern: string): Promise<unknown>
  ssubscribe(channel: string): Promise<unknown>
  sunsubscribe(channel: string): Promise<unknown>
  connect(): Promise<unknown>
  disconnect(reconnect?: boolean): void
  duplicate(options: object): IoredisClient
  duplicate(startupNodes: readonly never[], options: object): IoredisClient
  /** Of a cluster. */
  nodes?(): readonly IoredisClient[]
  /** Of a cluster: the addresses that have each slot, the primary's first. */
  readonly slots?: readonly (readonly string[] | undefined)[] | undefined
  refreshSlotsCache?(): void
  on(event: string | symbol, listener: (...args: never[]) => void): unknown
  off(event: string | symbol, listener: (...args: never[]) => void): unknown
}

/** For connections of our own: nothing queued, nothing sent again, every promise settled when the link drops. */
export const OWN_LINK = {
  lazyConnect: true,
  keyPrefix: '',
  monitor: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
} as const

/** Opens a connection of our own, which does not keep the process alive. Rejects with what went wrong at last. */
export async function openOwn(client: IoredisClient): Promise<void> {
  let lastError: unknown
  client.on('error', (error: unknown) => {
    lastError = error
  })
  const unref = (): void => {
    client.stream?.unref?.()
  }
  // The socket is made a little later; an address that does not answer shall not keep the process alive.
  setImmediate(unref)
  try {
    await client.connect()
  } catch (error) {
    throw lastError ?? error
  }
  unref()
}

/** Whether something looks like a client of ioredis. */
export function isIoredis(client: object): client is IoredisClient {
  return (
    'status' in client &&
    typeof client.status === 'string' &&
    'options' in client &&
    typeof client.options === 'object' &&
    hasMethods(client, ['evalsha', 'eval', 'duplicate', 'on', 'off'])
  )
}
