/** The coordinator's own way to the server: past all proxies, and established anew after a restart. */
import { Link } from '../support/link.js'
import type { Value } from '../support/resp.js'
import type { Holder, RemainingKey } from './history.js'
import { STORE_DATABASE } from './store.js'
import type { Thing } from './things.js'

/** Ids as users see them. */
const IDS = `
local function ids()
  local time = redis.call('time')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local found = redis.call('zrangebyscore', KEYS[2], '(' .. string.format('%.0f', now), '+inf')
  local hex = {}
  for i, id in ipairs(found) do
    hex[i] = string.gsub(id, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
  end
  return hex, found
end`

/** Removes a lock's key whatever it is, and tells whose it was; permits are given back. */
const TAKE_AWAY = `${IDS}
local kind = redis.call('type', KEYS[1]).ok
local fields = {}
if ARGV[1] == 'permits' then
  local hex, raw = ids()
  for _, id in ipairs(raw) do
    redis.call('zrem', KEYS[2], id)
    redis.call('incr', KEYS[1])
  end
  return hex
elseif kind == 'hash' then fields = redis.call('hkeys', KEYS[1])
elseif kind == 'string' then fields = {redis.call('get', KEYS[1])} end
redis.call('del', KEYS[1])
return fields`

/** Fields and counts in turn, and the queue behind the empty text. A reader without its first hold counts as nobody. */
const LOOK = `${IDS}
local kind = redis.call('type', KEYS[1]).ok
local told = {}
if ARGV[1] == 'permits' then
  for _, id in ipairs((ids())) do told[#told + 1] = id; told[#told + 1] = '1' end
elseif kind == 'hash' then
  local fields = redis.call('hgetall', KEYS[1])
  for i = 1, #fields, 2 do
    local field, count = fields[i], fields[i + 1]
    local reads = ARGV[1] == 'read-write' and not string.find(field, ':write$')
    if reads and redis.call('exists', ARGV[2] .. ':' .. field .. ':rwlock_timeout:1') == 0 then count = '0' end
    if field ~= 'mode' then told[#told + 1] = field; told[#told + 1] = count end
  end
elseif kind == 'string' then told = {redis.call('get', KEYS[1]), '1'} end
if ARGV[1] == 'fair' then
  told[#told + 1] = ''
  for _, owner in ipairs(redis.call('lrange', KEYS[3], 0, -1)) do told[#told + 1] = owner end
end
return told`

const LIST = `
local semaphores, told = {}, {}
for _, name in ipairs(ARGV) do semaphores[name] = true end
for _, key in ipairs(redis.call('keys', '*')) do
  local value = semaphores[key] and redis.call('get', key)
  for _, word in ipairs({key, tostring(redis.call('pttl', key)), value or ''}) do told[#told + 1] = word end
end
return told`

/** What a look has shown. */
export interface View {
  readonly holders: readonly Holder[]
  readonly queue: readonly string[]
}

export class Control {
  readonly #port: number
  #link: Promise<Link> | undefined

  constructor(port: number) {
    this.#port = port
  }

  /** Rejects when the server is down; the next command tries again. */
  async send(...command: readonly (string | number)[]): Promise<Value> {
    const opening = (this.#link ??= Link.open(this.#port))
    try {
      return await (await opening).send(...command)
    } catch (error) {
      if (this.#link === opening) this.close()
      throw error
    }
  }

  async look(thing: Thing): Promise<View> {
    const words = texts(await this.send('EVAL', LOOK, ...wordsOf(thing)))
    const end = words.indexOf('')
    const pairs = end < 0 ? words : words.slice(0, end)
    return {
      holders: pairs.flatMap((field, i) => (i % 2 === 0 ? [{ field, count: Number(words[i + 1]) }] : [])),
      queue: end < 0 ? [] : words.slice(end + 1),
    }
  }

  /** The waiters of a fair lock stay in its queue, as after the end of a TTL. */
  async takeAway(thing: Thing): Promise<readonly string[]> {
    return texts(await this.send('EVAL', TAKE_AWAY, ...wordsOf(thing)))
  }

  /** Ends the links of one type, but for our own and those to the resource. */
  async killLinks(type: 'normal' | 'pubsub'): Promise<void> {
    const own = String(await this.send('CLIENT', 'ID'))
    const lines = String(await this.send('CLIENT', 'LIST', 'TYPE', type)).split('\n')
    for (const line of lines) {
      const id = /\bid=(\d+)/.exec(line)?.[1]
      if (id === undefined || id === own || line.includes(` db=${String(STORE_DATABASE)} `)) continue
      await this.send('CLIENT', 'KILL', 'ID', id)
    }
  }

  /** Every key, with the numbers of these semaphores. */
  async keys(semaphores: readonly string[]): Promise<RemainingKey[]> {
    const words = texts(await this.send('EVAL', LIST, 0, ...semaphores))
    return words.flatMap((key, i) =>
      i % 3 === 0 ? [{ key, ttlMs: Number(words[i + 1]), value: words[i + 2] || undefined }] : [],
    )
  }

  async channels(): Promise<readonly string[]> {
    return texts(await this.send('PUBSUB', 'CHANNELS'))
  }

  close(): void {
    this.#link?.then(
      (link) => {
        link.close()
      },
      () => undefined,
    )
    this.#link = undefined
  }
}

function wordsOf({ name, kind }: Thing): (string | number)[] {
  return [3, name, `{${name}}:timeout`, `redisson_lock_queue:{${name}}`, kind, `{${name}}`]
}

function texts(value: Value): string[] {
  return Array.isArray(value) ? value.map(String) : []
}
