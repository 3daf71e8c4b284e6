import { slotOf } from './slot.js'
import { openOwn, OWN_LINK, type IoredisClient } from './ioredis-client.js'
import type { LaneLink, LaneSource } from './lanes.js'
import type { Places, RawReply, Readiness, ScriptCall } from './port.js'
import { normalise } from './replies.js'

/** Where keys and channels are, as the client knows. */
export function ioredisPlaces(client: IoredisClient): Places {
  return {
    addressOf: (key) => addressOf(client, key),
    refresh: () => {
      client.refreshSlotsCache?.()
    },
  }
}

/** Makes connections with the settings of the user's client. */
export function ioredisLanes(client: IoredisClient, now: () => number): LaneSource {
  return { ...ioredisPlaces(client), open: (address) => new IoredisLane(client, address, now) }
}

/** The node of a cluster that has a key; the client itself where it is none. */
export function nodeFor(client: IoredisClient, key: string): IoredisClient {
  return client.nodes === undefined ? client : (nodeAt(client, addressOf(client, key)) ?? client)
}

/** The address of the primary that has a key, in a cluster. */
export function addressOf(client: IoredisClient, key: string): string {
  return client.slots?.[slotOf(key)]?.[0] ?? ''
}

/**
 * A connection of our own with the settings of the client, to a node of a cluster by its address. The cluster's own
 * connections to its nodes serve as patterns, since only they know what leads to a node (names, certificates).
 */
export function duplicateTo(client: IoredisClient, address: string, link: object): IoredisClient {
  if (client.nodes === undefined) return client.duplicate(link)
  const node = nodeAt(client, address)
  if (node !== undefined) return node.duplicate({ ...link, readOnly: false })
  const [other] = client.nodes()
  if (other === undefined) throw new Error('No node of the cluster is known yet')
  const colon = address.lastIndexOf(':')
  const place = { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
  return other.duplicate({ ...link, ...place, readOnly: false })
}

function nodeAt(client: IoredisClient, address: string): IoredisClient | undefined {
  return client.nodes?.().find(({ options }) => options.key === address)
}

class IoredisLane implements LaneLink {
  readonly cluster: boolean
  readonly epoch = 0
  readonly now: () => number
  readonly ready: Promise<unknown>
  readonly #client: IoredisClient

  constructor(source: IoredisClient, address: string, now: () => number) {
    this.cluster = source.isCluster === true
    this.now = now
    this.#client = openTo(source, address)
    this.ready = openOwn(this.#client)
  }

  get readiness(): Readiness {
    return this.#client.status === 'ready' && this.#client.stream?.writable !== false ? 'ready' : 'closed'
  }

  evalsha({ script, keys, args }: ScriptCall): Promise<unknown> {
    return this.#client.evalsha(script.sha, keys.length, keys, args)
  }

  evaluate({ script, keys, args }: ScriptCall): Promise<unknown> {
    return this.#client.eval(script.source, keys.length, keys, args)
  }

  command([name = '', ...args]: readonly string[]): Promise<unknown> {
    return this.#client.call(name, ...args)
  }

  decode(reply: unknown): RawReply {
    return normalise(reply)
  }

  /** The next connection looks the primary up again. */
  onReadonly(): void {
    this.close()
  }

  close(): void {
    this.#client.disconnect()
  }
}

function openTo(client: IoredisClient, address: string): IoredisClient {
  const link = { ...OWN_LINK, stringNumbers: false, retryStrategy: null }
  const db = client.nodes === undefined ? { db: client.condition?.select ?? client.options.db ?? 0 } : {}
  return duplicateTo(client, address, { ...link, ...db })
}
