/** Redisson's count-down latch. */
import type { Raw } from '../support/raw.js'
import { run } from './wire.js'

const TRY_SET_COUNT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], '1')
return 1`

const COUNT_DOWN = `
local count = redis.call('DECR', KEYS[1])
if count <= 0 then redis.call('DEL', KEYS[1]) end
if count == 0 then redis.call(ARGV[1], KEYS[2], '0') end
return false`

const DELETE = `
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call(ARGV[1], KEYS[2], '1')
return 1`

/** `getCountDownLatch`. */
export class PeerLatch {
  readonly name: string
  readonly #raw: Raw

  constructor(raw: Raw, name: string) {
    this.#raw = raw
    this.name = name
  }

  /** Always in braces, also around a name that has some. */
  get channel(): string {
    return `redisson_countdownlatch__channel__{${this.name}}`
  }

  async trySetCount(count: number): Promise<boolean> {
    return (await this.#run(TRY_SET_COUNT, [count, 'PUBLISH'])) === 1
  }

  async countDown(): Promise<void> {
    await this.#run(COUNT_DOWN, ['PUBLISH'])
  }

  async count(): Promise<number> {
    return Number((await this.#raw.command('GET', this.name)) ?? 0)
  }

  async delete(): Promise<boolean> {
    return (await this.#run(DELETE, ['PUBLISH'])) === 1
  }

  #run(script: string, args: readonly (string | number)[]): ReturnType<typeof run> {
    return run(this.#raw, { script, keys: [this.name, this.channel], args })
  }
}
