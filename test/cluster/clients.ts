/** Cluster clients of every library and version. */
import { Cluster as Cluster6 } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis5'
import { createCluster as createCluster6 } from 'redis'
import { createCluster as createCluster5 } from 'redis5'
import { Holdfast, type HoldfastOptions } from 'holdfast'

/** A client that is connected. */
export interface ClusterClient {
  readonly raw: object
  destroy(): void
}

/** By the name of the library and its version. */
export const CLUSTER_CLIENTS: Readonly<Record<string, (port: number) => Promise<ClusterClient>>> = {
  'ioredis 5': (port) => ioredis(new Cluster5([{ host: '127.0.0.1', port }]) as unknown as Cluster6),
  'ioredis 6': (port) => ioredis(new Cluster6([{ host: '127.0.0.1', port }])),
  'node-redis 5': (port) => nodeRedis(createCluster5 as unknown as typeof createCluster6, port),
  'node-redis 6': (port) => nodeRedis(createCluster6, port),
}

function ioredis(client: Cluster6): Promise<ClusterClient> {
  client.on('error', () => undefined)
  const destroy = (): void => {
    client.disconnect()
  }
  return Promise.resolve({ raw: client, destroy })
}

async function nodeRedis(createCluster: typeof createCluster6, port: number): Promise<ClusterClient> {
  const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${String(port)}` }] })
  client.on('error', () => undefined)
  await client.connect()
  return {
    raw: client,
    destroy: () => {
      client.destroy()
    },
  }
}

/** A Holdfast over a client of its own. */
export interface Member extends AsyncDisposable {
  readonly holdfast: Holdfast
}

/** Connects. */
export async function member(name: string, port: number, options?: HoldfastOptions): Promise<Member> {
  const client = await (CLUSTER_CLIENTS[name] as (at: number) => Promise<ClusterClient>)(port)
  const holdfast = new Holdfast(client.raw, options)
  const dispose = async (): Promise<void> => {
    await holdfast.close({ drain: 0 })
    client.destroy()
  }
  return { holdfast, [Symbol.asyncDispose]: dispose }
}
