import { openOwn, OWN_LINK, type IoredisClient } from './ioredis-client.js'
import { duplicateTo } from './ioredis-lane.js'
import type { ChannelKind, SubscriberEvents, SubscriberPort } from './port.js'
import { ReadyWatch } from './ready-watch.js'
import { Subscriber, type LinkHandlers, type SubscriberLink } from './subscriber.js'

const LINK = { ...OWN_LINK, retryStrategy: null }

/** A subscriber over connections of our own (in a cluster to any node, or to one), with the settings of the user's client. */
export function ioredisSubscriber(
  client: IoredisClient,
  events: SubscriberEvents,
  address?: string,
): SubscriberPort {
  const open = (): IoredisClient =>
    address === undefined ? sourceOf(client).duplicate(LINK) : duplicateTo(client, address, LINK)
  return new Subscriber((handlers) => new OwnLink(open(), handlers), events)
}

/** A subscriber over a client that the user keeps for messages. It is not closed. */
export function ioredisSubscriberFrom(client: IoredisClient, events: SubscriberEvents): SubscriberPort {
  return new Subscriber((handlers) => new UsersLink(client, handlers), events)
}

/** In a cluster every node delivers all messages, so that any will do; a fresh one is drawn for each link. */
function sourceOf(client: IoredisClient): IoredisClient {
  const nodes = client.nodes?.()
  if (nodes === undefined) return client
  const node = nodes[Math.floor(Math.random() * nodes.length)]
  if (node === undefined) throw new Error('No node of the cluster is known yet')
  return node
}

class OwnLink implements SubscriberLink {
  readonly ready: Promise<unknown>
  readonly #client: IoredisClient
  #lastError: unknown

  constructor(client: IoredisClient, handlers: LinkHandlers) {
    this.#client = client
    client.on('error', (error: unknown) => {
      this.#lastError = error
    })
    client.on('message', (channel: string, payload: string) => {
      handlers.onMessage(channel, payload)
    })
    client.on('smessage', (channel: string, payload: string) => {
      handlers.onMessage(channel, payload)
    })
    client.on('pmessage', (pattern: string, channel: string, payload: string) => {
      handlers.onMessage(channel, payload, pattern)
    })
    this.ready = this.#open(handlers)
  }

  subscribe(channel: string, kind: ChannelKind): Promise<unknown> {
    return subscribe(this.#client, channel, kind)
  }

  unsubscribe(channel: string, kind: ChannelKind): Promise<unknown> {
    return unsubscribe(this.#client, channel, kind)
  }

  close(): void {
    this.#client.disconnect()
  }

  async #open(handlers: LinkHandlers): Promise<void> {
    await openOwn(this.#client)
    this.#client.on('end', () => {
      handlers.onDrop(this.#lastError ?? new Error('The subscriber link was closed'))
    })
  }
}

/** The user's own subscriber, which reconnects by itself: a link lasts from one connection loss to the next. */
class UsersLink implements SubscriberLink {
  readonly ready: Promise<unknown>
  readonly #client: IoredisClient
  readonly #handlers: LinkHandlers
  readonly #channels = new Set<string>()
  readonly #patterns = new Set<string>()
  #closed = false

  constructor(client: IoredisClient, handlers: LinkHandlers) {
    this.#client = client
    this.#handlers = handlers
    this.ready = this.#open()
  }

  subscribe(channel: string, kind: ChannelKind): Promise<unknown> {
    this.#namesOf(kind).add(channel)
    return subscribe(this.#client, channel, kind)
  }

  unsubscribe(channel: string, kind: ChannelKind): Promise<unknown> {
    this.#namesOf(kind).delete(channel)
    return unsubscribe(this.#client, channel, kind)
  }

  close(): void {
    this.#closed = true
    this.#client.off('message', this.#onMessage)
    this.#client.off('pmessage', this.#onPatternMessage)
    this.#client.off('close', this.#onClose)
    if (this.#client.status !== 'ready') return
    for (const channel of this.#channels) this.#client.unsubscribe(channel).catch(() => undefined)
    for (const pattern of this.#patterns) this.#client.punsubscribe(pattern).catch(() => undefined)
  }

  #namesOf(kind: ChannelKind): Set<string> {
    return kind === 'channel' ? this.#channels : this.#patterns
  }

  async #open(): Promise<void> {
    await whenSettled(this.#client)
    if (this.#closed || this.#client.status !== 'ready') throw new Error('The subscriber client is closed')
    this.#client.on('message', this.#onMessage)
    this.#client.on('pmessage', this.#onPatternMessage)
    this.#client.on('close', this.#onClose)
  }

  readonly #onMessage = (channel: string, payload: string): void => {
    if (this.#channels.has(channel)) this.#handlers.onMessage(channel, payload)
  }

  readonly #onPatternMessage = (pattern: string, channel: string, payload: string): void => {
    if (this.#patterns.has(pattern)) this.#handlers.onMessage(channel, payload, pattern)
  }

  readonly #onClose = (): void => {
    this.#handlers.onDrop(new Error('The link of the subscriber client was closed'))
  }
}

function subscribe(client: IoredisClient, name: string, kind: ChannelKind): Promise<unknown> {
  switch (kind) {
    case 'channel':
      return client.subscribe(name)
    case 'pattern':
      return client.psubscribe(name)
    case 'shard':
      return client.ssubscribe(name)
  }
}

function unsubscribe(client: IoredisClient, name: string, kind: ChannelKind): Promise<unknown> {
  switch (kind) {
    case 'channel':
      return client.unsubscribe(name)
    case 'pattern':
      return client.punsubscribe(name)
    case 'shard':
      return client.sunsubscribe(name)
  }
}

/** Resolves when the client is connected, or closed for good. */
function whenSettled(client: IoredisClient): Promise<void> {
  if (client.status === 'wait') client.connect().catch(() => undefined)
  const events = ['ready', 'end']
  const watch = new ReadyWatch(
    () => events.includes(client.status),
    (changed) => {
      for (const event of events) client.on(event, changed)
      return () => {
        for (const event of events) client.off(event, changed)
      }
    },
  )
  return new Promise((resolve) => watch.add(resolve))
}
