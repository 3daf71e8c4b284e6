/**
 * Redisson's semaphore whose permits have ids and leases. Ids are hex here and raw bytes in Redis. Its time is what
 * the caller says it is: a client's clock, epoch ms.
 */
import { randomBytes } from 'node:crypto'
import type { Raw } from '../support/raw.js'
import { NO_LEASE, prefixed, run, suffixed, texts } from './wire.js'

// KEYS: value, permits, channel, in all of these. ARGV[1]: now. ARGV[2]: PUBLISH.
const BEGIN = `
local value, permits, channel = KEYS[1], KEYS[2], KEYS[3]
local now, publish = ARGV[1], ARGV[2]
local function bytes(hex)
  return (hex:gsub('..', function(pair) return string.char(tonumber(pair, 16)) end))
end
local function expire(limit)
  local gone = redis.call('ZRANGEBYSCORE', permits, 0, now, 'LIMIT', 0, limit)
  if #gone == 0 then return false end
  for _, id in ipairs(gone) do redis.call('ZREM', permits, id) end
  local left = redis.call('INCRBY', value, #gone)
  if left > 0 then redis.call(publish, channel, left) end
  return left
end
local function available()
  return tonumber(redis.call('GET', value) or 0)
end`

// ARGV: …, expiry, ids.
const TRY_ACQUIRE = `${BEGIN}
local count = #ARGV - 3
expire(count)
if redis.call('EXISTS', value) == 1 and available() >= count then
  redis.call('DECRBY', value, count)
  for i = 4, #ARGV do redis.call('ZADD', permits, ARGV[3], bytes(ARGV[i])) end
  local ttl = redis.call('PTTL', value)
  if ttl > 0 then redis.call('PEXPIRE', permits, ttl) end
  return 'OK'
end
local first = redis.call('ZRANGE', permits, 0, 0, 'WITHSCORES')
if #first > 0 and first[2] ~= '${NO_LEASE}' then return ':' .. first[2] end
return false`

// ARGV: …, id.
const TRY_RELEASE = `${BEGIN}
local id = bytes(ARGV[3])
local expiry = redis.call('ZSCORE', permits, id)
if redis.call('ZREM', permits, id) == 0 then return 0 end
redis.call(publish, channel, redis.call('INCRBY', value, 1))
return tonumber(expiry) <= tonumber(now) and 0 or 1`

// ARGV: …, ids.
const TRY_RELEASE_ALL = `${BEGIN}
for i = 3, #ARGV do
  local expiry = redis.call('ZSCORE', permits, bytes(ARGV[i]))
  if not expiry or tonumber(expiry) <= tonumber(now) then return 0 end
end
expire(-1)
local removed = 0
for i = 3, #ARGV do removed = removed + redis.call('ZREM', permits, bytes(ARGV[i])) end
redis.call('INCRBY', value, removed)
redis.call(publish, channel, removed)
return removed`

const AVAILABLE = `${BEGIN}
return expire(-1) or available()`

const TOTAL = `${BEGIN}
expire(-1)
if redis.call('EXISTS', value) == 0 then return 0 end
return available() + redis.call('ZCOUNT', permits, 0, '+inf')`

const ACQUIRED = `${BEGIN}
expire(-1)
return redis.call('ZCOUNT', permits, 0, '+inf')`

const TRY_SET = `${BEGIN}
if redis.call('EXISTS', value) == 1 then return 0 end
redis.call('SET', value, ARGV[3])
redis.call(publish, channel, ARGV[3])
return 1`

const SET = `${BEGIN}
if redis.call('EXISTS', value) == 0 then
  redis.call('SET', value, ARGV[3])
  redis.call(publish, channel, ARGV[3])
  return false
end
local total = available() + redis.call('ZCOUNT', permits, 0, '+inf')
if total == tonumber(ARGV[3]) then return false end
redis.call('INCRBY', value, tonumber(ARGV[3]) - total)
redis.call(publish, channel, ARGV[3])
return false`

const ADD = `${BEGIN}
redis.call('SET', value, available() + tonumber(ARGV[3]))
if tonumber(ARGV[3]) > 0 then redis.call(publish, channel, ARGV[3]) end
return false`

