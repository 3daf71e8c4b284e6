/** A server on which one script runs at a time, and what is to be seen after each: keys, times, messages. */
import { expect } from 'vitest'
import type { RawReply } from '../../src/engine/redis/clients/port.js'
import type { ScriptDefinition } from '../../src/engine/redis/script.js'
import { raw, type Message, type Messages, type Raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'
import type { Value } from '../support/resp.js'

/** The rest of a key's life in milliseconds, counted from the run that set it. */
export type Ttl = number | 'none'

/** A key as the tests write it down. */
export interface Entry {
  readonly type: string
  readonly value: unknown
  readonly ttl: Ttl
}

/** What one run left behind. */
export interface Step<R> {
  readonly reply: R
  readonly keys: Readonly<Record<string, Entry>>
  readonly messages: readonly Message[]
}

interface Seen {
  readonly entry: Entry
  /** Server time in epoch milliseconds; undefined where the key has no TTL. */
  readonly expiresAt: number | undefined
}

/** Server time around a run, in epoch milliseconds. */
interface Span {
  readonly start: number
  readonly end: number
}

export interface RunOptions {
  /** Another connection, for instance one with fewer rights. */
  readonly via?: Raw | undefined
  /** The one case in which a TTL may become shorter: a release that keeps its minimum hold. */
  readonly mayShorten?: boolean | undefined
}

// The server's time is cut to milliseconds here, and cached there.
const CLOCK_MS = 2

/** Redisson gives these keys no TTL. */
const ENDLESS = /^redisson_lock_(queue|timeout|token):/

const LOOK = `
local seen = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local type = redis.call('TYPE', key).ok
  local expiresAt = string.format('%.0f', redis.call('PEXPIRETIME', key))
  local value = {}
  if type == 'string' then value = {redis.call('GET', key)} end
  if type == 'hash' then value = redis.call('HGETALL', key) end
  if type == 'list' then value = redis.call('LRANGE', key, 0, -1) end
  if type == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  seen[#seen + 1] = {key, type, expiresAt, value}
end
return seen`

export class Stage implements AsyncDisposable {
  readonly server: RedisServer
  readonly raw: Raw
  readonly #messages: Messages
  #seen: ReadonlyMap<string, Seen> = new Map()

  private constructor(server: RedisServer, connection: Raw, messages: Messages) {
    this.server = server
    this.raw = connection
    this.#messages = messages
  }

  static async open(): Promise<Stage> {
    const server = await startRedis()
    const connection = await raw(server.port)
    return new Stage(server, connection, await connection.subscribe('*'))
  }

  /** Empties the server. */
  async clear(): Promise<void> {
    await this.raw.command('FLUSHALL')
    await this.#messages.take()
    this.#seen = new Map()
  }

  /** Runs one of the library's scripts and holds it to what is true of all of them. */
  async run<A, R>(definition: ScriptDefinition<A, R>, args: A, options: RunOptions = {}): Promise<Step<R>> {
    await this.#settle()
    const before = this.#seen
    const on = options.via ?? this.raw
    // In one go, so that a slow test does not widen the time in which the script ran.
    const [start, reply, end] = await Promise.all([now(on), evaluate(on, definition, args), now(on)])
    const step = await this.#report(definition.decode(reply), { start, end })
    this.#expectLiveTtls(before, options.mayShorten ?? false)
    return step
  }

  /** Does anything else and reports in the same way. */
  async act<R>(action: () => Promise<R>): Promise<Step<R>> {
    await this.#settle()
    const start = await now(this.raw)
    const reply = await action()
    return this.#report(reply, { start, end: await now(this.raw) })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.raw[Symbol.asyncDispose]()
    await this.server.stop()
  }

  /** A lock without a TTL outlives its holder, and a shortened one ends under it. */
  #expectLiveTtls(before: ReadonlyMap<string, Seen>, mayShorten: boolean): void {
    for (const [key, { expiresAt }] of this.#seen) {
      const old = before.get(key)
      if (expiresAt === undefined && !ENDLESS.test(key))
        expect(old?.entry, `${key} is left without a TTL`).toMatchObject({ ttl: 'none' })
      if (old?.expiresAt === undefined || expiresAt === undefined || mayShorten) continue
      expect(expiresAt, `the TTL of ${key} is shortened`).toBeGreaterThanOrEqual(old.expiresAt)
    }
  }

  /** What happened in between, unseen, must not count as the next step's doing. */
  async #settle(): Promise<void> {
    const time = await now(this.raw)
    this.#seen = await this.#look({ start: time, end: time })
  }

  async #report<R>(reply: R, during: Span): Promise<Step<R>> {
    this.#seen = await this.#look(during)
    const keys = Object.fromEntries([...this.#seen].map(([key, { entry }]) => [key, entry]))
    return { reply, keys, messages: await this.#messages.take() }
  }

  async #look(during: Span): Promise<ReadonlyMap<string, Seen>> {
    const keys = items(await this.raw.command('EVAL', LOOK, 0))
    return new Map(
      keys.map((item) => {
        const [key, type, time, value = null] = items(item)
        const expiresAt = time === '-1' ? undefined : Number(time)
        const entry = { type: String(type), value: read(String(type), value), ttl: 'none' } as const
        return [String(key), this.#dated(String(key), { entry, expiresAt }, during)]
      }),
    )
  }

  /** An unchanged time of death keeps the TTL under which it was first seen, however slow the test is. */
  #dated(key: string, { entry, expiresAt }: Seen, during: Span): Seen {
    if (expiresAt === undefined) return { entry, expiresAt }
    const old = this.#seen.get(key)
    if (old?.expiresAt === expiresAt) return { entry: { ...entry, ttl: old.entry.ttl }, expiresAt }
    return { entry: { ...entry, ttl: ttlOf(expiresAt, during) }, expiresAt }
  }
}

