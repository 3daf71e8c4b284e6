/**
 * A stand-in for a Java program with Redisson: the steps of its plain lock, written from the description
 * of the wire (docs/protocol.md) and from nothing else. It must never use a script or a name of the library.
 */
import type { Raw } from './raw.js'

const TRY_ACQUIRE = `
local free = redis.call('EXISTS', KEYS[1]) == 0
local mine = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
if not free and not mine then return redis.call('PTTL', KEYS[1]) end
redis.call('HINCRBY', KEYS[1], ARGV[2], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return false`

const UNLOCK = `
local latch = redis.call('GET', KEYS[3])
if latch ~= false then return tonumber(latch) end
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return false end
local left = redis.call('HINCRBY', KEYS[1], ARGV[3], '-1')
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('SET', KEYS[3], '0', 'PX', ARGV[5])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[4], KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], '1', 'PX', ARGV[5])
return 1`

const FORCE_UNLOCK = `
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1`

const RENEW = `
local held = {}
for i = 1, #KEYS do
  local mine = redis.call('HEXISTS', KEYS[i], ARGV[i + 1])
  if mine == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
  held[i] = mine
end
return held`

const LATCH_TTL = 16_000
const WATCHDOG_TIMEOUT = 30_000

/** One Java thread on one lock name. */
export class PeerLock {
  readonly #raw: Raw
  readonly name: string
  /** `<client id>:<thread id>`. */
  readonly owner: string

  constructor(raw: Raw, name: string, owner: string) {
    this.#raw = raw
    this.name = name
    this.owner = owner
  }

  get channel(): string {
    return this.#derived('redisson_lock__channel')
  }

  latch(requestId: string): string {
    return `${this.#derived('redisson_unlock_latch')}:${requestId}`
  }

  /** Undefined: acquired. A number: held by somebody else, for so many milliseconds more (-1: for ever). */
  async tryAcquire(leaseMs: number = WATCHDOG_TIMEOUT): Promise<number | undefined> {
    const reply = await this.#raw.command('EVAL', TRY_ACQUIRE, 1, this.name, leaseMs, this.owner)
    return reply === null ? undefined : Number(reply)
  }

  /**
   * One logical unlock: 1 released, 0 still held, undefined when the caller holds nothing. `keepLatch`
   * leaves out the last step, as after a lost reply.
   */
  async unlock(
    requestId: string,
    { leaseMs = WATCHDOG_TIMEOUT, keepLatch = false } = {},
  ): Promise<number | undefined> {
    const keys = [this.name, this.channel, this.latch(requestId)]
    const args = ['0', leaseMs, this.owner, 'PUBLISH', LATCH_TTL]
    const reply = await this.#raw.command('EVAL', UNLOCK, keys.length, ...keys, ...args)
    if (!keepLatch) await this.#raw.command('DEL', this.latch(requestId))
    return reply === null ? undefined : Number(reply)
  }

  async forceUnlock(): Promise<boolean> {
    const reply = await this.#raw.command('EVAL', FORCE_UNLOCK, 2, this.name, this.channel, '0', 'PUBLISH')
    return reply === 1
  }

  /** The watchdog's step. */
  async renew(ttlMs: number = WATCHDOG_TIMEOUT): Promise<boolean> {
    const reply = await this.#raw.command('EVAL', RENEW, 1, this.name, ttlMs, this.owner)
    return Array.isArray(reply) && reply[0] === 1
  }

  async isLocked(): Promise<boolean> {
    return (await this.#raw.command('EXISTS', this.name)) === 1
  }

  async isHeld(owner: string = this.owner): Promise<boolean> {
    return (await this.#raw.command('HEXISTS', this.name, owner)) === 1
  }

  async holdCount(owner: string = this.owner): Promise<number> {
    return Number((await this.#raw.command('HGET', this.name, owner)) ?? 0)
  }

  async remainingMs(): Promise<number> {
    return Number(await this.#raw.command('PTTL', this.name))
  }

  #derived(prefix: string): string {
    return this.name.includes('{') ? `${prefix}:${this.name}` : `${prefix}:{${this.name}}`
  }
}
