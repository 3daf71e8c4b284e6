/** Locks as they are often written by hand, from single commands. Each lacks what the story says. */
import type { Redis } from 'ioredis'
import type { Scene, StoryLock } from './scene.js'

export interface PlainLockOptions {
  readonly redis: Redis
  /** Another connection, for what the actor itself does not ask. */
  readonly looker: Redis
  readonly scene: Scene
  readonly key: string
  readonly who: string
  readonly leaseMs: number
}

const TRY_EVERY_MS = 10
const COMPARE_AND_DELETE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end"

/** Frees whatever is there, late. */
export class BlindLock implements StoryLock {
  readonly who: string
  protected readonly options: PlainLockOptions

  constructor(options: PlainLockOptions) {
    this.who = options.who
    this.options = options
  }

  async take(): Promise<void> {
    const { scene, key, who, leaseMs, redis } = this.options
    for (let tries = 1; ; tries++) {
      scene.stop.throwIfAborted()
      const reply = await redis.set(key, who, 'PX', leaseMs, 'NX')
      const taken = reply === 'OK'
      const command = `SET ${key} ${who} NX PX ${leaseMs}`
      if (taken) scene.tell(who, command, tries === 1 ? 'OK' : `OK, at try ${tries}`)
      else if (tries === 1) scene.tell(who, command, `nil, tries again every ${TRY_EVERY_MS} ms`)
      if (taken) return
      await scene.pause(TRY_EVERY_MS)
    }
  }

  async give(pause?: () => Promise<void>): Promise<void> {
    await pause?.()
    await this.remove()
  }

  protected async remove(): Promise<void> {
    const { scene, key, who, redis, looker } = this.options
    const there = await looker.get(key)
    const removed = await redis.del(key)
    const whose = removed === 1 && there !== who ? `, and that was ${String(there)}'s lock` : ''
    scene.tell(who, `DEL ${key}`, `${removed}${whose}`)
  }
}

/** Looks before it frees, but in two steps. */
export class CheckingLock extends BlindLock {
  override async give(pause?: () => Promise<void>): Promise<void> {
    const { scene, key, who, redis } = this.options
    const there = await redis.get(key)
    scene.tell(who, `GET ${key}`, there ?? 'nil')
    if (there !== who) return
    await pause?.()
    await this.remove()
  }
}

/** Looks and frees in one step; nothing keeps it alive. */
export class UnrenewedLock extends BlindLock {
  protected override async remove(): Promise<void> {
    const { scene, key, who, redis } = this.options
    const removed = await redis.eval(COMPARE_AND_DELETE, 1, key, who)
    scene.tell(who, 'EVAL: DEL it if it is mine', removed === 1 ? '1' : '0, it was mine no longer')
  }
}
