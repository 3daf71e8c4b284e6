/** One history of permits on two sides: the Lua scripts in a real server, and the model. */
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { systemClock } from '../../src/clock.js'
import { newPassage } from '../../src/engine/engine.js'
import * as model from '../../src/engine/model/permits.js'
import { FREE, type KeyState, type Step } from '../../src/engine/model/state.js'
import type { PermitsOperation } from '../../src/engine/operations.js'
import { createPort } from '../../src/engine/redis/clients/detect.js'
import { RedisEngine } from '../../src/engine/redis/redis-engine.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { changed, type Change } from './changed-port.js'
import { Listener } from './listener.js'
import { GRAIN_MS, NAME, type PermitAct } from './permits-history.js'

const LEASES = `{${NAME}}:timeout`
const CHANNEL = `redisson_sc:{${NAME}}`
/** How far a time may be behind, besides the time that the test itself took. */
const SLACK_MS = 1_000
const AHEAD_MS = 500
const ENDLESS = model.ENDLESS_MS

/** Both sides as they are compared: times are what is left of them, in milliseconds; -1: no TTL. */
interface Seen {
  readonly reply: unknown
  readonly keys: Readonly<Record<string, unknown>>
  readonly messages: readonly string[]
}

// Takes time off the TTLs and off the expiries, in whole grains.
const PASS = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function less(left) return math.ceil(left / ${GRAIN_MS}) * ${GRAIN_MS} - tonumber(ARGV[1]) end
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and less(left) <= 0 then redis.call('DEL', key)
  elseif left >= 0 then redis.call('PEXPIRE', key, less(left)) end
end
local out = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #out, 2 do
  local score = tonumber(out[i + 1])
  if score < ${ENDLESS} then redis.call('ZADD', KEYS[1], now + less(score - now), out[i]) end
end`

const LOOK = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seen = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local type = redis.call('TYPE', key).ok
  local value = type
  if type == 'string' then value = redis.call('GET', key) end
  if type == 'zset' then
    value = {}
    for i, word in ipairs(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')) do
      if i % 2 == 1 then word = word:gsub('.', function(byte) return string.format('%02x', byte:byte()) end)
      elseif tonumber(word) == ${ENDLESS} then word = 'endless'
      else word = string.format('%.0f', word - now) end
      value[i] = word
    end
  end
  seen[#seen + 1] = {key, redis.call('PTTL', key), value}
end
return seen`

type Looked = readonly (readonly [string, number, string | readonly string[]])[]

/** A server, the scripts (or what a test made of them), and connections to look at both. */
export class PermitSides implements AsyncDisposable {
  readonly #server: RedisServer
  readonly #redis: Redis
  readonly #listener: Listener

  private constructor(server: RedisServer, redis: Redis, listener: Listener) {
    this.#server = server
    this.#redis = redis
    this.#listener = listener
  }

  static async open(): Promise<PermitSides> {
    const server = await startRedis()
    const redis = new Redis(server.port, '127.0.0.1')
    return new PermitSides(server, redis, await Listener.open(redis))
  }

