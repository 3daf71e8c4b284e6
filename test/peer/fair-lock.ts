/** Redisson's fair lock in one Java thread. Its time is what the caller says it is: a client's clock, epoch ms. */
import type { Raw } from '../support/raw.js'
import { FAIR_WAIT, LATCH_TTL, maybeNumber, prefixed, run, texts, WATCHDOG_TIMEOUT } from './wire.js'

// KEYS: lock, queue, deadlines, in all of these.
const PURGE = `
local lock, queue, deadlines = KEYS[1], KEYS[2], KEYS[3]
local function purge(now)
  while true do
    local head = redis.call('LINDEX', queue, 0)
    if not head then return end
    local deadline = redis.call('ZSCORE', deadlines, head)
    if not deadline or tonumber(deadline) > tonumber(now) then return end
    redis.call('ZREM', deadlines, head)
    redis.call('LPOP', queue)
  end
end
local function tellHead(publish, channel)
  local head = redis.call('LINDEX', queue, 0)
  if head then redis.call(publish, channel .. ':' .. head, '0') end
end`

// ARGV: lease, owner, now, wait, refusal of a second entry or nothing.
const ENTER = `${PURGE}
local lease, owner, now, wait = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
purge(now)
local function enter()
  local head = redis.call('LINDEX', queue, 0)
  if redis.call('EXISTS', lock) == 0 and (not head or head == owner) then
    redis.call('LPOP', queue)
    redis.call('ZREM', deadlines, owner)
    for _, waiter in ipairs(redis.call('ZRANGE', deadlines, 0, -1)) do
      redis.call('ZINCRBY', deadlines, -tonumber(wait), waiter)
    end
    redis.call('HSET', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return 'entered'
  end
  if redis.call('HEXISTS', lock, owner) == 1 then
    if ARGV[5] ~= '' then return 'refused' end
    redis.call('HINCRBY', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return 'entered'
  end
  return 'busy'
end
local outcome = enter()
if outcome == 'entered' then return false end
if outcome == 'refused' then return redis.error_reply(ARGV[5]) end`

const TRY_ONCE = `${ENTER}
return 1`

const TRY_WAITING = `${ENTER}
if redis.call('ZSCORE', deadlines, owner) then
  return math.max(0, redis.call('PTTL', lock))
end
local last = redis.call('LINDEX', queue, -1)
local lastDeadline = last and last ~= owner and redis.call('ZSCORE', deadlines, last)
local ttl = lastDeadline and tonumber(lastDeadline) - tonumber(now) or redis.call('PTTL', lock)
local deadline = string.format('%.0f', ttl + tonumber(wait) + tonumber(now))
if redis.call('ZADD', deadlines, deadline, owner) == 1 then redis.call('RPUSH', queue, owner) end
return ttl`

// KEYS: …, base channel, latch. ARGV: lease, owner, now, PUBLISH, latch TTL.
const UNLOCK = `${PURGE}
local lease, owner, now, publish, latchTtl = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local latch = redis.call('GET', KEYS[5])
if latch ~= false then return tonumber(latch) end
purge(now)
if redis.call('EXISTS', lock) == 0 then
  tellHead(publish, KEYS[4])
  redis.call('SET', KEYS[5], '1', 'PX', latchTtl)
  return 1
end
if redis.call('HEXISTS', lock, owner) == 0 then return false end
if redis.call('HINCRBY', lock, owner, -1) > 0 then
  redis.call('PEXPIRE', lock, lease)
  redis.call('SET', KEYS[5], '0', 'PX', latchTtl)
  return 0
end
redis.call('DEL', lock)
redis.call('SET', KEYS[5], '1', 'PX', latchTtl)
tellHead(publish, KEYS[4])
return 1`

// KEYS: …, base channel. ARGV: now, PUBLISH.
const FORCE_UNLOCK = `${PURGE}
purge(ARGV[1])
if redis.call('DEL', lock) == 0 then return 0 end
tellHead(ARGV[2], KEYS[4])
return 1`

