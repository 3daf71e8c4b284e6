/** One history on two sides: the Lua scripts in a real server, and the model. */
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { ManualClock, systemClock } from '../../src/clock.js'
import { newPassage, type Hint, type Topic } from '../../src/engine/engine.js'
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { MemoryStore } from '../../src/engine/memory/memory-store.js'
import type { KeyState } from '../../src/engine/model/state.js'
import type { Operation, Replies } from '../../src/engine/operations.js'
import { createPort } from '../../src/engine/redis/clients/detect.js'
import { RedisEngine } from '../../src/engine/redis/redis-engine.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { type Change, changed } from './changed-port.js'
import { GRAIN_MS, isToken, NAMES, type Act, type Foreign } from './history.js'
import { Listener } from './listener.js'

/** A key as both sides write it down; a TTL of -1: none. */
export interface Entry {
  readonly type: string
  readonly value: unknown
  readonly ttlMs: number
}

type Keys = Record<string, Entry>

/** How the model's state of one family is written down as keys and messages. */
export interface View {
  /** The names that the histories are about. */
  readonly names: readonly string[]
  /** What the model tells on a topic, and the channel and payload that this is on the wire. */
  readonly topics: (
    name: string,
  ) => readonly (readonly [Topic, (hint: Hint, payload?: string) => string | readonly string[]])[]
  /** The keys of a state. */
  readonly entries: (name: string, state: KeyState, nowMs: number) => (readonly [string, Entry])[]
}

/** How far a TTL may be behind, besides the time that the test itself took. */
const SLACK_MS = 1_000

const PASS = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then
    left = math.ceil(left / ${GRAIN_MS}) * ${GRAIN_MS} - tonumber(ARGV[1])
    if left <= 0 then redis.call('DEL', key) else redis.call('PEXPIRE', key, left) end
  end
