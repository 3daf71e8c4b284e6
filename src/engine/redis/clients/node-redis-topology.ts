import { systemClock } from '../../../clock.js'
import type { NodeRedisCluster } from './node-redis-client.js'

const AT_MOST_EVERY_MS = 500

const lastAt = new WeakMap<NodeRedisCluster, number>()
const ignore = (): void => undefined

/**
 * Makes a cluster client ask again which node has which slots, by way of a node that answers. Version 5 never does so by
 * itself while a primary is dead (its commands wait for that one), version 6 after five seconds.
 */
export function refreshTopology(cluster: NodeRedisCluster): void {
  const nowMs = systemClock.now()
  if (nowMs - (lastAt.get(cluster) ?? -Infinity) < AT_MOST_EVERY_MS) return
  lastAt.set(cluster, nowMs)
  const alive = cluster.masters.find(({ client }) => client?.isReady === true)?.client
  if (alive !== undefined && cluster.isOpen) cluster._slots?.rediscover?.(alive).catch(ignore)
}
