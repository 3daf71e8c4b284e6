import { once } from 'node:events'
import type { Redis } from 'ioredis'

const FENCE = 'fence:of:the:test'

/** Every message that a server publishes. */
export class Listener {
  readonly #publisher: Redis
  readonly #subscriber: Redis
  readonly #events = new EventTarget()
  #arrived: string[] = []
  #fences = 0

  private constructor(publisher: Redis, subscriber: Redis) {
    this.#publisher = publisher
    this.#subscriber = subscriber
  }

  static async open(publisher: Redis): Promise<Listener> {
    const subscriber = publisher.duplicate()
    const listener = new Listener(publisher, subscriber)
    subscriber.on('pmessage', (_pattern, channel: string, payload: string) => {
      if (channel === FENCE) listener.#events.dispatchEvent(new Event(payload))
      else listener.#arrived.push(`${channel} ${payload}`)
    })
    await subscriber.psubscribe('*')
    return listener
  }

  /** The messages since the last call, complete: a message of our own is sent behind them. */
  async take(): Promise<readonly string[]> {
    this.#fences += 1
    const fence = String(this.#fences)
    const arrival = once(this.#events, fence)
    await this.#publisher.publish(FENCE, fence)
    await arrival
    const arrived = this.#arrived
    this.#arrived = []
    return arrived
  }

  close(): void {
    this.#subscriber.disconnect()
  }
}
