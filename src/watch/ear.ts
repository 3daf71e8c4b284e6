import type { Clock } from '../clock.js'
import type { DataTopic, Engine, News, Subscription } from '../engine/engine.js'

interface Listening {
  readonly subscription: Subscription
  live: boolean
}

/** What an ear tells. */
export interface EarEvents {
  onNews(news: News): void
  /** News may have been missed. */
  onGap(): void
  /** Nothing is told any more, until the next gap. */
  onDown(): void
}

/** Hears of writes to some keys, as far as the engine tells of them. */
export class Ear {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #events: EarEvents
  #listening: Listening[] = []

  constructor(engine: Engine, clock: Clock, events: EarEvents) {
    this.#engine = engine
    this.#clock = clock
    this.#events = events
  }

  /** Whether writes to all of the keys are told. */
  get live(): boolean {
    return this.#listening.length > 0 && this.#listening.every(({ live }) => live)
  }

  /** Listens anew. Resolves when it is known whether that worked, or after `limitMs`. */
  async open(topics: readonly DataTopic[], limitMs: number): Promise<void> {
    const before = this.#listening
    this.#listening = topics.map((topic) => this.#listen(topic))
    // After the new ones are there, so that what is subscribed stays so.
    for (const { subscription } of before) subscription.close()
    let cancel = (): void => undefined
    const late = new Promise<void>((resolve) => {
      const timer = this.#clock.setTimer(resolve, limitMs, false)
      cancel = () => {
        timer.cancel()
      }
    })
    await Promise.race([late, Promise.all(this.#listening.map(settle))])
    cancel()
  }

  /** Hears nothing any more. */
  close(): void {
    for (const { subscription } of this.#listening) subscription.close()
    this.#listening = []
  }

  #listen(topic: DataTopic): Listening {
    const entry: { live: boolean; subscription: Subscription | undefined } = {
      live: false,
      subscription: undefined,
    }
    const subscription = this.#engine.listenTo(topic, (news) => {
      if (news === 'resync') entry.live = true
      if (news === 'down') entry.live = false
      if (news === 'resync') this.#events.onGap()
      else if (news === 'down') this.#events.onDown()
      else this.#events.onNews(news)
    })
    return Object.assign(entry, { subscription })
  }
}

async function settle(listening: Listening): Promise<void> {
  if (await listening.subscription.live) listening.live = true
}
