import { errorMonitor } from 'node:events'
import type { AnyNodeRedis, MessageListener, NodeRedisClient } from './node-redis-client.js'
import { duplicateOf } from './node-redis-original.js'
import type { ChannelKind, SubscriberEvents, SubscriberPort } from './port.js'
import { ReadyWatch } from './ready-watch.js'
import { Subscriber, type LinkHandlers, type SubscriberLink } from './subscriber.js'

/** A subscriber over connections of our own (in a cluster to any node, or to one), with the settings of the user's client. */
export function nodeRedisSubscriber(
  client: AnyNodeRedis,
  events: SubscriberEvents,
  address?: string,
): SubscriberPort {
  return new Subscriber((handlers) => new OwnLink(client, handlers, address), events)
}

/** A subscriber over a client that the user keeps for messages. It is not closed. */
export function nodeRedisSubscriberFrom(client: NodeRedisClient, events: SubscriberEvents): SubscriberPort {
  const relay = new Relay()
  return new Subscriber((handlers) => new UsersLink(client, relay, handlers), events)
}

class OwnLink implements SubscriberLink {
  readonly ready: Promise<unknown>
  readonly #handlers: LinkHandlers
  readonly #listeners: Listeners
  #client: NodeRedisClient | undefined
  #lastError: unknown
  #closed = false

  constructor(source: AnyNodeRedis, handlers: LinkHandlers, address: string | undefined) {
    this.#handlers = handlers
    this.#listeners = new Listeners(() => handlers)
    this.ready = this.#open(source, address)
  }

  async subscribe(channel: string, kind: ChannelKind): Promise<void> {
    if (this.#client !== undefined) await subscribe(this.#client, this.#listeners.of(channel, kind))
  }

  async unsubscribe(channel: string, kind: ChannelKind): Promise<void> {
    // With the listener: without it, a subscription that is asked for meanwhile would be lost.
    if (this.#client?.isReady === true) await unsubscribe(this.#client, this.#listeners.of(channel, kind))
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

  async #open(source: AnyNodeRedis, address: string | undefined): Promise<void> {
    const client = await duplicateOf(source, address)
    if (this.#closed) throw new Error('The subscriber link was closed')
    this.#client = client
    client.on('error', (error: unknown) => {
      this.#lastError = error
    })
    await client.connect()
    client.on('error', this.#handlers.onDrop.bind(this.#handlers))
    client.on('end', () => {
      this.#handlers.onDrop(this.#lastError)
    })
  }
}

/** A channel or pattern with the listener that the client knows for it. */
interface Listening {
  readonly name: string
  readonly kind: ChannelKind
  readonly listener: MessageListener
}

/** One listener for all channels and one for each pattern, since the client does not tell patterns. */
class Listeners {
  readonly #target: () => LinkHandlers | undefined
  readonly #ofPattern = new Map<string, MessageListener>()

  constructor(target: () => LinkHandlers | undefined) {
    this.#target = target
  }

  of(name: string, kind: ChannelKind): Listening {
    return { name, kind, listener: kind === 'pattern' ? this.#forPattern(name) : this.#onMessage }
  }

  #forPattern(pattern: string): MessageListener {
    const listener =
      this.#ofPattern.get(pattern) ??
      ((payload: string, channel: string): void => {
        this.#target()?.onMessage(channel, payload, pattern)
      })
    this.#ofPattern.set(pattern, listener)
    return listener
  }

  readonly #onMessage = (payload: string, channel: string): void => {
    this.#target()?.onMessage(channel, payload)
  }
}

/** The listeners that the user's client knows. They are the same for all links, as the client keeps its listeners. */
class Relay {
  target: LinkHandlers | undefined
  readonly listeners: Listeners = new Listeners(() => this.target)
  readonly listening = new Map<string, Listening>()
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

  subscribe(channel: string, kind: ChannelKind): Promise<unknown> {
    const listening = this.#relay.listeners.of(channel, kind)
    this.#relay.listening.set(`${kind}:${channel}`, listening)
    return subscribe(this.#client, listening)
  }

  unsubscribe(channel: string, kind: ChannelKind): Promise<unknown> {
    this.#relay.listening.delete(`${kind}:${channel}`)
    return unsubscribe(this.#client, this.#relay.listeners.of(channel, kind))
  }

  close(): void {
    this.#closed = true
    this.#relay.target = undefined
    for (const event of DROP_EVENTS) this.#client.off(event, this.#onTrouble)
    if (this.#client.isReady !== true) return
    for (const { name, kind } of this.#relay.listening.values())
      this.unsubscribe(name, kind).catch(() => undefined)
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

function subscribe(client: NodeRedisClient, { name, kind, listener }: Listening): Promise<unknown> {
  switch (kind) {
    case 'channel':
      return client.subscribe(name, listener)
    case 'pattern':
      return client.pSubscribe(name, listener)
    case 'shard':
      return client.sSubscribe(name, listener)
  }
}

function unsubscribe(client: NodeRedisClient, { name, kind, listener }: Listening): Promise<unknown> {
  switch (kind) {
    case 'channel':
      return client.unsubscribe(name, listener)
    case 'pattern':
      return client.pUnsubscribe(name, listener)
    case 'shard':
      return client.sUnsubscribe(name, listener)
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
