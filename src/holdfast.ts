import type { Clock } from './clock.js'
import type { Engine } from './engine/engine.js'
import { MemoryEngine } from './engine/memory/memory-engine.js'
import { MemoryStore, sharedStore } from './engine/memory/memory-store.js'
import { connectTo } from './engine/redis/clients/connect.js'
import { createPort, subscriberFrom } from './engine/redis/clients/detect.js'
import type { ClientPort, SubscriberEvents, SubscriberPort } from './engine/redis/clients/port.js'
import { RedisEngine } from './engine/redis/redis-engine.js'
import { UnavailableError } from './errors.js'
import { Runtime } from './lease/runtime.js'
import type { Target } from './lease/target.js'
import { HolderLock } from './locks/holder-lock.js'
import type { Lock, LockOptions } from './locks/lock.js'
import type { Mutex } from './locks/mutex.js'
import {
  checkName,
  describe,
  duration,
  refuseUnknown,
  resolveHoldfastOptions,
  type HoldfastOptions,
  type ResolvedHoldfastOptions,
} from './options.js'

/** How to close. */
export interface CloseOptions {
  /** How long held leases may go on before they are ended, in milliseconds. 0…2^53−1. @defaultValue 10 000 */
  readonly drain?: number | undefined
}

/** What a `Holdfast` has to do right now. */
export interface HoldfastStats {
  /** Owners that hold a lock. */
  readonly held: number
  /** Calls that have not got their lock yet. */
  readonly waiting: number
  /** Locks with at least one waiting call. */
  readonly contests: number
  /** Releases under way. */
  readonly pending: number
  /** Calls of unknown outcome that are being undone. */
  readonly compensating: number
}

/** An engine that was made elsewhere, and what has to be closed after it. */
interface Backing {
  readonly engine: Engine
  close(): Promise<void>
}

const LOCK_KEYS: ReadonlySet<string> = new Set<keyof LockOptions>(['reentrant'])
const CLOSE_KEYS: ReadonlySet<string> = new Set<keyof CloseOptions>(['drain'])
const DRAIN_MS = 10_000
const ignore = (): void => undefined
const DEAF: SubscriberEvents = { onMessage: ignore, onResync: ignore, onDown: ignore }

/** Makes every lock. One per process and server is enough; it owns the watchdog and the subscriber connection. */
export class Holdfast implements AsyncDisposable {
  readonly #settings: ResolvedHoldfastOptions
  readonly #runtime: Runtime
  readonly #backing: Backing
  #closed: Promise<void> | undefined

