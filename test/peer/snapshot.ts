/** Exactly what a server holds, and what was published: keys, types, fields, scores, times, messages. */
import type { Message, Messages, Raw } from '../support/raw.js'
import type { Value } from '../support/resp.js'

/** One key. */
export interface Kept {
  /** string, hash, list or zset. */
  readonly type: string
  /** A text, texts, fields, or members with their scores (those that are no text in hex). */
  readonly value: unknown
  /** Epoch milliseconds of the server; undefined: it stays. */
  readonly expiresAt: number | undefined
}

/** Everything that is there, by key. */
export type Dump = Readonly<Record<string, Kept>>

const LOOK = `
local function readable(bytes)
  if not bytes:find('[^ -~]') then return bytes end
  return (bytes:gsub('.', function(byte) return string.format('%02x', byte:byte()) end))
end
local read = {
  string = function(key) return {redis.call('GET', key)} end,
  hash = function(key) return redis.call('HGETALL', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  zset = function(key)
    local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i, word in ipairs(all) do all[i] = readable(word) end
    return all
  end,
}
local seen = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local type = redis.call('TYPE', key).ok
  local expiresAt = string.format('%.0f', redis.call('PEXPIRETIME', key))
  seen[#seen + 1] = {key, type, expiresAt, read[type] and read[type](key) or {}}
end
return seen`

/** Everything on the server whose key contains the text. */
export async function dump(raw: Raw, containing = ''): Promise<Dump> {
  const keys = items(await raw.command('EVAL', LOOK, 0)).map(kept)
  return Object.fromEntries(keys.filter(([key]) => key.includes(containing)))
}

/** The server's clock, epoch milliseconds. */
export async function serverTime(raw: Raw): Promise<number> {
  const [seconds, micros] = items(await raw.command('TIME')).map(Number)
  return (seconds ?? NaN) * 1000 + Math.floor((micros ?? NaN) / 1000)
}

function kept(item: Value): readonly [string, Kept] {
  const [key, type, expiresAt, value = []] = items(item)
  const time = Number(expiresAt)
  const entry = {
    type: String(type),
    value: read(String(type), value),
    expiresAt: time < 0 ? undefined : time,
  }
  return [String(key), entry]
}

function read(type: string, value: Value): unknown {
  const words = items(value).map(String)
  if (type === 'string') return words[0]
  if (type === 'list') return words
  const pairs = words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] ?? ''] as const] : []))
  return Object.fromEntries(type === 'zset' ? pairs.map(([member, score]) => [member, Number(score)]) : pairs)
}

function items(value: Value): readonly Value[] {
  return Array.isArray(value) ? value : []
}

/** A key as golden tests write it down: its TTL in ms, or 'none'. */
export interface Golden {
  readonly type: string
  readonly value: unknown
  readonly ttl: number | 'none'
}

/** What one step left behind. */
export interface Step<R> {
  readonly reply: R
  readonly keys: Readonly<Record<string, Golden>>
  readonly messages: readonly Message[]
}

// The server's time is cut to milliseconds, and cached for a while.
const CLOCK_MS = 2
/** TTLs in golden tests are multiples of this. */
const GRAIN_MS = 500

/**
 * Does one thing at a time and writes down what is there then. A TTL is the multiple of half a second that the key
 * was given during the step; where none fits the time that the step took, it is what was measured.
 */
export class Recorder {
  readonly raw: Raw
  readonly #messages: Messages
  readonly #about: string
  readonly #known = new Map<string, { readonly expiresAt: number; readonly ttl: number }>()

  private constructor(raw: Raw, messages: Messages, about: string) {
    this.raw = raw
    this.#messages = messages
    this.#about = about
  }

  /** Of everything, or of the keys and channels that have this text in their name. */
  static async on(raw: Raw, about = ''): Promise<Recorder> {
    return new Recorder(raw, await raw.subscribe('*'), about)
  }

  close(): void {
    this.#messages.close()
  }

  /** Empties the server. */
  async clear(): Promise<void> {
    await this.raw.command('FLUSHALL')
    await this.#messages.take()
    this.#known.clear()
  }

  async act<R>(action: () => Promise<R>): Promise<Step<R>> {
    // What was told before is not this step's doing.
    await this.#messages.take()
    const start = await serverTime(this.raw)
    const reply = await action()
    const end = await serverTime(this.raw)
    const keys = Object.entries(await dump(this.raw, this.#about)).map(
      ([key, { type, value, expiresAt }]) =>
        [key, { type, value, ttl: this.#ttl(key, expiresAt, { start, end }) }] as const,
    )
    const told = (await this.#messages.take()).filter(({ channel }) => channel.includes(this.#about))
    return { reply, keys: Object.fromEntries(keys), messages: told }
  }

  /** An unchanged time of death keeps the TTL under which it was first seen, however slow the test is. */
  #ttl(
    key: string,
    expiresAt: number | undefined,
    { start, end }: { start: number; end: number },
  ): number | 'none' {
    if (expiresAt === undefined) return 'none'
    const known = this.#known.get(key)
    if (known?.expiresAt === expiresAt) return known.ttl
    const rounded = Math.ceil((expiresAt - end - CLOCK_MS) / GRAIN_MS) * GRAIN_MS
    const ttl = rounded <= expiresAt - start + CLOCK_MS ? rounded : expiresAt - start
    this.#known.set(key, { expiresAt, ttl })
    return ttl
  }
}

/** A hash as {@link Step.keys} has it. */
export function hash(value: Readonly<Record<string, string | number>>, ttl: Golden['ttl']): Golden {
  const texts = Object.entries(value).map(([field, count]) => [field, String(count)])
  return { type: 'hash', value: Object.fromEntries(texts) as unknown, ttl }
}

/** A string as {@link Step.keys} has it. */
export function text(value: string | number, ttl: Golden['ttl']): Golden {
  return { type: 'string', value: String(value), ttl }
}

/** A list as {@link Step.keys} has it. */
export function list(...value: readonly string[]): Golden {
  return { type: 'list', value, ttl: 'none' }
}

/** A sorted set as {@link Step.keys} has it. */
export function zset(value: Readonly<Record<string, number>>, ttl: Golden['ttl'] = 'none'): Golden {
  return { type: 'zset', value, ttl }
}
