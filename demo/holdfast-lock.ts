/** Holdfast's lock in the story: the same steps, by its ordinary API. */
import type { Holdfast, Lease } from '../src/index.js'
import { shortOwner } from './page.js'
import type { Scene, StoryLock } from './scene.js'

export interface HoldfastLockOptions {
  readonly holdfast: Holdfast
  readonly scene: Scene
  readonly name: string
  readonly who: string
  /** Omitted: kept alive by the watchdog. */
  readonly leaseMs?: number | undefined
}

export class HoldfastLock implements StoryLock {
  readonly who: string
  readonly #options: HoldfastLockOptions
  #lease: Lease | undefined

  constructor(options: HoldfastLockOptions) {
    this.who = options.who
    this.#options = options
  }

  get lost(): AbortSignal | undefined {
    return this.#lease?.signal
  }

  async take(): Promise<void> {
    const { holdfast, scene, name, who, leaseMs } = this.#options
    const lock = holdfast.lock(name)
    const call = `lock.acquire(${leaseMs === undefined ? '' : `{ leaseTime: ${leaseMs} }`})`
    if (await lock.isLocked()) scene.tell(who, call, 'waits')
    const startedAt = performance.now()
    // The story can be stopped without stopping this: whoever has the lock stops, and frees it.
    this.#lease = await lock.acquire({ leaseTime: leaseMs })
    const tookMs = (performance.now() - startedAt).toFixed(1)
    scene.tell(who, call, `granted to ${shortOwner(this.#lease.owner)} after ${tookMs} ms`)
  }

  async give(pause?: () => Promise<void>): Promise<void> {
    const { scene, who } = this.#options
    const lease = this.#lease
    if (lease === undefined) throw new Error(`${who} has no lease`)
    if (pause !== undefined) {
      scene.tell(who, 'lease.held', String(lease.held))
      await pause()
      scene.tell(who, 'lease.held', String(lease.held))
    }
    scene.tell(who, 'lease.release()', `'${await lease.release()}'`)
  }
}
