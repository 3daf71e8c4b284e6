/** The coordinator's own way to the server: past all proxies, and established anew after a restart. */
import { Link } from '../support/link.js'
import type { Value } from '../support/resp.js'
import { STORE_DATABASE } from './store.js'

/** Removes a lock's key whatever it is, and tells whose it was. */
const TAKE_AWAY = `
local kind = redis.call('type', KEYS[1]).ok
local owners = {}
if kind == 'hash' then owners = redis.call('hkeys', KEYS[1])
elseif kind == 'string' then owners = {redis.call('get', KEYS[1])} end
redis.call('del', KEYS[1])
return owners`

const LOOK = `
local kind = redis.call('type', KEYS[1]).ok
if kind == 'hash' then return redis.call('hgetall', KEYS[1]) end
if kind == 'string' then return {redis.call('get', KEYS[1]), '1'} end
return {}`

/** Who has a lock, as the server sees it. */
export interface Holder {
  readonly owner: string
  readonly count: number
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

  async look(lock: string): Promise<readonly Holder[]> {
    const words = texts(await this.send('EVAL', LOOK, 1, lock))
    return words.flatMap((owner, i) => (i % 2 === 0 ? [{ owner, count: Number(words[i + 1]) }] : []))
  }

  async takeAway(lock: string): Promise<readonly string[]> {
    return texts(await this.send('EVAL', TAKE_AWAY, 1, lock))
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

  async keys(): Promise<readonly string[]> {
    return texts(await this.send('KEYS', '*'))
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

function texts(value: Value): string[] {
  return Array.isArray(value) ? value.map(String) : []
}
