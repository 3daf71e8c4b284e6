/** The actors of the story: each with a connection and a Holdfast of its own. */
import type { Redis } from 'ioredis'
import { Holdfast } from '../src/index.js'
import { HoldfastLock } from './holdfast-lock.js'
import type { PlainLockOptions } from './plain-lock.js'
import type { Scene, StoryLock } from './scene.js'
import { connect, type Stage } from './stage.js'

export type Actor = 'A' | 'B' | 'C'

/** Makes an actor's lock. */
export type MakeLock = (scene: Scene, who: Actor, leaseMs: number) => StoryLock

interface Equipment {
  readonly redis: Redis
  readonly holdfast: Holdfast
}

const LOCK = 'story_lock'

export class Cast implements AsyncDisposable {
  readonly lockName = LOCK
  readonly key: string
  readonly looker: Redis
  readonly #stage: Stage
  readonly #actors: Readonly<Record<Actor, Equipment>>

  private constructor(stage: Stage, actors: Readonly<Record<Actor, Equipment>>) {
    this.#stage = stage
    this.key = stage.keyPrefix + LOCK
    this.looker = stage.redis
    this.#actors = actors
  }

  static async gather(stage: Stage, watchdogMs: number): Promise<Cast> {
    async function equip(who: Actor): Promise<Equipment> {
      const redis = await connect(stage.url, who)
      const { keyPrefix } = stage
      return { redis, holdfast: new Holdfast(redis, { keyPrefix, lockWatchdogTimeout: watchdogMs }) }
    }
    const [A, B, C] = await Promise.all([equip('A'), equip('B'), equip('C')])
    return new Cast(stage, { A, B, C })
  }

  holdfast(who: Actor): Holdfast {
    return this.#actors[who].holdfast
  }

  redis(who: Actor): Redis {
    return this.#actors[who].redis
  }

  plain(Lock: new (options: PlainLockOptions) => StoryLock): MakeLock {
    const { looker, key } = this
    return (scene, who, leaseMs) => new Lock({ redis: this.redis(who), looker, scene, key, who, leaseMs })
  }

  /** Kept alive by the watchdog. */
  get renewed(): MakeLock {
    return (scene, who) => new HoldfastLock({ holdfast: this.holdfast(who), scene, name: LOCK, who })
  }

  /** Ends after its lease, as a late holder's has to. */
  get leased(): MakeLock {
    return (scene, who, leaseMs) =>
      new HoldfastLock({ holdfast: this.holdfast(who), scene, name: LOCK, who, leaseMs })
  }

  async tidyUp(): Promise<void> {
    await this.#stage.remove(LOCK)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const everybody = Object.values(this.#actors)
    await Promise.all(everybody.map(({ holdfast }) => holdfast.close({ drain: 0 })))
    for (const { redis } of everybody) redis.disconnect()
    await this.tidyUp()
  }
}
