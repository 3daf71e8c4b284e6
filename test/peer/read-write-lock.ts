/** Redisson's read-write lock in one Java thread. */
import type { Raw } from '../support/raw.js'
import { LATCH_TTL, maybeNumber, prefixed, run, suffixed, WATCHDOG_TIMEOUT } from './wire.js'

// ARGV: lease, owner, writer. KEYS: lock, hold prefix.
const READ_ACQUIRE = `
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'read')
  redis.call('HSET', KEYS[1], ARGV[2], 1)
  redis.call('SET', KEYS[2] .. ':1', 1, 'PX', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
if mode == 'read' or redis.call('HEXISTS', KEYS[1], ARGV[3]) == 1 then
  local count = redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('SET', KEYS[2] .. ':' .. count, 1, 'PX', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[1])))
  return false
end
return redis.call('PTTL', KEYS[1])`

// ARGV: lease, writer.
const WRITE_ACQUIRE = `
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'write')
  redis.call('HSET', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return false
end
if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + tonumber(ARGV[1]))
  return false
end
return redis.call('PTTL', KEYS[1])`

// KEYS: lock, channel, hold prefix, key prefix, latch. ARGV: owner, PUBLISH, latch TTL.
const READ_UNLOCK = `
local latch = redis.call('GET', KEYS[5])
if latch then return tonumber(latch) end
local function done(value, reply)
  redis.call('SET', KEYS[5], value, 'PX', ARGV[3])
  return reply
end
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call(ARGV[2], KEYS[2], '0')
  return done('1', false)
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return false end
local count = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
if count == 0 then redis.call('HDEL', KEYS[1], ARGV[1]) end
redis.call('DEL', KEYS[3] .. ':' .. (count + 1))
if redis.call('HLEN', KEYS[1]) > 1 then
  local longest = -3
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    for hold = tonumber(all[i + 1]) or 0, 1, -1 do
      local key = KEYS[4] .. ':' .. all[i] .. ':rwlock_timeout:' .. hold
      longest = math.max(longest, redis.call('PTTL', key))
    end
  end
  if longest > 0 then
    redis.call('PEXPIRE', KEYS[1], longest)
    return done('0', 0)
  end
  if mode == 'write' then return done('0', 0) end
end
redis.call('DEL', KEYS[1])
redis.call(ARGV[2], KEYS[2], '0')
return done('1', 1)`

// KEYS: lock, channel, latch. ARGV: lease, writer, PUBLISH, latch TTL.
const WRITE_UNLOCK = `
local latch = redis.call('GET', KEYS[3])
if latch then return tonumber(latch) end
local function done(value, reply)
  redis.call('SET', KEYS[3], value, 'PX', ARGV[4])
  return reply
end
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
  redis.call(ARGV[3], KEYS[2], '1')
  return done('1', false)
end
if mode ~= 'write' or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return false end
if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return done('0', 0)
end
redis.call('HDEL', KEYS[1], ARGV[2])
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[3], KEYS[2], '1')
else
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
return done('1', 1)`

// ARGV: mode, payload, PUBLISH.
const FORCE_UNLOCK = `
if redis.call('HGET', KEYS[1], 'mode') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call(ARGV[3], KEYS[2], ARGV[2])
return 1`

// KEYS: lock, key prefix. ARGV: TTL, owner.
const RENEW_READ = `
local count = tonumber(redis.call('HGET', KEYS[1], ARGV[2]))
if not count then return 0 end
for hold = count, 1, -1 do
  redis.call('PEXPIRE', KEYS[2] .. ':' .. ARGV[2] .. ':rwlock_timeout:' .. hold, ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`

// ARGV: TTL, writer.
const RENEW_WRITE = `
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`

/** `getReadWriteLock`: both locks of one Java thread. */
export class PeerReadWriteLock {
  readonly name: string
  readonly owner: string
  readonly #raw: Raw

  constructor(raw: Raw, name: string, owner: string) {
    this.#raw = raw
    this.name = name
    this.owner = owner
  }

  get channel(): string {
    return prefixed('redisson_rwlock', this.name)
  }

  /** The field of the write lock's holder. */
  get writer(): string {
    return `${this.owner}:write`
  }

  /** The key of the i-th read hold. */
  holdKey(index: number, owner: string = this.owner): string {
    return `${suffixed(this.name, owner)}:rwlock_timeout:${index}`
  }

  latch(requestId: string): string {
    return `${prefixed('redisson_unlock_latch', this.name)}:${requestId}`
  }

  /** Undefined: acquired; else the holder's TTL. */
  async read(leaseMs: number = WATCHDOG_TIMEOUT): Promise<number | undefined> {
    const keys = [this.name, this.#holds]
    return maybeNumber(
      await run(this.#raw, { script: READ_ACQUIRE, keys, args: [leaseMs, this.owner, this.writer] }),
    )
  }

  /** Undefined: acquired; else the holder's TTL. */
  async write(leaseMs: number = WATCHDOG_TIMEOUT): Promise<number | undefined> {
    const call = { script: WRITE_ACQUIRE, keys: [this.name], args: [leaseMs, this.writer] }
    return maybeNumber(await run(this.#raw, call))
  }

  /** 1 the lock is free, 0 it is still held, undefined nothing was held. */
  unlockRead(requestId: string): Promise<number | undefined> {
    const keys = [this.name, this.channel, this.#holds, this.#keyPrefix, this.latch(requestId)]
    return this.#unlock(requestId, READ_UNLOCK, keys, [this.owner, 'PUBLISH', LATCH_TTL])
  }

  /** 1 this write lock is free, 0 it is still held, undefined nothing was held. */
  unlockWrite(requestId: string, leaseMs: number = WATCHDOG_TIMEOUT): Promise<number | undefined> {
    const keys = [this.name, this.channel, this.latch(requestId)]
    return this.#unlock(requestId, WRITE_UNLOCK, keys, [leaseMs, this.writer, 'PUBLISH', LATCH_TTL])
  }

  forceUnlock(mode: 'read' | 'write'): Promise<boolean> {
    const args = [mode, mode === 'read' ? '0' : '1', 'PUBLISH']
    return this.#did({ script: FORCE_UNLOCK, keys: [this.name, this.channel], args })
  }

  /** The watchdog's step for the read holds of this owner. */
  renewRead(ttlMs: number = WATCHDOG_TIMEOUT): Promise<boolean> {
    return this.#did({ script: RENEW_READ, keys: [this.name, this.#keyPrefix], args: [ttlMs, this.owner] })
  }

  /** The watchdog's step for the write hold of this owner. */
  renewWrite(ttlMs: number = WATCHDOG_TIMEOUT): Promise<boolean> {
    return this.#did({ script: RENEW_WRITE, keys: [this.name], args: [ttlMs, this.writer] })
  }

  get #holds(): string {
    return `${suffixed(this.name, this.owner)}:rwlock_timeout`
  }

  get #keyPrefix(): string {
    return this.name.includes('{') ? this.name : `{${this.name}}`
  }

  async #did(call: Parameters<typeof run>[1]): Promise<boolean> {
    return (await run(this.#raw, call)) === 1
  }

  async #unlock(
    requestId: string,
    script: string,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<number | undefined> {
    const reply = await run(this.#raw, { script, keys, args })
    await this.#raw.command('DEL', this.latch(requestId))
    return maybeNumber(reply)
  }
}