// KEYS: queue, deadlines. ARGV: owner, wait.
const ACQUIRE_FAILED = `
local behind = false
for _, waiter in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if behind then redis.call('ZINCRBY', KEYS[2], -tonumber(ARGV[2]), waiter) end
  if waiter == ARGV[1] then behind = true end
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('LREM', KEYS[1], 0, ARGV[1])
return false`

/** How a fair acquire is called. */
export interface FairTerms {
  /** The caller's clock. */
  readonly now?: number
  readonly leaseMs?: number
  readonly waitMs?: number
}

/** `getFairLock`, and `getNonReentrantFairLock`. */
export class PeerFairLock {
  readonly name: string
  readonly owner: string
  readonly #raw: Raw
  readonly #refusal: string

  constructor(raw: Raw, name: string, { owner, reentrant = true }: { owner: string; reentrant?: boolean }) {
    this.#raw = raw
    this.name = name
    this.owner = owner
    this.#refusal = reentrant ? '' : 'NON_REENTRANT_REACQUIRE'
  }

  get queueKey(): string {
    return prefixed('redisson_lock_queue', this.name)
  }

  get deadlinesKey(): string {
    return prefixed('redisson_lock_timeout', this.name)
  }

  /** Where a waiter listens. */
  channelOf(owner: string): string {
    return `${prefixed('redisson_lock__channel', this.name)}:${owner}`
  }

  latch(requestId: string): string {
    return `${prefixed('redisson_unlock_latch', this.name)}:${requestId}`
  }

  /** `tryLock()`: undefined acquired, 1 busy. Does not queue. */
  tryOnce(terms: FairTerms = {}): Promise<number | undefined> {
    return this.#enter(TRY_ONCE, terms)
  }

  /** `lock`, `tryLock(wait)`: undefined acquired; else how long to wait, and it has queued. */
  tryWaiting(terms: FairTerms = {}): Promise<number | undefined> {
    return this.#enter(TRY_WAITING, terms)
  }

  /** A waiter gives up. */
  async acquireFailed(waitMs: number = FAIR_WAIT): Promise<void> {
    const keys = [this.queueKey, this.deadlinesKey]
    await run(this.#raw, { script: ACQUIRE_FAILED, keys, args: [this.owner, waitMs] })
  }

  /** 1 released (also when nobody held it), 0 still held, undefined somebody else's. */
  async unlock(
    requestId: string,
    { now = Date.now(), leaseMs = WATCHDOG_TIMEOUT }: FairTerms = {},
  ): Promise<number | undefined> {
    const keys = [...this.#keys, prefixed('redisson_lock__channel', this.name), this.latch(requestId)]
    const args = [leaseMs, this.owner, now, 'PUBLISH', LATCH_TTL]
    const reply = await run(this.#raw, { script: UNLOCK, keys, args })
    await this.#raw.command('DEL', this.latch(requestId))
    return maybeNumber(reply)
  }

  async forceUnlock(now: number = Date.now()): Promise<boolean> {
    const keys = [...this.#keys, prefixed('redisson_lock__channel', this.name)]
    return (await run(this.#raw, { script: FORCE_UNLOCK, keys, args: [now, 'PUBLISH'] })) === 1
  }

  /** The owners that wait, the next one first. */
  async queue(): Promise<readonly string[]> {
    return texts(await this.#raw.command('LRANGE', this.queueKey, 0, -1))
  }

  async deadlineOf(owner: string = this.owner): Promise<number | undefined> {
    return maybeNumber(await this.#raw.command('ZSCORE', this.deadlinesKey, owner))
  }

  async isHeld(owner: string = this.owner): Promise<boolean> {
    return (await this.#raw.command('HEXISTS', this.name, owner)) === 1
  }

  get #keys(): readonly string[] {
    return [this.name, this.queueKey, this.deadlinesKey]
  }

  async #enter(
    script: string,
    { now = Date.now(), leaseMs = WATCHDOG_TIMEOUT, waitMs = FAIR_WAIT }: FairTerms,
  ): Promise<number | undefined> {
    const args = [leaseMs, this.owner, now, waitMs, this.#refusal]
    return maybeNumber(await run(this.#raw, { script, keys: this.#keys, args }))
  }
}
