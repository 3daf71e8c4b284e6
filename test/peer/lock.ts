/** Redisson's locks with one holder and no queue, in one Java thread. */
import type { Raw } from '../support/raw.js'
import { LATCH_TTL, maybeNumber, prefixed, run, WATCHDOG_TIMEOUT } from './wire.js'

const TRY_ACQUIRE = `
local free = redis.call('EXISTS', KEYS[1]) == 0
local mine = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
if not free and not mine then return redis.call('PTTL', KEYS[1]) end
redis.call('HINCRBY', KEYS[1], ARGV[2], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return false`

const TRY_ACQUIRE_ONCE_ONLY = `
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then return redis.error_reply(ARGV[3]) end
if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('PTTL', KEYS[1]) end
redis.call('HINCRBY', KEYS[1], ARGV[2], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return false`

const TRY_ACQUIRE_WITH_TOKEN = `
local free = redis.call('EXISTS', KEYS[1]) == 0
local mine = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
if not free and not mine then return {redis.call('PTTL', KEYS[1]), -1} end
local token = redis.call('INCR', KEYS[2])
redis.call('HINCRBY', KEYS[1], ARGV[2], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {-1, token}`

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
if ARGV[4] ~= '' then redis.call(ARGV[4], KEYS[2], ARGV[1]) end
redis.call('SET', KEYS[3], '1', 'PX', ARGV[5])
return 1`

const FORCE_UNLOCK = `
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
if ARGV[2] ~= '' then redis.call(ARGV[2], KEYS[2], ARGV[1]) end
return 1`

const RENEW = `
local held = {}
for i = 1, #KEYS do
  local mine = redis.call('HEXISTS', KEYS[i], ARGV[i + 1])
  if mine == 1 then redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
  held[i] = mine
end
return held`

/** What an unlock may say about itself. */
export interface UnlockTerms {
  /** The TTL after a partial unlock. */
  readonly leaseMs?: number
  /** Leaves out the last step, as after a lost reply. */
  readonly keepLatch?: boolean
}

/** `getLock`: one Java thread on one lock name. */
export class PeerLock {
  readonly name: string
  /** `<client id>:<thread id>`. */
  readonly owner: string
  protected readonly raw: Raw
  /** Empty: nothing is told. */
  protected readonly publish: string = 'PUBLISH'

  constructor(raw: Raw, name: string, owner: string) {
    this.raw = raw
    this.name = name
    this.owner = owner
  }

  get channel(): string {
    return prefixed('redisson_lock__channel', this.name)
  }

  latch(requestId: string): string {
    return `${prefixed('redisson_unlock_latch', this.name)}:${requestId}`
  }

  /** Undefined: acquired. A number: held by somebody else, for so many milliseconds more (-1: for ever). */
  async tryAcquire(leaseMs: number = WATCHDOG_TIMEOUT): Promise<number | undefined> {
    const call = { script: TRY_ACQUIRE, keys: [this.name], args: [leaseMs, this.owner] }
    return maybeNumber(await run(this.raw, call))
  }

  /** One logical unlock: 1 released, 0 still held, undefined when the caller holds nothing. */
  async unlock(
    requestId: string,
    { leaseMs = WATCHDOG_TIMEOUT, keepLatch = false }: UnlockTerms = {},
  ): Promise<number | undefined> {
    const keys = [this.name, this.channel, this.latch(requestId)]
    const args = ['0', leaseMs, this.owner, this.publish, LATCH_TTL]
    const reply = await run(this.raw, { script: UNLOCK, keys, args })
    if (!keepLatch) await this.raw.command('DEL', this.latch(requestId))
    return maybeNumber(reply)
  }

  async forceUnlock(): Promise<boolean> {
    const keys = [this.name, this.channel]
    return (await run(this.raw, { script: FORCE_UNLOCK, keys, args: ['0', this.publish] })) === 1
  }

  /** The watchdog's step. */
  async renew(ttlMs: number = WATCHDOG_TIMEOUT): Promise<boolean> {
    const reply = await run(this.raw, { script: RENEW, keys: [this.name], args: [ttlMs, this.owner] })
    return Array.isArray(reply) && reply[0] === 1
  }

  async isLocked(): Promise<boolean> {
    return (await this.raw.command('EXISTS', this.name)) === 1
  }

  async isHeld(owner: string = this.owner): Promise<boolean> {
    return (await this.raw.command('HEXISTS', this.name, owner)) === 1
  }

  async holdCount(owner: string = this.owner): Promise<number> {
    return Number((await this.raw.command('HGET', this.name, owner)) ?? 0)
  }

  async remainingMs(): Promise<number> {
    return Number(await this.raw.command('PTTL', this.name))
  }
}

/** `getNonReentrantLock`. A second entry rejects with the text below. */
export class PeerNonReentrantLock extends PeerLock {
  static readonly refusal = 'NON_REENTRANT_REACQUIRE'

  override async tryAcquire(leaseMs: number = WATCHDOG_TIMEOUT): Promise<number | undefined> {
    const args = [leaseMs, this.owner, PeerNonReentrantLock.refusal]
    return maybeNumber(await run(this.raw, { script: TRY_ACQUIRE_ONCE_ONLY, keys: [this.name], args }))
  }
}

/** `getSpinLock`: nobody is told of anything. */
export class PeerSpinLock extends PeerLock {
  protected override readonly publish = ''
}

/** `getFencedLock`. */
export class PeerFencedLock extends PeerLock {
  get tokenKey(): string {
    return prefixed('redisson_lock_token', this.name)
  }

  /** [-1, token] when acquired, else [TTL, -1]. */
  async acquireWithToken(leaseMs: number = WATCHDOG_TIMEOUT): Promise<readonly [number, number]> {
    const call = {
      script: TRY_ACQUIRE_WITH_TOKEN,
      keys: [this.name, this.tokenKey],
      args: [leaseMs, this.owner],
    }
    const reply = await run(this.raw, call)
    const [ttl, token] = Array.isArray(reply) ? reply.map(Number) : []
    return [ttl ?? NaN, token ?? NaN]
  }

  /** Without looking at the token, which grows all the same. */
  override async tryAcquire(leaseMs: number = WATCHDOG_TIMEOUT): Promise<number | undefined> {
    const [ttl, token] = await this.acquireWithToken(leaseMs)
    return token > 0 ? undefined : ttl
  }

  /** The last one given out; 0: none. */
  async token(): Promise<number> {
    return Number((await this.raw.command('GET', this.tokenKey)) ?? 0)
  }

  /** Tokens begin anew, and nobody is told. */
  async delete(): Promise<void> {
    await this.raw.command('DEL', this.name, this.tokenKey)
  }
}
