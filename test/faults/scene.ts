/** The stage of a fault test: a server, clients and Holdfasts on it, and all that was heard from them. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Redis, type RedisOptions as IoredisOptions } from 'ioredis'
import { createClient } from 'redis'
import { Holdfast, type HoldfastEvents, type HoldfastOptions } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { startProxy, type Proxy } from '../support/proxy.js'
import { raw, type Raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'
import type { Value } from '../support/resp.js'

type NodeRedis = ReturnType<typeof createClient>

/** What was published on a diagnostics channel since {@link Scene.hear}. */
export type Heard<N extends keyof HoldfastEvents> = HoldfastEvents[N][]

/** Opens a scene on a server of its own. */
export async function openScene(args: readonly string[] = []): Promise<Scene> {
  return new Scene(await startRedis({ args }))
}

/** Everything that is opened through it is closed with it, Holdfasts first. */
export class Scene implements AsyncDisposable {
  readonly server: RedisServer
  readonly #endings: (() => unknown)[] = []
  #raw: Raw | undefined

  /** Use {@link openScene}. */
  constructor(server: RedisServer) {
    this.server = server
  }

  get port(): number {
    return this.server.port
  }

  /** A client of ioredis with its default settings, but for those given. */
  ioredis(options: Omit<IoredisOptions, 'replyMapping'> = {}): Redis {
    const client = new Redis({ host: '127.0.0.1', port: this.port, ...options })
    client.on('error', () => undefined)
    this.atEnd(() => {
      client.disconnect()
    })
    return client
  }

  /** A connected client of node-redis with its default settings. */
  async nodeRedis(port: number = this.port, options: { keyPrefix?: string } = {}): Promise<NodeRedis> {
    const client: NodeRedis = createClient({ socket: { host: '127.0.0.1', port }, ...options })
    client.on('error', () => undefined)
    await client.connect()
    this.atEnd(() => {
      if (client.isOpen) client.destroy()
    })
    return client
  }

  /** A Holdfast on a client; without one, on a client of ioredis of its own. */
  holdfast(options: HoldfastOptions = {}, client: object = this.ioredis()): Holdfast {
    const holdfast = new Holdfast(client, options)
    this.atEnd(() => holdfast.close({ drain: 0 }))
    return holdfast
  }

  /** A proxy before the server. */
  async proxy(): Promise<Proxy> {
    const proxy = await startProxy({ port: this.port })
    this.atEnd(() => {
      proxy.close()
    })
    return proxy
  }

  /** One command over a bare connection. */
  async command(...words: readonly (string | number)[]): Promise<Value> {
    this.#raw ??= await raw(this.port)
    return this.#raw.command(...words)
  }

  /** The bare connection anew, after the server was restarted or has cut it. */
  async reconnect(): Promise<void> {
    await this.#raw?.[Symbol.asyncDispose]()
    this.#raw = undefined
  }

  /** How often the server ran each command since {@link forgetCalls}. */
  async calls(): Promise<ReadonlyMap<string, number>> {
    const info = String(await this.command('INFO', 'commandstats'))
    const lines = [...info.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)]
    return new Map(lines.map(([, name = '', calls]) => [name, Number(calls)]))
  }

  /** How many scripts the server was sent since {@link forgetCalls}. */
  async scripts(): Promise<number> {
    const calls = await this.calls()
    return (calls.get('evalsha') ?? 0) + (calls.get('eval') ?? 0)
  }

  async forgetCalls(): Promise<void> {
    await this.command('CONFIG', 'RESETSTAT')
  }

  /** Resolves when that key is gone. */
  untilGone(key: string): Promise<void> {
    return eventually(async () => (await this.command('EXISTS', key)) === 0, `${key} is gone`)
  }

  /** Records the events of a diagnostics channel. */
  hear<N extends keyof HoldfastEvents>(name: N): Heard<N> {
    const heard: Heard<N> = []
    const listener = (event: unknown): void => {
      heard.push(event as HoldfastEvents[N])
    }
    subscribe(name, listener)
    this.atEnd(() => unsubscribe(name, listener))
    return heard
  }

  /** What is to be ended with the scene; the last first. */
  atEnd(ending: () => unknown): void {
    this.#endings.push(ending)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const ending of this.#endings.reverse()) await ending()
    await this.#raw?.[Symbol.asyncDispose]()
    await this.server.stop()
  }
}

/** The channel on which releases of a re-entrant lock are told. */
export function channelOf(name: string): string {
  return `redisson_lock__channel:{${name}}`
}

/** A promise and its handles. */
export class Door {
  readonly opened: Promise<void>
  #open: () => void = () => undefined

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#open()
  }
}

/** Whether a promise has settled, without waiting for it. */
export function watch(promise: Promise<unknown>): { readonly settled: boolean } {
  const state = { settled: false }
  const done = (): void => {
    state.settled = true
  }
  promise.then(done, done)
  return state
}
