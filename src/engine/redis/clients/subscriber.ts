import { systemClock, type Timer } from '../../../clock.js'
import { replyCode, subscriberClosed, toPortError } from './errors.js'
import type { ChannelKind, SubscriberEvents, SubscriberPort } from './port.js'

/** What a link tells its subscriber. */
export interface LinkHandlers {
  onMessage(channel: string, payload: string, pattern?: string): void
  /** The link is gone, once it was ready. It is not used any more. */
  onDrop(cause: unknown): void
}

/** One connection for messages, used until it breaks; it neither reconnects nor re-subscribes by itself. */
export interface SubscriberLink {
  /** Settles when the connection is open, or could not be opened. */
  readonly ready: Promise<unknown>
  subscribe(channel: string, kind: ChannelKind): Promise<unknown>
  unsubscribe(channel: string, kind: ChannelKind): Promise<unknown>
  /** Also while it is still being opened. Never throws. */
  close(): void
}

/** Starts opening a link. */
export type OpenLink = (handlers: LinkHandlers) => SubscriberLink

interface Wanted {
  readonly channel: string
  readonly kind: ChannelKind
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

/**
 * Keeps channels subscribed over links that come and go. The clients' own re-subscription is not used:
 * it leaves rejections unobserved, or keeps the link away because of a single refused channel.
 *
 * ```
 * idle ──subscribe──▶ opening ──▶ up ──drop──▶ down ──pause──▶ restoring ──▶ up + resync
 *                        └──────failed──────────▲ └───────────failed──────────┘
 * ```
 */
export class Subscriber implements SubscriberPort {
  readonly #openLink: OpenLink
  readonly #events: SubscriberEvents
  readonly #wanted = new Map<string, Wanted>()
  #link: SubscriberLink | undefined
  /** The link, or the last one: a user's client that is away keeps its channels. */
  #latest: SubscriberLink | undefined
  #opening: Promise<SubscriberLink> | undefined
  #down: { readonly cause: unknown } | undefined
  #pause: Timer | undefined
  #failures = 0
  #closed = false

  constructor(openLink: OpenLink, events: SubscriberEvents) {
    this.#openLink = openLink
    this.#events = events
  }

  async subscribe(channel: string, kind: ChannelKind = 'channel'): Promise<void> {
    if (this.#closed) throw subscriberClosed()
    const id = idOf(channel, kind)
    this.#wanted.set(id, { channel, kind })
    const link = await this.#current().catch(asPortError)
    // Unless it was given back meanwhile.
    if (!this.#wanted.has(id)) return
    try {
      await link.subscribe(channel, kind)
    } catch (error) {
      // Refused: forget it. After a failed link it stays wanted, and `onResync` tells when it is back.
      if (replyCode(error) !== undefined) this.#wanted.delete(id)
      else this.#goDown(error)
      return asPortError(error)
    }
  }

  async unsubscribe(channel: string, kind: ChannelKind = 'channel'): Promise<void> {
    this.#wanted.delete(idOf(channel, kind))
    try {
      await this.#latest?.unsubscribe(channel, kind)
    } catch {
      // The link broke, and the channel with it.
    }
  }

  close(): Promise<void> {
    this.#closed = true
    this.#wanted.clear()
    this.#pause?.cancel()
    this.#link?.close()
    this.#link = undefined
    return Promise.resolve()
  }

  /** The link, opened if need be; but not while a pause after a failure runs. */
  #current(): Promise<SubscriberLink> {
    if (this.#opening !== undefined) return this.#opening
    if (this.#link !== undefined) return Promise.resolve(this.#link)
    if (this.#pause !== undefined) return Promise.reject(toError(this.#down?.cause))
    const opening = this.#open()
    const over = (): void => {
      this.#opening = undefined
    }
    this.#opening = opening
    opening.then(over, over)
    return opening
  }

  async #open(): Promise<SubscriberLink> {
    try {
      const link = this.#openLink({
        onMessage: (channel, payload, pattern) => {
          this.#events.onMessage(channel, payload, pattern)
        },
        onDrop: (cause) => {
          if (this.#link === link) this.#fail(cause)
        },
      })
      this.#link = link
      this.#latest = link
      await link.ready
      if (this.#closed) throw subscriberClosed()
      return link
    } catch (cause) {
      if (this.#closed) throw subscriberClosed()
      this.#fail(cause)
      throw cause
    }
  }

  #fail(cause: unknown): void {
    this.#link?.close()
    this.#link = undefined
    this.#goDown(cause)
  }

  /** Tells it once, and tries again later. */
  #goDown(cause: unknown): void {
    if (this.#closed || this.#wanted.size === 0) return
    const news = this.#down === undefined
    this.#down = { cause }
    if (news) this.#events.onDown(cause)
    this.#restoreLater()
  }

  #restoreLater(): void {
    if (this.#pause !== undefined) return
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS)
    this.#failures += 1
    const restore = (): void => {
      this.#pause = undefined
      void this.#restore()
    }
    this.#pause = systemClock.setTimer(restore, pauseMs * (1 + Math.random() / 4), false)
  }

  async #restore(): Promise<void> {
    if (this.#wanted.size === 0) {
      this.#isUp()
      return
    }
    try {
      const link = await this.#current()
      await Promise.all(
        Array.from(this.#wanted.values(), ({ channel, kind }) => link.subscribe(channel, kind)),
      )
      if (this.#link !== link) return
    } catch (cause) {
      this.#goDown(cause)
      return
    }
    this.#isUp()
    this.#events.onResync()
  }

  #isUp(): void {
    this.#down = undefined
    this.#failures = 0
  }
}

function idOf(channel: string, kind: ChannelKind): string {
  return `${kind}:${channel}`
}

function asPortError(error: unknown): never {
  throw toPortError({ error, unbroken: false, cluster: false })
}

function toError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error('The subscriber link is down', { cause })
}
