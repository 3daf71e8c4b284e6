/** Redisson's plain semaphore: permits without owners. */
import type { Raw } from '../support/raw.js'
import { prefixed, run } from './wire.js'

const TRY_ACQUIRE = `
local value = redis.call('GET', KEYS[1])
if not value or tonumber(value) < tonumber(ARGV[1]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[1])
return 1`

const RELEASE = `
local value = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], value)
return false`

const RELEASE_IF_EXISTS = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local value = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call(ARGV[2], KEYS[2], value)
return 1`

const DRAIN = `
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
redis.call('SET', KEYS[1], 0)
return value`

// ARGV: permits, PUBLISH, TTL or nothing.
const TRY_SET = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[1])
else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3]) end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1`

const ADD = `
local value = tonumber(redis.call('GET', KEYS[1]) or 0) + tonumber(ARGV[1])
redis.call('SET', KEYS[1], value)
redis.call(ARGV[2], KEYS[2], value)
return false`

/** `getSemaphore`. */
export class PeerSemaphore {
  readonly name: string
  readonly #raw: Raw

  constructor(raw: Raw, name: string) {
    this.#raw = raw
    this.name = name
  }

  get channel(): string {
    return prefixed('redisson_sc', this.name)
  }

  async tryAcquire(permits = 1): Promise<boolean> {
    return (await run(this.#raw, { script: TRY_ACQUIRE, keys: [this.name], args: [permits] })) === 1
  }

  async release(permits = 1): Promise<void> {
    await this.#run(RELEASE, [permits, 'PUBLISH'])
  }

  async releaseIfExists(permits = 1): Promise<boolean> {
    return (await this.#run(RELEASE_IF_EXISTS, [permits, 'PUBLISH'])) === 1
  }

  /** How many there were. */
  async drain(): Promise<number> {
    return Number(await run(this.#raw, { script: DRAIN, keys: [this.name], args: [] }))
  }

  async available(): Promise<number> {
    return Number((await this.#raw.command('GET', this.name)) ?? 0)
  }

  async trySet(permits: number, ttlMs?: number): Promise<boolean> {
    return (await this.#run(TRY_SET, [permits, 'PUBLISH', ttlMs ?? ''])) === 1
  }

  async add(permits: number): Promise<void> {
    await this.#run(ADD, [permits, 'PUBLISH'])
  }

  /** Nobody is told. */
  async delete(): Promise<boolean> {
    return (await this.#raw.command('DEL', this.name)) === 1
  }

  #run(script: string, args: readonly (string | number)[]): ReturnType<typeof run> {
    return run(this.#raw, { script, keys: [this.name, this.channel], args })
  }
}
