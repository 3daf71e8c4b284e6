import { isCluster, isPool, isSentinel, type AnyNodeRedis } from './node-redis-client.js'
import type {
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisNode,
  NodeRedisSentinel,
} from './node-redis-client.js'
import { PortError } from './port.js'

/** Settings that would not do for a connection of our own. */
const OVERRIDES = { commandsQueueMaxLength: undefined, clientSideCache: undefined, emitInvalidate: false }

/**
 * A connection of our own with the user's settings, not connected yet, which does not keep the process alive and never
 * reconnects: in a cluster to any primary, unless one is asked for.
 */
export async function duplicateOf(source: AnyNodeRedis, address = ''): Promise<NodeRedisClient> {
  const original = await originalOf(source, address === '' ? undefined : address)
  const client = original.duplicate({ ...OVERRIDES, socket: socketTo(source, original, address) })
  client.unref()
  return client
}

/** The client whose settings a connection of our own follows. In a cluster any primary, unless one is asked for. */
async function originalOf(source: AnyNodeRedis, address: string | undefined): Promise<NodeRedisClient> {
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
function socketTo(source: AnyNodeRedis, original: NodeRedisClient, address: string): object {
  const socket = { ...original.options?.socket, reconnectStrategy: false }
  if (!isCluster(source) || address === '' || source.nodeByAddress.has(address)) return socket
  const colon = address.lastIndexOf(':')
  return { ...socket, host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}
