import type { Clock, Timer } from '../../clock.js'
import type { Hint, Subscription } from '../engine.js'
import type { ChannelKind, SubscriberEvents, SubscriberPort } from './clients/port.js'

/** How long a channel stays subscribed after its last listener left, so that lively locks do not re-subscribe each time. */
const LINGER_MS = 500
/** How long a channel that could not be subscribed is left alone. */
const RETRY_MS = 1_000

/** Gets every hint; and with those that are messages, the message. */
export type Listener = (hint: Hint, message?: { readonly channel: string; readonly payload: string }) => void

interface Channel {
  readonly name: string
  readonly kind: ChannelKind
  readonly listeners: Set<Listener>
  live: Promise<boolean>
  failedAtMs: number | undefined
  linger: Timer | undefined
}

/**
 * The channels of one process on one subscriber link: shared, reference-counted, opened with the first
 * listener. A channel that cannot be subscribed never fails its listeners; they poll.
 */
export class Subscriptions {
  readonly #open: (events: SubscriberEvents) => SubscriberPort
  readonly #clock: Clock
  readonly #channels = new Map<string, Channel>()
  #port: SubscriberPort | undefined
  #closed = false

  constructor(open: (events: SubscriberEvents) => SubscriberPort, clock: Clock) {
    this.#open = open
    this.#clock = clock
  }

  /** How many channels are subscribed or being subscribed, lingering ones included. */
  get size(): number {
    return this.#channels.size
  }

  /** Adds a listener to a channel. */
  add(name: string, listener: Listener, kind: ChannelKind = 'channel'): Subscription {
    // Whoever comes too late must not open the link again.
    if (this.#closed) return { live: Promise.resolve(false), close: () => undefined }
    const channel = this.#channels.get(idOf(name, kind)) ?? this.#create(name, kind)
    channel.linger?.cancel()
    channel.linger = undefined
    channel.listeners.add(listener)
    if (channel.failedAtMs !== undefined && this.#clock.now() - channel.failedAtMs >= RETRY_MS)
      this.#subscribe(channel)
    let open = true
    const close = (): void => {
      if (open) this.#remove(channel, listener)
      open = false
    }
    return { live: channel.live, close }
  }

  /** Closes the link. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true
    for (const channel of this.#channels.values()) channel.linger?.cancel()
    this.#channels.clear()
    await this.#port?.close()
  }

  #create(name: string, kind: ChannelKind): Channel {
    const channel: Channel = {
      name,
      kind,
      listeners: new Set(),
      live: Promise.resolve(false),
      failedAtMs: undefined,
      linger: undefined,
    }
    this.#channels.set(idOf(name, kind), channel)
    this.#subscribe(channel)
    return channel
  }

  #subscribe(channel: Channel): void {
    channel.failedAtMs = undefined
    channel.live = this.#connect()
      .subscribe(channel.name, channel.kind)
      .then(
        () => true,
        () => {
          channel.failedAtMs = this.#clock.now()
          return false
        },
      )
  }

  #remove(channel: Channel, listener: Listener): void {
    channel.listeners.delete(listener)
    if (channel.listeners.size > 0 || this.#closed) return
    channel.linger = this.#clock.setTimer(
      () => {
        this.#channels.delete(idOf(channel.name, channel.kind))
        void this.#port?.unsubscribe(channel.name, channel.kind)
      },
      LINGER_MS,
      false,
    )
  }

  #connect(): SubscriberPort {
    this.#port ??= this.#open({
      onMessage: (name, payload, pattern) => {
        const id = pattern === undefined ? idOf(name, 'channel') : idOf(pattern, 'pattern')
        this.#tell(this.#channels.get(id), payload === '1' ? 'all' : 'one', { channel: name, payload })
      },
      onResync: (names) => {
        this.#resync(this.#of(names))
      },
      onDown: (_cause, names) => {
        this.#down(this.#of(names))
      },
    })
    return this.#port
  }

  /** The channels of these names; without names all. */
  #of(names: readonly string[] | undefined): readonly Channel[] {
    if (names === undefined) return [...this.#channels.values()]
    return names.flatMap((name) => this.#channels.get(idOf(name, 'channel')) ?? [])
  }

  #down(channels: readonly Channel[]): void {
    for (const channel of channels) {
      // For listeners that come meanwhile: a channel may outlive its link.
      channel.live = Promise.resolve(false)
      this.#tell(channel, 'down')
    }
  }

  #resync(channels: readonly Channel[]): void {
    for (const channel of channels) {
      if (channel.failedAtMs !== undefined) this.#retry(channel)
      else channel.live = Promise.resolve(true)
      this.#tell(channel, 'resync')
    }
  }

  #retry(channel: Channel): void {
    this.#subscribe(channel)
    void channel.live.then((live) => {
      if (live) this.#tell(channel, 'resync')
    })
  }

  #tell(channel: Channel | undefined, ...news: Parameters<Listener>): void {
    if (channel === undefined) return
    for (const listener of [...channel.listeners]) listener(...news)
  }
}

function idOf(name: string, kind: ChannelKind): string {
  return kind === 'pattern' ? `pattern ${name}` : name
}