// ARGV: …, id, new expiry.
const UPDATE = `${BEGIN}
expire(-1)
local id = bytes(ARGV[3])
if not redis.call('ZSCORE', permits, id) then return 0 end
redis.call('ZADD', permits, ARGV[4], id)
return 1`

const LEASE = `${BEGIN}
expire(-1)
local expiry = redis.call('ZSCORE', permits, bytes(ARGV[3]))
if not expiry then return false end
if expiry == '${NO_LEASE}' then return -1 end
return tonumber(expiry) - tonumber(now)`

/** How permits are asked for. */
export interface PermitTerms {
  /** The caller's clock. */
  readonly now?: number
  /** Omitted: none. */
  readonly leaseMs?: number
  /** One permit per id. */
  readonly ids?: readonly string[]
}

/** What an attempt came to. */
export type PermitReply =
  | { readonly ids: readonly string[] }
  /** Nothing free; the earliest expiry, if there is one. */
  | { readonly ids: undefined; readonly nextExpiry: number | undefined }

/** A new id. */
export function permitId(): string {
  return randomBytes(16).toString('hex')
}

/** `getPermitExpirableSemaphore`. */
export class PeerPermits {
  readonly name: string
  readonly #raw: Raw

  constructor(raw: Raw, name: string) {
    this.#raw = raw
    this.name = name
  }

  get channel(): string {
    return prefixed('redisson_sc', this.name)
  }

  get permitsKey(): string {
    return suffixed(this.name, 'timeout')
  }

  async tryAcquire({
    now = Date.now(),
    leaseMs,
    ids = [permitId()],
  }: PermitTerms = {}): Promise<PermitReply> {
    const expiry = leaseMs === undefined ? NO_LEASE : now + leaseMs
    const reply = await this.#run(TRY_ACQUIRE, now, [expiry, ...ids])
    if (reply === 'OK') return { ids }
    return { ids: undefined, nextExpiry: reply === null ? undefined : Number(String(reply).slice(1)) }
  }

  async tryRelease(id: string, now: number = Date.now()): Promise<boolean> {
    return (await this.#run(TRY_RELEASE, now, [id])) === 1
  }

  /** How many: all or none. */
  async tryReleaseAll(ids: readonly string[], now: number = Date.now()): Promise<number> {
    return Number(await this.#run(TRY_RELEASE_ALL, now, ids))
  }

  async available(now: number = Date.now()): Promise<number> {
    return Number(await this.#run(AVAILABLE, now, []))
  }

  /** Free and taken. */
  async total(now: number = Date.now()): Promise<number> {
    return Number(await this.#run(TOTAL, now, []))
  }

  async acquired(now: number = Date.now()): Promise<number> {
    return Number(await this.#run(ACQUIRED, now, []))
  }

  async trySet(permits: number): Promise<boolean> {
    return (await this.#run(TRY_SET, 0, [permits])) === 1
  }

  /** Changes the total. */
  async set(permits: number): Promise<void> {
    await this.#run(SET, 0, [permits])
  }

  async add(permits: number): Promise<void> {
    await this.#run(ADD, 0, [permits])
  }

  async updateLease(id: string, leaseMs: number, now: number = Date.now()): Promise<boolean> {
    return (await this.#run(UPDATE, now, [id, now + leaseMs])) === 1
  }

  /** -1: none; undefined: no such permit. */
  async leaseOf(id: string, now: number = Date.now()): Promise<number | undefined> {
    const reply = await this.#run(LEASE, now, [id])
    return reply === null ? undefined : Number(reply)
  }

  /** The ids of all permits that are out, the first to expire first. */
  async ids(): Promise<readonly string[]> {
    const script = `
local ids = redis.call('ZRANGE', KEYS[1], 0, -1)
for i, id in ipairs(ids) do
  ids[i] = id:gsub('.', function(byte) return string.format('%02x', byte:byte()) end)
end
return ids`
    return texts(await run(this.#raw, { script, keys: [this.permitsKey], args: [] }))
  }

  #run(script: string, now: number, args: readonly (string | number)[]): ReturnType<typeof run> {
    return run(this.#raw, {
      script,
      keys: [this.name, this.permitsKey, this.channel],
      args: [now, 'PUBLISH', ...args],
    })
  }
}
