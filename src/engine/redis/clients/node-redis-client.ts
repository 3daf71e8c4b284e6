import { hasMethods } from './shape.js'

/** The options of a node-redis client that matter here. */
export interface NodeRedisOptions {
  readonly RESP?: number | undefined
  readonly keyPrefix?: string | undefined
  readonly database?: number | undefined
  readonly socket?: object | undefined
  readonly maintNotifications?: string | undefined
}

/** How commands are sent: without the type mapping of the user's client, so that texts are strings and integers numbers. */
export interface SendOptions {
  readonly typeMapping: undefined
  /** 0: no time-out of the client's own. */
  readonly timeout?: number
  /** Takes commands back that are not written yet. */
  readonly abortSignal?: AbortSignal
}

interface Shared {
  readonly isOpen: boolean
  /** Clusters of version 5 and pools have none. */
  readonly isReady?: boolean | undefined
  readonly _keyPrefix?: string | undefined
  readonly options?: NodeRedisOptions | undefined
  on(event: string | symbol, listener: (...args: never[]) => void): unknown
  off(event: string | symbol, listener: (...args: never[]) => void): unknown
}

/** What is used of a client of node-redis 5 or 6. */
export interface NodeRedisClient extends Shared {
  readonly isPubSubActive: boolean
  readonly socketEpoch?: number | undefined
  sendCommand(args: readonly string[], options: SendOptions): Promise<unknown>
  subscribe(channel: string, listener: MessageListener): Promise<unknown>
  unsubscribe(channel: string, listener: MessageListener): Promise<unknown>
  pSubscribe(pattern: string, listener: MessageListener): Promise<unknown>
  pUnsubscribe(pattern: string, listener: MessageListener): Promise<unknown>
  sSubscribe(channel: string, listener: MessageListener): Promise<unknown>
  sUnsubscribe(channel: string, listener: MessageListener): Promise<unknown>
  duplicate(overrides: object): NodeRedisClient
  connect(): Promise<unknown>
  destroy(): void
  unref(): void
}

/** Called with the payload, then the channel. */
export type MessageListener = (payload: string, channel: string) => void

/** What is used of a cluster client. */
export interface NodeRedisCluster extends Shared {
  readonly masters: readonly NodeRedisNode[]
  readonly slots: readonly ({ readonly master: NodeRedisNode } | undefined)[]
  readonly nodeByAddress: ReadonlyMap<string, NodeRedisNode>
  /** Internal to the library. */
  readonly _slots?: { rediscover?(startWith: object): Promise<unknown> } | undefined
  nodeClient(node: NodeRedisNode): NodeRedisClient | Promise<NodeRedisClient>
  sendCommand(
    firstKey: string | undefined,
    readOnly: boolean,
    args: readonly string[],
    options: SendOptions,
  ): Promise<unknown>
}

/** A node of a cluster. */
export interface NodeRedisNode {
  readonly address: string
  /** Where it is connected. */
  readonly client?:
    { readonly isReady?: boolean | undefined; readonly options?: object | undefined } | undefined
}

/** What is used of a Sentinel client. */
export interface NodeRedisSentinel extends Shared {
  /** Hands over the client of the primary. Internal to the library. */
  _execute?<T>(readOnly: boolean, task: (client: NodeRedisClient) => Promise<T>): Promise<T>
  getMasterNode(): unknown
  sendCommand(readOnly: boolean, args: readonly string[], options: SendOptions): Promise<unknown>
}

/** What is used of a pool. */
export interface NodeRedisPool extends Shared {
  execute<T>(task: (client: NodeRedisClient) => T): Promise<Awaited<T>>
  sendCommand(args: readonly string[], options: SendOptions): Promise<unknown>
}

/** Anything of node-redis that runs commands. */
export type AnyNodeRedis = NodeRedisClient | NodeRedisCluster | NodeRedisSentinel | NodeRedisPool

/** Whether something looks like a client, cluster, Sentinel client or pool of node-redis. */
export function isNodeRedis(client: object): client is AnyNodeRedis {
  return (
    'isOpen' in client &&
    typeof client.isOpen === 'boolean' &&
    hasMethods(client, ['sendCommand', 'connect', 'on', 'off'])
  )
}

/** Whether it is a cluster client. */
export function isCluster(client: AnyNodeRedis): client is NodeRedisCluster {
  return hasMethods(client, ['nodeClient'])
}

/** Whether it is a Sentinel client. */
export function isSentinel(client: AnyNodeRedis): client is NodeRedisSentinel {
  return hasMethods(client, ['getMasterNode'])
}

/** Whether it is a pool. */
export function isPool(client: AnyNodeRedis): client is NodeRedisPool {
  return hasMethods(client, ['execute']) && !hasMethods(client, ['nodeClient'])
}

/** Whether it is one plain client. */
export function isSingle(client: AnyNodeRedis): client is NodeRedisClient {
  return !isCluster(client) && !isSentinel(client) && !isPool(client)
}