/** The whole number of seconds that fits the time of the run, or, where none does, what was measured. */
function ttlOf(expiresAt: number, { start, end }: Span): number {
  const seconds = Math.ceil((expiresAt - end - CLOCK_MS) / 1000) * 1000
  return seconds <= expiresAt - start + CLOCK_MS ? seconds : expiresAt - start
}

async function now(on: Raw): Promise<number> {
  return epochMs(await on.command('TIME'))
}

/** Runs a script by its text; rejects with the server's words. */
export async function evaluate<A, R>(
  on: Raw,
  definition: ScriptDefinition<A, R>,
  given: A,
): Promise<RawReply> {
  const { keys, args } = definition.encode(given)
  return rawReply(await on.command('EVAL', definition.script.source, keys.length, ...keys, ...args))
}

/** A hash, as {@link Step.keys} shows it. */
export function hash(value: Readonly<Record<string, string>>, ttl: Ttl): Entry {
  return { type: 'hash', value, ttl }
}

/** A string, as {@link Step.keys} shows it. */
export function text(value: string, ttl: Ttl): Entry {
  return { type: 'string', value, ttl }
}

function read(type: string, value: Value): unknown {
  const values = items(value).map(String)
  if (type === 'string') return values[0]
  if (type !== 'hash' && type !== 'zset') return values
  const pairs = values.flatMap((field, index) =>
    index % 2 === 0 ? [[field, values[index + 1]] as const] : [],
  )
  return Object.fromEntries(pairs)
}

function items(value: Value): readonly Value[] {
  if (!Array.isArray(value)) throw new Error(`not a list: ${String(value)}`)
  return value
}

function epochMs(time: Value): number {
  const [seconds, micros] = items(time).map(Number)
  return (seconds ?? NaN) * 1000 + Math.floor((micros ?? NaN) / 1000)
}

function rawReply(value: Value): RawReply {
  if (Array.isArray(value)) return value.map(rawReply)
  if (value === null || typeof value === 'number' || typeof value === 'string') return value
  throw new Error(`an unexpected kind of reply: ${String(value)}`)
}
