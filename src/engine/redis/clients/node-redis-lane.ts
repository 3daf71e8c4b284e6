import { slotOf } from './slot.js'
import type { LaneLink, LaneSource } from './lanes.js'
import { isCluster, type AnyNodeRedis, type NodeRedisClient } from './node-redis-client.js'
import { duplicateOf } from './node-redis-original.js'
import { refreshTopology } from './node-redis-topology.js'
import type { Places, RawReply, Readiness, ScriptCall } from './port.js'
import { normalise } from './replies.js'

const AS_IT_IS = { typeMapping: undefined, timeout: 0 } as const

/** Where keys and channels are, as the client knows. */
export function nodeRedisPlaces(client: AnyNodeRedis): Places {
  return {
    addressOf: (key) => addressOf(client, key),
    refresh: () => {
      if (isCluster(client)) refreshTopology(client)
    },
  }
}

/** Makes connections with the settings of the user's client. */
export function nodeRedisLanes(client: AnyNodeRedis, now: () => number): LaneSource {
  return { ...nodeRedisPlaces(client), open: (address) => new NodeRedisLane(client, address, now) }
}

/** The address of the primary that has a key, in a cluster; empty anywhere else. */
export function addressOf(client: AnyNodeRedis, key: string): string {
  return isCluster(client) ? (client.slots[slotOf(key)]?.master.address ?? '') : ''
}

class NodeRedisLane implements LaneLink {
  readonly cluster: boolean
  readonly epoch = 0
  readonly now: () => number
  readonly ready: Promise<unknown>
  #client: NodeRedisClient | undefined
  #closed = false

  constructor(source: AnyNodeRedis, address: string, now: () => number) {
    this.cluster = isCluster(source)
    this.now = now
    this.ready = this.#open(source, address)
  }

  get readiness(): Readiness {
    return this.#client?.isReady === true ? 'ready' : 'closed'
  }

  evalsha({ script, keys, args }: ScriptCall): Promise<unknown> {
    return this.command(['EVALSHA', script.sha, String(keys.length), ...keys, ...args])
  }

  evaluate({ script, keys, args }: ScriptCall): Promise<unknown> {
    return this.command(['EVAL', script.source, String(keys.length), ...keys, ...args])
  }

  command(args: readonly string[]): Promise<unknown> {
    if (this.#client === undefined) throw new Error('The client is offline')
    return this.#client.sendCommand(args, AS_IT_IS)
  }

  decode(reply: unknown): RawReply {
    return normalise(reply)
  }

  /** The next connection looks the primary up again. */
  onReadonly(): void {
    this.close()
  }

  close(): void {
    this.#closed = true
    try {
      this.#client?.destroy()
    } catch {
      // Version 5 throws when it is closed already.
    }
  }

  async #open(source: AnyNodeRedis, address: string): Promise<void> {
    const client = await duplicateOf(source, address)
    if (this.#closed) throw new Error('The connection was closed')
    this.#client = client
    client.on('error', () => undefined)
    await client.connect()
  }
}
