import { errorMonitor } from 'node:events'
import { isCluster, isPool, isSingle } from './node-redis-client.js'
import type { AnyNodeRedis, NodeRedisClient } from './node-redis-client.js'
import { PortError, type SubscriberEvents, type SubscriberPort } from './port.js'
import { ReadyWatch } from './ready-watch.js'
import { Subscriber, type LinkHandlers, type SubscriberLink } from './subscriber.js'

/** A subscriber over connections of our own, with the settings of the user's client. */
export function nodeRedisSubscriber(client: AnyNodeRedis, events: SubscriberEvents): SubscriberPort {
  return new Subscriber((handlers) => new OwnLink(client, handlers), events)
}

/** A subscriber over a client that the user keeps for messages. It is not closed. */
export function nodeRedisSubscriberFrom(client: NodeRedisClient, events: SubscriberEvents): SubscriberPort {
  const relay = new Relay()
  return new Subscriber((handlers) => new UsersLink(client, relay, handlers), events)
}

/** Settings that would not do for a connection that only waits for messages. */
const OVERRIDES = {
  commandsQueueMaxLength: undefined,
  clientSideCache: undefined,
  emitInvalidate: false,
} as const

class OwnLink implements SubscriberLink {
  readonly ready: Promise<unknown>
  readonly #handlers: LinkHandlers
  #client: NodeRedisClient | undefined
  #lastError: unknown
  #closed = false

  constructor(source: AnyNodeRedis, handlers: LinkHandlers) {
    this.#handlers = handlers
    this.ready = this.#open(source)
  }

  async subscribe(channel: string): Promise<void> {
    await this.#client?.subscribe(channel, this.#onMessage)
  }

  async unsubscribe(channel: string): Promise<void> {
    // With the listener: without it, a subscription that is asked for meanwhile would be lost.
    if (this.#client?.isReady === true) await this.#client.unsubscribe(channel, this.#onMessage)
  }

  close(): void {
    this.#closed = true
    try {
      // Also after a failure: the library keeps a list of its clients.
      this.#client?.destroy()
    } catch {
      // Version 5 throws when it is closed already.
    }
  }

  async #open(source: AnyNodeRedis): Promise<void> {
    const original = await originalOf(source)
    if (this.#closed) throw new Error('The subscriber link was closed')
    const socket = { ...original.options?.socket, reconnectStrategy: false }
    const client = original.duplicate({ ...OVERRIDES, socket })
    this.#client = client
    client.on('error', (error: unknown) => {
      this.#lastError = error
    })
    client.unref()
    await client.connect()
    client.on('error', this.#handlers.onDrop.bind(this.#handlers))
    client.on('end', () => {
      this.#handlers.onDrop(this.#lastError)
    })
  }

  readonly #onMessage = (payload: string, channel: string): void => {
    this.#handlers.onMessage(channel, payload)
  }
}

/** The listener that the user's client knows. It is the same for all links, as the client keeps its listeners. */
class Relay {
  target: LinkHandlers | undefined
  readonly channels = new Set<string>()

  readonly onMessage = (payload: string, channel: string): void => {
    this.target?.onMessage(channel, payload)
  }
}

/** The user's own subscriber, which reconnects by itself: a link lasts from one connection loss to the next. */
class UsersLink implements SubscriberLink {
  readonly ready: Promise<unknown>
  readonly #client: NodeRedisClient
  readonly #relay: Relay
  readonly #handlers: LinkHandlers
  #closed = false

  constructor(client: NodeRedisClient, relay: Relay, handlers: LinkHandlers) {
    this.#client = client
    this.#relay = relay
    this.#handlers = handlers
    this.ready = this.#open()
  }

  subscribe(channel: string): Promise<unknown> {
    this.#relay.channels.add(channel)
    return this.#client.subscribe(channel, this.#relay.onMessage)
  }

  unsubscribe(channel: string): Promise<unknown> {
    this.#relay.channels.delete(channel)
    return this.#client.unsubscribe(channel, this.#relay.onMessage)
  }

  close(): void {
    this.#closed = true
    this.#relay.target = undefined
    for (const event of DROP_EVENTS) this.#client.off(event, this.#onTrouble)
    if (this.#client.isReady !== true) return
    for (const channel of this.#relay.channels) this.unsubscribe(channel).catch(() => undefined)
  }

  async #open(): Promise<void> {
    await whenSettled(this.#client)
    if (this.#closed || this.#client.isReady !== true) throw new Error('The subscriber client is closed')
    this.#relay.target = this.#handlers
    for (const event of DROP_EVENTS) this.#client.on(event, this.#onTrouble)
  }

  readonly #onTrouble = (cause: unknown): void => {
    if (this.#client.isReady === true) return
    this.#handlers.onDrop(cause ?? new Error('The link of the subscriber client is down'))
  }
}

const DROP_EVENTS = [errorMonitor, 'reconnecting', 'end']

/** Resolves when the client is connected, or closed. */
function whenSettled(client: NodeRedisClient): Promise<void> {
  const events = ['ready', 'end', errorMonitor]
  const watch = new ReadyWatch(
    () => !client.isOpen || client.isReady === true,
    (changed) => {
      for (const event of events) client.on(event, changed)
      return () => {
        for (const event of events) client.off(event, changed)
      }
    },
  )
  return new Promise((resolve) => watch.add(resolve))
}

/** The client whose settings are followed. In a cluster any master: every node delivers all messages. */
async function originalOf(source: AnyNodeRedis): Promise<NodeRedisClient> {
  if (isSingle(source)) return source
  if (isPool(source)) return source.execute((client) => client.duplicate({}))
  if (!isCluster(source)) throw new PortError(SENTINEL_HINT, { kind: 'refused', outcome: 'not-applied' })
  const node = source.masters[Math.floor(Math.random() * source.masters.length)]
  if (node === undefined) throw new Error('No node of the cluster is known yet')
  return source.nodeClient(node)
}

const SENTINEL_HINT =
  'A Sentinel client of node-redis has no connection to copy; give Holdfast a client for messages'
