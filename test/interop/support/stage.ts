/** One server, one Java process with one version of Redisson, and for every test names and owners of its own. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterAll, beforeAll, test } from 'vitest'
import { Holdfast, type HoldfastEvents, type HoldfastOptions } from '../../../src/index.js'
import { ensureRedissonPeer, type RedissonPeer } from '../../../tools/redisson-peer.mjs'
import { IOREDIS_6, open } from '../../clients/variants.js'
import { eventually } from '../../support/eventually.js'
import { raw, type Messages, type Raw } from '../../support/raw.js'
import { startRedis, type RedisServer } from '../../support/server.js'
import { JavaPeer, type JavaThread, type PeerOptions } from './java-peer.js'

/** The watchdog's time-out on both sides: short, so that renewal is seen. */
export const WATCHDOG_MS = 3_000
/** A lease, or a pause between two looks, that no test lives to see the end of. */
export const AGES_MS = 600_000

const FIRST_BUILD_MS = 300_000

/** How much the contests are to do. */
export const EFFORT: number = process.env['HOLDFAST_INTEROP'] === 'full' ? 3 : 1

interface Parts {
  readonly server: RedisServer
  readonly link: Raw
  readonly java: JavaPeer
}

/** What all tests of a file share. */
export class Stage {
  readonly version: string
  #parts: Parts | undefined
  #scenes = 0
  #peer: RedissonPeer | undefined

  constructor(version: string) {
    this.version = version
    beforeAll(async () => {
      this.#peer = ensureRedissonPeer(version)
      const server = await startRedis()
      const java = await this.startJava([server.port])
      this.#parts = { server, java, link: await raw(server.port) }
    }, FIRST_BUILD_MS)
    afterAll(async () => {
      await this.#parts?.java.kill()
      await this.#parts?.link[Symbol.asyncDispose]()
      await this.#parts?.server.stop()
    })
  }

  /** Declares a test. Tests of a file run side by side: each looks only at what is its own. */
  test(name: string, body: (scene: Scene) => Promise<void>): void {
    test.concurrent(name, async () => {
      this.#scenes += 1
      const scene = new Scene(this, this.#scenes)
      try {
        await body(scene)
      } finally {
        await scene.end()
      }
    })
  }

  /** Whether this Redisson is of that version or newer. */
  since(version: string): boolean {
    const [ours, theirs] = [this.version, version].map((words) => words.split('.').map(Number))
    const at = ours?.findIndex((number, i) => number !== theirs?.[i]) ?? -1
    return at < 0 || (ours?.[at] ?? 0) > (theirs?.[at] ?? 0)
  }

  get parts(): Parts {
    if (this.#parts === undefined) throw new Error('outside of a test')
    return this.#parts
  }

  /** One more Java process, with a client per server. */
  startJava(ports: readonly number[], options: Partial<PeerOptions> = {}): Promise<JavaPeer> {
    if (this.#peer === undefined) throw new Error('outside of a test')
    return JavaPeer.start(this.#peer, ports, { watchdogMs: WATCHDOG_MS, ...options })
  }
}

/** What one test has. */
export class Scene {
  readonly stage: Stage
  /** Nobody else's. */
  readonly name: string
  readonly #number: number
  readonly #endings: (() => unknown)[] = []

  constructor(stage: Stage, number: number) {
    this.stage = stage
    this.#number = number
    this.name = `interop:${number}`
  }

  get link(): Raw {
    return this.stage.parts.link
  }

  /** A Java thread of this test. */
  thread(title = 'main'): JavaThread {
    return this.stage.parts.java.thread(`${title}-${this.#number}`)
  }

  /** A Java process of this test. */
  async otherJava(): Promise<JavaPeer> {
    const java = await this.stage.startJava([this.stage.parts.server.port])
    this.atEnd(() => java.kill())
    return java
  }

  /** A Holdfast of this test, as a Node process would have it. */
  async holdfast(
    options: HoldfastOptions = {},
    port: number = this.stage.parts.server.port,
  ): Promise<Holdfast> {
    const client = await open(IOREDIS_6, port)
    const holdfast = new Holdfast(client.raw as object, { lockWatchdogTimeout: WATCHDOG_MS, ...options })
    this.atEnd(async () => {
      await holdfast.close({ drain: 0 })
      client.destroy()
    })
    return holdfast
  }

  /** The messages on these channels from now on. */
  hear(...channels: readonly string[]): Promise<Messages> {
    return this.link.subscribe(...channels).then((messages) => {
      this.atEnd(() => {
        messages.close()
      })
      return messages
    })
  }

  /** Collects the events about a lock. */
  events<N extends keyof HoldfastEvents>(event: N, lock: string = this.name): HoldfastEvents[N][] {
    const heard: HoldfastEvents[N][] = []
    const listener = (message: unknown) => {
      const about = message as HoldfastEvents[N]
      if (about.lock === lock) heard.push(about)
    }
    subscribe(event, listener)
    this.atEnd(() => unsubscribe(event, listener))
    return heard
  }

  /** Waits until so many connections listen to a channel. */
  async untilHeardBy(listeners: number, channel: string): Promise<void> {
    const counted = async () => {
      const reply = await this.link.command('PUBSUB', 'NUMSUB', channel)
      return Array.isArray(reply) && Number(reply[1]) >= listeners
    }
    await eventually(counted, `${listeners} listen to ${channel}`)
  }

  async ttl(key: string = this.name): Promise<number> {
    return Number(await this.link.command('PTTL', key))
  }

  atEnd(ending: () => unknown): void {
    this.#endings.push(ending)
  }

  async end(): Promise<void> {
    for (const ending of this.#endings.reverse()) await ending()
  }
}
