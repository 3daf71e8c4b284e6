import { systemClock, type Timer } from '../../../clock.js'
import { PortError, type Places, type SubscriberEvents, type SubscriberPort } from './port.js'

/** What a sharded subscriber has of an adapter. */
export interface ShardSource extends Places {
  /** Opens a subscriber to a primary. */
  open(address: string, events: SubscriberEvents): SubscriberPort
}

/** How often it is looked whether slots have moved. */
const LOOK_MS = 5_000
/** The same while a channel is not heard: its primary may have been replaced. */
const LOOK_SOON_MS = 250

/** A node, and what is heard there. */
interface Place {
  readonly address: string
  readonly port: SubscriberPort
  readonly channels: Set<string>
  down: boolean
}

/**
 * Sharded channels: each is heard on the node that has its slot, and follows it. The server ends a subscription whose
 * slot moves away, and a primary that dies takes its own along, so that the places are looked at again and again.
 */
export class ShardedSubscriber implements SubscriberPort {
  readonly #source: ShardSource
  readonly #events: SubscriberEvents
  readonly #places = new Map<string, Place>()
  /** Where each wanted channel is heard; undefined: nowhere. */
  readonly #wanted = new Map<string, Place | undefined>()
  #timer: Timer | undefined
  /** The look that is planned is one of those that come soon. */
  #soon = false
  #closed = false

  constructor(source: ShardSource, events: SubscriberEvents) {
    this.#source = source
    this.#events = events
  }

  async subscribe(channel: string): Promise<void> {
    const place = this.#settle(channel)
    this.#lookLater()
    try {
      await place.port.subscribe(channel, 'shard')
    } catch (error) {
      // Refused, perhaps by a node that has the slot no more: whoever wants it asks again. A link comes back by itself.
      if (!(error instanceof PortError) || error.kind !== 'connection') this.#forget(channel)
      this.#source.refresh()
      throw error
    }
  }

  async unsubscribe(channel: string): Promise<void> {
    const place = this.#wanted.get(channel)
    this.#forget(channel)
    await place?.port.unsubscribe(channel, 'shard')
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    this.#wanted.clear()
    await Promise.all([...this.#places.values()].map(({ port }) => port.close()))
  }

  /** Notes the channel at the place that has its slot now. */
  #settle(channel: string): Place {
    const place = this.#at(this.#source.addressOf(channel))
    this.#forget(channel)
    this.#wanted.set(channel, place)
    place.channels.add(channel)
    return place
  }

  #forget(channel: string): void {
    this.#wanted.get(channel)?.channels.delete(channel)
    this.#wanted.delete(channel)
  }

  #at(address: string): Place {
    const known = this.#places.get(address)
    if (known !== undefined) return known
    const channels = new Set<string>()
    const port = this.#source.open(address, {
      onMessage: (channel, payload) => {
        this.#events.onMessage(channel, payload)
      },
      onDown: (cause) => {
        place.down = true
        this.#source.refresh()
        this.#events.onDown(cause, [...channels])
        this.#lookLater()
      },
      onResync: () => {
        place.down = false
        this.#events.onResync([...channels])
      },
    })
    const place: Place = { address, port, channels, down: false }
    this.#places.set(address, place)
    return place
  }

  #lookLater(): void {
    if (this.#closed || this.#wanted.size === 0) return
    const soon = this.#anyUnheard()
    // One that is planned is not put off: subscriptions may come quicker than looks.
    if (this.#timer !== undefined && (this.#soon || !soon)) return
    this.#timer?.cancel()
    this.#soon = soon
    const look = (): void => {
      this.#timer = undefined
      this.#look()
      this.#lookLater()
    }
    this.#timer = systemClock.setTimer(look, soon ? LOOK_SOON_MS : LOOK_MS, false)
  }

  #anyUnheard(): boolean {
    for (const place of this.#places.values()) if (place.down) return true
    for (const place of this.#wanted.values()) if (place === undefined) return true
    return false
  }

  #look(): void {
    if (this.#anyUnheard()) this.#source.refresh()
    for (const [channel, place] of this.#wanted) {
      const address = this.#source.addressOf(channel)
      if (address !== '' && address !== place?.address) void this.#move(channel, place)
    }
    for (const [address, { channels, port }] of this.#places) {
      if (channels.size > 0) continue
      this.#places.delete(address)
      void port.close()
    }
  }

  async #move(channel: string, from: Place | undefined): Promise<void> {
    const to = this.#settle(channel)
    void from?.port.unsubscribe(channel, 'shard')
    try {
      await to.port.subscribe(channel, 'shard')
      // What was published in between was heard nowhere.
      if (this.#wanted.get(channel) === to) this.#events.onResync([channel])
    } catch (error) {
      if (this.#wanted.get(channel) !== to) return
      to.channels.delete(channel)
      this.#wanted.set(channel, undefined)
      this.#source.refresh()
      this.#events.onDown(error, [channel])
    }
  }
}
