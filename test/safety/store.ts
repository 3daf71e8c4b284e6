/** The resource behind the locks: on the same server, but by a link of its own that faults of links do not touch. */
import { Link } from '../support/link.js'
import type { Value } from '../support/resp.js'

/** The database of the resource; the locks are in 0. */
export const STORE_DATABASE = 1

const TAKE_OUT = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

/** A canary and a value per lock. Connects anew when the link is gone; what was under way then rejects. */
export class Store {
  readonly #port: number
  #link: Promise<Link> | undefined

  constructor(port: number) {
    this.#port = port
  }

  /** Sets the canary, and tells who sat there. */
  async enter(lock: string, owner: string): Promise<string | null> {
    return text(await this.#send('SET', `canary:${lock}`, owner, 'GET'))
  }

  /** Takes the canary out, if it still is the owner's. */
  async leave(lock: string, owner: string): Promise<boolean> {
    return (await this.#send('EVAL', TAKE_OUT, 1, `canary:${lock}`, owner)) === 1
  }

  /** The call that wrote last. */
  async read(lock: string): Promise<string> {
    return text(await this.#send('GET', `last:${lock}`)) ?? ''
  }

  async write(lock: string, call: string): Promise<void> {
    await this.#send('SET', `last:${lock}`, call)
  }

  close(): void {
    this.#link?.then(
      (link) => {
        link.close()
      },
      () => undefined,
    )
  }

  async #send(...command: readonly (string | number)[]): Promise<Value> {
    const opening = (this.#link ??= this.#open())
    try {
      return await (await opening).send(...command)
    } catch (error) {
      if (this.#link === opening) {
        this.close()
        this.#link = undefined
      }
      throw error
    }
  }

  async #open(): Promise<Link> {
    const link = await Link.open(this.#port)
    await link.send('SELECT', STORE_DATABASE)
    return link
  }
}

function text(value: Value): string | null {
  return typeof value === 'string' ? value : null
}