  /**
   * On a client of yours: ioredis 5 or 6, node-redis 5 or 6, recognised by shape. No I/O. The client stays yours: it
   * is never closed, and none of its settings are relied on.
   * @throws TypeError for something that is not a client or is in subscriber mode, and for bad options
   */
  constructor(client: object, options?: HoldfastOptions) {
    this.#settings = resolveHoldfastOptions(options)
    this.#backing =
      client instanceof PreparedBacking ? client.make(this.#settings) : onClient(client, this.#settings)
    this.#runtime = new Runtime(this.#backing.engine, this.#settings)
  }

  /**
   * Connects by address: `redis://` and `rediss://` with the client that is installed, `memory:` a private store in
   * this process, `memory:x` one that all of this process share. Resolves when the server has answered a PING.
   * @throws TypeError for another address, and if no client is installed; UnavailableError if the server refuses, or has
   * not answered within the longer of `commandTimeout` and `unavailableAfter`
   */
  static async connect(url: string, options?: HoldfastOptions): Promise<Holdfast> {
    if (typeof url !== 'string') throw new TypeError(`The address must be a string, but is ${describe(url)}`)
    const { commandTimeout, unavailableAfter } = resolveHoldfastOptions(options)
    if (url.startsWith('memory:'))
      return new Holdfast(inMemory(url.slice('memory:'.length), options?.clock), options)
    if (!/^rediss?:\/\//.test(url))
      throw new TypeError(
        `The address must begin with redis://, rediss:// or memory:, but is ${JSON.stringify(url)}`,
      )
    const own = await connectTo(url, Math.max(commandTimeout, unavailableAfter)).catch((error: unknown) => {
      if (error instanceof TypeError) throw error
      throw new UnavailableError(`Cannot connect: ${String(error)}`, undefined, {
        outcome: 'not-applied',
        cause: error,
      })
    })
    const backing = new PreparedBacking((settings) => ({
      ...onClient(own.client, settings),
      close: () => own.close(),
    }))
    try {
      return new Holdfast(backing, options)
    } catch (error) {
      await own.close()
      throw error
    }
  }

  /** The re-entrant lock of this name. Cheap; make it anew as often as you like. @throws TypeError or RangeError for a bad name or option */
  lock(name: string, options: LockOptions = {}): Lock {
    refuseUnknown(options, LOCK_KEYS, 'lock options')
    const { reentrant = true } = options
    if (typeof reentrant !== 'boolean')
      throw new TypeError(`reentrant must be a boolean, but is ${describe(reentrant)}`)
    return new HolderLock(this.#runtime, this.#target('lock', name), reentrant)
  }

  /** The plain lock of this name. @throws TypeError or RangeError for a bad name */
  mutex(name: string): Mutex {
    return new HolderLock(this.#runtime, this.#target('mutex', name), false)
  }

  /** What there is to do right now; everything is 0 when idle. */
  stats(): HoldfastStats {
    return this.#runtime.stats()
  }

  /**
   * Ends gracefully: new calls and waiters get a `ClosedError`; held leases stay renewed until their work ends or
   * `drain` is over, then their signals abort with reason `closed`. A lease whose callback has not settled is left to
   * expire, never released under running work; others are released. Nested uses inside running work still enter.
   * Only connections that Holdfast opened are closed. Idempotent; never rejects for a good `drain`.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    refuseUnknown(options, CLOSE_KEYS, 'close options')
    const drainMs = duration(options.drain, 'drain', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? DRAIN_MS
    await (this.#closed ??= this.#runtime.close(drainMs).then(() => this.#backing.close()))
  }

  /** `close()` with the default drain. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #target(family: Target['family'], title: string): Target {
    const { engine } = this.#backing
    const mapped = this.#settings.nameMapper(checkName(title))
    const name = engine.keyPrefix + this.#settings.keyPrefix + checkName(mapped)
    engine.checkName(name)
    return { family, name, title }
  }
}

/** Carries an engine through the public constructor. */
class PreparedBacking {
  readonly make: (settings: ResolvedHoldfastOptions) => Backing

  constructor(make: (settings: ResolvedHoldfastOptions) => Backing) {
    this.make = make
  }
}

function inMemory(name: string, clock: Clock | undefined): PreparedBacking {
  return new PreparedBacking(() => ({
    engine: new MemoryEngine(name === '' ? new MemoryStore(clock) : sharedStore(name, clock)),
    close: () => Promise.resolve(),
  }))
}

function onClient(client: unknown, settings: ResolvedHoldfastOptions): Backing {
  const port = createPort(client, settings.clock)
  if (port.readiness === 'subscriber')
    throw new TypeError(
      'The client is in subscriber mode: pass one that takes commands (Holdfast opens its subscriber itself)',
    )
  const engine = new RedisEngine(port, {
    clock: settings.clock,
    subscriber: subscriberOf(client, port, settings),
  })
  return { engine, close: () => Promise.resolve() }
}

function subscriberOf(
  client: unknown,
  port: ClientPort,
  { subscriber }: ResolvedHoldfastOptions,
): ((events: SubscriberEvents) => SubscriberPort) | undefined {
  if (subscriber === 'off') return undefined
  if (subscriber === 'auto') return (events) => port.subscriber(events)
  if (subscriber === client)
    throw new TypeError(
      'subscriber must be a client of its own: in subscriber mode the other one would take no commands',
    )
  // Made once for nothing: a wrong one is refused here, and not where the first waiter needs it.
  subscriberFrom(subscriber, DEAF)
  return (events) => subscriberFrom(subscriber, events)
}