  /** Runs a history on both sides and throws at the first step after which they disagree. */
  async run(history: readonly PermitAct[], change?: Change): Promise<void> {
    await this.#redis.flushall()
    let skewMs = 0
    const clock = { ...systemClock, wall: () => Date.now() + skewMs }
    const port = changed(createPort(this.#redis), change)
    const scripts = new RedisEngine(port, { clock, subscriber: undefined })
    const expected = new PermitModel()
    const startMs = performance.now()
    for (const [i, act] of history.entries()) {
      if (act.op === 'skew') skewMs = act.ms
      const reply = await this.#act(scripts, act)
      const wanted = expected.act(act)
      const slackMs = SLACK_MS + performance.now() - startMs
      const seen = { reply: comparable(reply, slackMs), ...(await this.#look(slackMs)) }
      expect(seen, `after step ${i + 1}: ${JSON.stringify(act)}`).toEqual(wanted)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close()
    this.#redis.disconnect()
    await this.#server.stop()
  }

  async #act(scripts: RedisEngine, act: PermitAct): Promise<unknown> {
    switch (act.op) {
      case 'skew':
        return null
      case 'time':
        // What is no sorted set has no expiries.
        return this.#redis.eval(PASS, 1, LEASES, act.ms)
      case 'other.write':
        await this.#redis.del(NAME)
        await (act.value === 'list' ? this.#redis.rpush(NAME, 'theirs') : this.#redis.set(NAME, act.value))
        return null
      case 'other.delete':
        await this.#redis.del(act.key === 'count' ? NAME : LEASES)
        return null
      default:
        return scripts.execute(act, newPassage())
    }
  }

  async #look(slackMs: number): Promise<Omit<Seen, 'reply'>> {
    const looked = (await this.#redis.eval(LOOK, 0)) as Looked
    const keys = looked.map(([key, ttlMs, value]) => {
      const shown = typeof value === 'string' ? value : leasesOf(value, slackMs)
      return [key, { value: shown, ttlMs: ttlMs === -1 ? -1 : rounded(ttlMs, slackMs) }] as const
    })
    return { keys: Object.fromEntries(keys), messages: await this.#listener.take() }
  }
}

type Stepping = (state: KeyState, operation: never, moment: model.Moment) => Step<unknown>

const STEPS: Readonly<Record<Exclude<PermitsOperation['op'], 'permits.renew'>, Stepping>> = {
  'permits.acquire': model.acquire,
  'permits.release': model.release,
  'permits.give': model.give,
  'permits.update': model.update,
  'permits.rest': model.rest,
  'permits.count': model.count,
  'permits.set': model.set,
  'permits.try-set': model.trySet,
  'permits.add': model.add,
}

/** The model, with a clock for the server and one for the client. */
export class PermitModel {
  state: KeyState = FREE
  #nowMs = 1_000_000
  #skewMs = 0

  /** How many permits have expired. */
  get expired(): number {
    return [...(this.state.permits?.values() ?? [])].filter((untilMs) => untilMs <= this.#nowMs).length
  }

  act(act: PermitAct): Seen {
    const { reply, messages } = this.#step(act)
    return { reply: comparable(reply, 0), keys: this.#keys(), messages }
  }

  #step(act: PermitAct): { readonly reply: unknown; readonly messages: readonly string[] } {
    switch (act.op) {
      case 'skew':
        this.#skewMs = act.ms
        return NOTHING
      case 'time':
        this.#nowMs += act.ms
        return NOTHING
      case 'other.write':
        this.state = { ...this.state, value: written(act.value), expiresAtMs: Infinity }
        return NOTHING
      case 'other.delete':
        this.state = {
          ...this.state,
          ...(act.key === 'count' ? { value: undefined } : { permits: new Map() }),
        }
        return NOTHING
      case 'permits.renew': {
        const results = act.holds.map(
          ({ owner }) =>
            this.#apply(model.renew(this.state, { owner, ttlMs: act.ttlMs }, this.#moment)).reply,
        )
        return { reply: { results }, messages: [] }
      }
      default:
        // The table pairs operations and steps.
        return this.#apply(STEPS[act.op](this.state, act as never, this.#moment))
    }
  }

  #apply({ state, reply, wake }: Step<unknown>): { reply: unknown; messages: readonly string[] } {
    this.state = state
    return { reply, messages: typeof wake === 'object' ? [`${CHANNEL} ${String(wake.payload)}`] : [] }
  }

  get #moment(): model.Moment {
    return { nowMs: this.#nowMs, clientMs: this.#nowMs + this.#skewMs, serverMs: this.#nowMs }
  }

  #keys(): Readonly<Record<string, unknown>> {
    const { value, permits = new Map<string, number>(), tombstones, requests = [] } = this.state
    const left = (untilMs: number) => (untilMs === ENDLESS ? 'endless' : untilMs - this.#nowMs)
    const tombs = [...tombstones].map(
      ([id, endMs]) => [`redisson_unlock_latch:{${NAME}}:${id}`, { value: '1', endMs }] as const,
    )
    const notes = [...requests].map(
      ([id, { note, endMs }]) => [`holdfast_request:{${NAME}}:${id}`, { value: note, endMs }] as const,
    )
    const marks = [...tombs, ...notes].flatMap(([key, { value, endMs }]) => {
      const ttlMs = endMs - this.#nowMs
      return ttlMs > 0 ? [[key, { value, ttlMs }] as const] : []
    })
    const leases = Object.fromEntries([...permits].map(([id, untilMs]) => [id, left(untilMs)]))
    return Object.fromEntries<unknown>([
      ...marks,
      ...(value === undefined ? [] : [[NAME, { value: shown(value), ttlMs: -1 }] as const]),
      ...(permits.size === 0 ? [] : [[LEASES, { value: leases, ttlMs: -1 }] as const]),
    ])
  }
}

const NOTHING = { reply: null, messages: [] }

function written(value: string): KeyState['value'] {
  if (value === 'list') return { kind: 'foreign', hash: false }
  const whole = /^(0|-?[1-9]\d*)$/.test(value) && Number.isSafeInteger(Number(value))
  return whole ? { kind: 'count', count: Number(value) } : { kind: 'mutex', owner: value }
}

function shown(value: NonNullable<KeyState['value']>): string {
  if (value.kind === 'count') return String(value.count)
  return value.kind === 'mutex' ? value.owner : 'list'
}

function leasesOf(words: readonly string[], slackMs: number): Readonly<Record<string, unknown>> {
  const pairs = words.flatMap((id, i) => (i % 2 === 0 ? [[id, words[i + 1]] as const] : []))
  const left = (rest: string | undefined) => (rest === 'endless' ? rest : rounded(Number(rest), slackMs))
  return Object.fromEntries(pairs.map(([id, rest]) => [id, left(rest)]))
}

/** The whole grains, if what is left differs from them by no more than the slack. */
function rounded(ms: number, slackMs: number): number {
  // A client reads its clock before the server reads its own.
  const full = Math.ceil((ms - AHEAD_MS) / GRAIN_MS) * GRAIN_MS
  return full - ms <= slackMs ? full + 0 : ms
}

function comparable(reply: unknown, slackMs: number): unknown {
  if (typeof reply !== 'object' || reply === null) return null
  const { ttlMs, ...rest } = { ...(reply as { readonly ttlMs?: number }) }
  return ttlMs === undefined ? rest : { ...rest, ttlMs: rounded(ttlMs, slackMs) }
}
