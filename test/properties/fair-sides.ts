/** One history of a fair lock on two sides: the Lua scripts in a real server, and the model. */
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import { newPassage } from '../../src/engine/engine.js'
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { MemoryStore } from '../../src/engine/memory/memory-store.js'
import type { FairQueue, KeyState } from '../../src/engine/model/state.js'
import type { Operation } from '../../src/engine/operations.js'
import { createPort } from '../../src/engine/redis/clients/detect.js'
import { RedisEngine } from '../../src/engine/redis/redis-engine.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { changed, type Change } from './changed-port.js'
import { FAIR_NAME, FAIR_OWNERS, WALL_MS, type FairAct } from './fair-history.js'
import { GRAIN_MS } from './history.js'
import { Listener } from './listener.js'

const QUEUE = `redisson_lock_queue:{${FAIR_NAME}}`
const DEADLINES = `redisson_lock_timeout:{${FAIR_NAME}}`
const CHANNEL = `redisson_lock__channel:{${FAIR_NAME}}`

const PASS = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then
    left = math.ceil(left / ${GRAIN_MS}) * ${GRAIN_MS} - tonumber(ARGV[1])
    if left <= 0 then redis.call('DEL', key) else redis.call('PEXPIRE', key, left) end
  end
end`

/** What is stored, as both sides write it down: times are whole grains. */
interface Stored {
  readonly type: string
  readonly value: unknown
  readonly ttlMs: number
}

type Keys = Record<string, Stored>

/** A server and the scripts, or what a test made of them. */
export class FairSides implements AsyncDisposable {
  readonly #server: RedisServer
  readonly #redis: Redis
  readonly #listener: Listener

  private constructor(server: RedisServer, redis: Redis, listener: Listener) {
    this.#server = server
    this.#redis = redis
    this.#listener = listener
  }

  static async open(): Promise<FairSides> {
    const server = await startRedis()
    const redis = new Redis(server.port, '127.0.0.1')
    return new FairSides(server, redis, await Listener.open(redis))
  }

  /** Runs a history on both sides and throws at the first step after which they disagree. */
  async run(history: readonly FairAct[], change?: Change): Promise<void> {
    await this.#redis.flushall()
    const model = new FairModel()
    // Both sides have one wall clock, and no other thing of the engine asks it.
    const options = { clock: model.clock, subscriber: undefined }
    const scripts = new RedisEngine(changed(createPort(this.#redis), change), options)
    for (const [i, act] of history.entries()) {
      const reply = rounded(await this.#act(scripts, act))
      const expected = rounded(await model.act(act))
      const where = `after step ${i + 1}: ${JSON.stringify(act)}`
      const seen = { reply, keys: await this.#keys(), messages: await this.#listener.take() }
      expect(seen, where).toEqual({ reply: expected, keys: model.keys(), messages: model.takeMessages() })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close()
    this.#redis.disconnect()
    await this.#server.stop()
  }

  async #act(scripts: RedisEngine, act: FairAct): Promise<unknown> {
    const redis = this.#redis
    switch (act.op) {
      case 'time':
        await redis.eval(PASS, 0, act.ms)
        return null
      case 'other.delete':
        await redis.del(FAIR_NAME)
        return null
      case 'other.persist':
        await redis.persist(FAIR_NAME)
        return null
      case 'other.write':
        await redis.del(FAIR_NAME)
        if (act.type === 'list') await redis.rpush(FAIR_NAME, 'theirs')
        else await redis.hset(FAIR_NAME, 'colour', 'red')
        return null
      case 'queue.delete':
        await redis.del(QUEUE)
        return null
      case 'deadlines.delete':
        await redis.del(DEADLINES)
        return null
      case 'queue.push':
        await redis.rpush(QUEUE, act.owner)
        return null
      case 'deadlines.add':
        await redis.zadd(DEADLINES, act.atMs, act.owner)
        return null
      default:
        return scripts.execute(act, newPassage())
    }
  }

  async #keys(): Promise<Keys> {
    const names = await this.#redis.keys('*')
    const entries = await Promise.all(names.map(async (key) => [key, await this.#stored(key)] as const))
    return Object.fromEntries(entries)
  }

  async #stored(key: string): Promise<Stored> {
    const [type, ttlMs] = [await this.#redis.type(key), await this.#redis.pttl(key)]
    return { type, value: await this.#value(key, type), ttlMs: whole(ttlMs) }
  }

  async #value(key: string, type: string): Promise<unknown> {
    if (type === 'string') return this.#redis.get(key)
    if (type === 'list') return this.#redis.lrange(key, 0, -1)
    if (type === 'hash') return this.#redis.hgetall(key)
    const flat = await this.#redis.zrange(key, '0', '-1', 'WITHSCORES')
    const scores = flat.flatMap((owner, i) =>
      i % 2 === 0 ? [[owner, whole(Number(flat[i + 1]))] as const] : [],
    )
    return Object.fromEntries(scores)
  }
}

/** The model, with the clock of both sides. */
export class FairModel {
  readonly clock = new ManualClock(WALL_MS)
  readonly #store = new MemoryStore(this.clock)
  readonly #engine = new MemoryEngine(this.#store)
  #messages: string[] = []

  constructor() {
    for (const owner of FAIR_OWNERS)
      this.#store.listen({ family: 'lock', name: FAIR_NAME, owner }, () =>
        this.#messages.push(`${CHANNEL}:${owner} 0`),
      )
  }

  async act(act: FairAct): Promise<unknown> {
    const { owners, deadlines } = this.queue
    switch (act.op) {
      case 'time':
        this.clock.block(act.ms)
        return null
      case 'other.delete':
        return this.#write({ value: undefined, expiresAtMs: Infinity })
      case 'other.persist':
        return this.#write({ expiresAtMs: Infinity })
      case 'other.write':
        return this.#write({ value: { kind: 'foreign', hash: act.type === 'hash' }, expiresAtMs: Infinity })
      case 'queue.delete':
        return this.#write({ fair: { owners: [], deadlines } })
      case 'deadlines.delete':
        return this.#write({ fair: { owners, deadlines: new Map() } })
      case 'queue.push':
        return this.#write({ fair: { owners: [...owners, act.owner], deadlines } })
      case 'deadlines.add':
        return this.#write({ fair: { owners, deadlines: new Map(deadlines).set(act.owner, act.atMs) } })
      default:
        return this.#engine.execute<Operation>(act, newPassage())
    }
  }

  get state(): KeyState {
    return this.#store.read(FAIR_NAME)
  }

  get queue(): FairQueue {
    return this.state.fair ?? { owners: [], deadlines: new Map() }
  }

  keys(): Keys {
    const { value, expiresAtMs, tombstones } = this.state
    const { owners, deadlines } = this.queue
    const nowMs = this.clock.now()
    const ttlMs = expiresAtMs === Infinity ? -1 : expiresAtMs - nowMs
    const scored = Object.fromEntries([...deadlines].map(([owner, ms]) => [owner, whole(ms)]))
    const keys: Keys = {}
    if (value !== undefined) keys[FAIR_NAME] = { ...written(value), ttlMs }
    if (owners.length > 0) keys[QUEUE] = { type: 'list', value: [...owners], ttlMs: -1 }
    if (deadlines.size > 0) keys[DEADLINES] = { type: 'zset', value: scored, ttlMs: -1 }
    for (const [owner, endMs] of tombstones)
      keys[`redisson_unlock_latch:{${FAIR_NAME}}:${owner}`] = {
        type: 'string',
        value: '1',
        ttlMs: endMs - nowMs,
      }
    return keys
  }

  takeMessages(): readonly string[] {
    const messages = this.#messages
    this.#messages = []
    return messages
  }

  #write(change: Partial<KeyState>): null {
    this.#store.write(FAIR_NAME, { ...this.state, ...change })
    return null
  }
}

function written(value: NonNullable<KeyState['value']>): { readonly type: string; readonly value: unknown } {
  if (value.kind === 'lock') {
    const counts = [...value.counts].map(([owner, count]) => [owner, String(count)])
    return { type: 'hash', value: Object.fromEntries(counts) }
  }
  return value.kind === 'foreign' && value.hash
    ? { type: 'hash', value: { colour: 'red' } }
    : { type: 'list', value: ['theirs'] }
}

/** Real time takes a little of each TTL, and so of what is counted from it. */
function whole(ms: number): number {
  return ms === -1 ? ms : Math.round(ms / GRAIN_MS) * GRAIN_MS
}

function rounded(reply: unknown): unknown {
  if (typeof reply !== 'object' || reply === null) return reply
  const times: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(reply) as [string, unknown][])
    times[key] = typeof value === 'number' && value > 0 ? whole(value) : value
  return times
}
