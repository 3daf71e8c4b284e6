import { isCluster, isPool, isSentinel, type AnyNodeRedis } from './node-redis-client.js'
import type {
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisNode,
  NodeRedisSentinel,
} from './node-redis-client.js'
import { PortError } from './port.js'

/** The client whose settings a connection of our own follows. In a cluster any primary, unless one is asked for. */
export async function originalOf(source: AnyNodeRedis, address?: string): Promise<NodeRedisClient> {
  if (isCluster(source)) return source.nodeClient(nodeOf(source, address))
  if (isSentinel(source)) return primaryOf(source)
  return isPool(source) ? source.execute((client) => client.duplicate({})) : source
}

function nodeOf({ masters, nodeByAddress }: NodeRedisCluster, address: string | undefined): NodeRedisNode {
  const known = address === undefined ? undefined : nodeByAddress.get(address)
  const node = known ?? masters[Math.floor(Math.random() * masters.length)]
  if (node === undefined) throw new Error('No node of the cluster is known yet')
  return node
}

/** Asks the Sentinels anew, where the connection to the primary is gone. */
async function primaryOf(sentinel: NodeRedisSentinel): Promise<NodeRedisClient> {
  if (sentinel._execute === undefined)
    throw new PortError(SENTINEL_HINT, { kind: 'refused', outcome: 'not-applied' })
  // Wrapped: what a task resolves with must not be taken for a promise.
  const { client } = await sentinel._execute(false, (primary) => Promise.resolve({ client: primary }))
  return client
}

const SENTINEL_HINT =
  'This Sentinel client of node-redis has no connection to copy; give Holdfast a client for messages'

/** How a connection of our own gets where the original is, or to a node that the client does not know yet. It never reconnects by itself. */
export function socketTo(source: AnyNodeRedis, original: NodeRedisClient, address = ''): object {
  const socket = { ...original.options?.socket, reconnectStrategy: false }
  if (!isCluster(source) || address === '' || source.nodeByAddress.has(address)) return socket
  const colon = address.lastIndexOf(':')
  return { ...socket, host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}