end`

const LOOK = `
local seen = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local type = redis.call('TYPE', key).ok
  local value = {}
  if type == 'string' then value = {redis.call('GET', key)} end
  if type == 'hash' then value = redis.call('HGETALL', key) end
  if type == 'list' then value = redis.call('LRANGE', key, 0, -1) end
  if type == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  seen[#seen + 1] = {key, type, redis.call('PTTL', key), value}
end
return seen`

type Looked = readonly (readonly [string, string, number, readonly string[]])[]

const FOREIGN: Record<Foreign, (redis: Redis, name: string) => Promise<unknown>> = {
  list: (redis, name) => redis.rpush(name, 'theirs'),
  hash: (redis, name) => redis.hset(name, 'colour', 'red'),
  string: (redis, name) => redis.set(name, 'somebody'),
}

/** How a history is run. */
export interface Terms {
  /** What is broken on purpose. */
  readonly change?: Change | undefined
  readonly view?: View
}

/** A server, the scripts (or what a test made of them), and connections to look at both. */
export class Sides implements AsyncDisposable {
  readonly #server: RedisServer
  readonly #redis: Redis
  readonly #listener: Listener

  private constructor(server: RedisServer, redis: Redis, listener: Listener) {
    this.#server = server
    this.#redis = redis
    this.#listener = listener
  }

  static async open(): Promise<Sides> {
    const server = await startRedis()
    const redis = new Redis(server.port, '127.0.0.1')
    return new Sides(server, redis, await Listener.open(redis))
  }

  /** Runs a history on both sides and throws at the first step after which they disagree. */
  async run(history: readonly Act[], terms: Terms = {}): Promise<void> {
    const { change, view = LOCKS } = terms
    await this.#redis.flushall()
    const scripts = new RedisEngine(changed(createPort(this.#redis), change), {
      clock: systemClock,
      subscriber: undefined,
    })
    const model = new Model(view)
    const startMs = performance.now()
    for (const [i, act] of history.entries()) {
      const reply = await this.#act(scripts, act)
      const expected = await model.act(act)
      const slackMs = SLACK_MS + performance.now() - startMs
      const where = `after step ${i + 1}: ${JSON.stringify(act)}`
      expect({ reply: comparable(reply, slackMs), ...(await this.#look(slackMs)) }, where).toEqual({
        reply: comparable(expected, 0),
        keys: model.keys(),
        messages: model.takeMessages(),
      })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close()
    this.#redis.disconnect()
    await this.#server.stop()
  }

  async #act(scripts: RedisEngine, act: Act): Promise<unknown> {
    switch (act.op) {
      case 'time':
        return this.#redis.eval(PASS, 0, act.ms)
      case 'other.write':
        await this.#redis.del(act.name)
        await FOREIGN[act.value](this.#redis, act.name)
        if (act.ttlMs > 0) await this.#redis.pexpire(act.name, act.ttlMs)
        return null
      case 'other.delete':
        await this.#redis.del(act.name)
        return null
      case 'other.persist':
        await this.#redis.persist(act.name)
        return null
      default:
        return scripts.execute(act, newPassage())
    }
  }

  async #look(slackMs: number): Promise<{ readonly keys: Keys; readonly messages: readonly string[] }> {
    const looked = (await this.#redis.eval(LOOK, 0)) as Looked
    const keys = looked.map(([key, type, ttlMs, value]) => {
      const entry: Entry = { type, value: valueOf(type, value), ttlMs: rounded(ttlMs, slackMs) }
      return [key, entry] as const
    })
    return { keys: Object.fromEntries(keys), messages: await this.#listener.take() }
  }
}

/** The model with a clock of its own. */
export class Model {
  readonly clock = new ManualClock()
  readonly #store = new MemoryStore(this.clock)
  readonly #engine = new MemoryEngine(this.#store)
  readonly #view: View
  #messages: string[] = []

  constructor(view: View = LOCKS) {
    this.#view = view
    for (const [topic, message] of view.names.flatMap((name) => view.topics(name)))
      this.#store.listen(topic, (hint, payload) => this.#messages.push(...[message(hint, payload)].flat()))
  }

  async act(act: Act): Promise<unknown> {
    switch (act.op) {
      case 'time':
        this.clock.block(act.ms)
        return null
      case 'other.write':
        this.#write(act.name, { value: foreign(act.value), expiresAtMs: this.#endOf(act.ttlMs) })
        return null
      case 'other.delete':
        this.#write(act.name, { value: undefined })
        return null
      case 'other.persist':
        this.#write(act.name, { expiresAtMs: Infinity })
        return null
      default:
        return this.#engine.execute(act, newPassage())
    }
  }

  /** How many keys there are: those of the locks, and tombstones. */
  get size(): number {
    return Object.keys(this.keys()).length
  }

  keys(): Keys {
    const { names, entries } = this.#view
    const nowMs = this.clock.now()
    return Object.fromEntries(names.flatMap((name) => entries(name, this.#store.read(name), nowMs)))
  }

  takeMessages(): readonly string[] {
    const messages = this.#messages
    this.#messages = []
    return messages
  }

  #endOf(ttlMs: number): number {
    return ttlMs === 0 ? Infinity : this.clock.now() + ttlMs
  }

  #write(name: string, change: Partial<KeyState>): void {
    this.#store.write(name, { ...this.#store.read(name), ...change })
  }
}

/** Re-entrant locks and mutexes. */
export const LOCKS: View = {
  names: NAMES,
  topics: (name) => [
    [{ family: 'lock', name }, () => `redisson_lock__channel:{${name}} 0`],
    [{ family: 'mutex', name }, () => `holdfast_mutex__channel:{${name}} 0`],
  ],
  entries: (name, { value, expiresAtMs, tombstones }, nowMs) => {
    const ttlMs = expiresAtMs === Infinity ? -1 : expiresAtMs - nowMs
    const entries = [...tombstones].map(([owner, endMs]) => {
      const prefix = isToken(owner) ? 'holdfast_mutex_tombstone' : 'redisson_unlock_latch'
      return [`${prefix}:{${name}}:${owner}`, { type: 'string', value: '1', ttlMs: endMs - nowMs }] as const
    })
    return value === undefined ? entries : [...entries, [name, { ...written(value), ttlMs }] as const]
  },
}

function foreign(value: Foreign): KeyState['value'] {
  // To a plain lock any string is somebody's token.
  return value === 'string'
    ? { kind: 'mutex', owner: 'somebody' }
    : { kind: 'foreign', hash: value === 'hash' }
}

/** A base key's value as it lies in Redis. */
export function written(value: NonNullable<KeyState['value']>): {
  readonly type: string
  readonly value: unknown
} {
  switch (value.kind) {
    case 'lock':
      return { type: 'hash', value: strings(value.counts) }
    case 'read-write':
      return { type: 'hash', value: { mode: value.mode, ...strings(value.counts) } }
    case 'mutex':
      return { type: 'string', value: value.owner }
    case 'count':
      return { type: 'string', value: String(value.count) }
    case 'foreign':
      return value.hash ? { type: 'hash', value: { colour: 'red' } } : { type: 'list', value: ['theirs'] }
  }
}

/** Counts as Redis keeps them. */
export function strings(counts: ReadonlyMap<string, number>): Record<string, string> {
  return Object.fromEntries([...counts].map(([owner, count]) => [owner, String(count)]))
}

function valueOf(type: string, value: readonly string[]): unknown {
  if (type === 'string') return value[0]
  if (type !== 'hash' && type !== 'zset') return value
  return Object.fromEntries(
    value.flatMap((field, i) => (i % 2 === 0 ? [[field, value[i + 1]] as const] : [])),
  )
}

/** The full TTL, if what is left differs from it by no more than the slack. */
function rounded(ttlMs: number, slackMs: number): number {
  const full = Math.ceil(ttlMs / GRAIN_MS) * GRAIN_MS
  return ttlMs > 0 && full - ttlMs <= slackMs ? full : ttlMs
}

function comparable(reply: unknown, slackMs: number): unknown {
  const { ttlMs, ...rest } = { ...(reply as Partial<Replies[Operation['op']]> & { readonly ttlMs?: number }) }
  return ttlMs === undefined ? rest : { ...rest, ttlMs: rounded(ttlMs, slackMs) }
}
