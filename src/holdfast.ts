import type { Clock } from './clock.js'
import type { Engine, Topic } from './engine/engine.js'
import { MemoryEngine } from './engine/memory/memory-engine.js'
import { MemoryStore, sharedStore } from './engine/memory/memory-store.js'
import { connectTo } from './engine/redis/clients/connect.js'
import { createPort, subscriberFrom } from './engine/redis/clients/detect.js'
import type { ClientPort, SubscriberEvents, SubscriberPort } from './engine/redis/clients/port.js'
import { RedisEngine } from './engine/redis/redis-engine.js'
import { ClosedError, UnavailableError } from './errors.js'
import { checkPolicy, exponentialBackoff } from './lease/backoff.js'
import type { Lease } from './lease/lease.js'
import { Runtime } from './lease/runtime.js'
import type { Target } from './lease/target.js'
import { TokenLock, type FencedLock } from './locks/fenced-lock.js'
import type { FairLock, FairLockOptions } from './locks/fair-lock.js'
import { HolderLock, LeaseLock, type ExclusiveLock } from './locks/holder-lock.js'
import type { Lock, LockOptions } from './locks/lock.js'
import { MultiLockObject, type MultiLock } from './locks/multi-lock.js'
import type { Mutex } from './locks/mutex.js'
import { redOf, RedLockObject, type RedLock, type RedLockOptions } from './locks/red-lock.js'
import type { ReadWriteLock } from './locks/read-write-lock.js'
import type { SpinLock, SpinLockOptions } from './locks/spin-lock.js'
import { CountedLatch, type CountDownLatch } from './synchronizers/count-down-latch.js'
import {
  LeasedSemaphore,
  type PermitSemaphore,
  type PermitSemaphoreOptions,
} from './synchronizers/permit-semaphore.js'
import { CountedSemaphore, type Semaphore, type SemaphoreOptions } from './synchronizers/semaphore.js'
import { checkName, describe, duration, refuseUnknown, wholeNumber } from './option-checks.js'
import { resolveHoldfastOptions, type HoldfastOptions, type ResolvedHoldfastOptions } from './options.js'
import {
  resolveWatchKeys,
  resolveWatchOptions,
  type WatchKeys,
  type WatchOptions,
} from './watch/watch-options.js'
import { DataWatch, type Watch } from './watch/watch.js'

/** How to close. */
export interface CloseOptions {
  /** How long held leases may go on before they are ended, in milliseconds. 0…2^53−1. @defaultValue 10 000 */
  readonly drain?: number | undefined
}

/** What a `Holdfast` has to do right now. */
export interface HoldfastStats {
  /** Owners that hold a lock, and handles of bare permits that were not given back. */
  readonly held: number
  /** Calls that have not got their lock yet. */
  readonly waiting: number
  /** Locks, semaphores and latches with at least one waiting call. */
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
const PERMIT_SEMAPHORE_KEYS: ReadonlySet<string> = new Set<keyof PermitSemaphoreOptions>(['permits'])
const CLOSE_KEYS: ReadonlySet<string> = new Set<keyof CloseOptions>(['drain'])
const SPIN_KEYS: ReadonlySet<string> = new Set<keyof SpinLockOptions>(['backoff'])
const BACKOFF = exponentialBackoff()
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
    const reentrant = reentrantOption(options, 'lock options')
    return new HolderLock(this.#runtime, this.#target('lock', name), reentrant)
  }

  /** The lock of this name that serves its waiters in the order of their coming. @throws TypeError or RangeError for a bad name or option */
  fairLock(name: string, options: FairLockOptions = {}): FairLock {
    const reentrant = reentrantOption(options, 'fair lock options')
    return new HolderLock(this.#runtime, this.#target('fair', name), reentrant)
  }

  /** The lock of this name whose leases carry a fencing token. @throws TypeError or RangeError for a bad name */
  fencedLock(name: string): FencedLock {
    return new TokenLock(this.#runtime, this.#target('fenced', name))
  }

  /** The lock of this name that is waited for by trying again. @throws TypeError or RangeError for a bad name or option */
  spinLock(name: string, options: SpinLockOptions = {}): SpinLock {
    refuseUnknown(options, SPIN_KEYS, 'spin lock options')
    const backoff = options.backoff === undefined ? BACKOFF : checkPolicy(options.backoff)
    const target = this.#target('spin', name)
    return new LeaseLock<Lease>(this.#runtime, {
      target,
      reentrant: true,
      backoff,
      present: (lease) => lease,
    })
  }

  /** The read/write lock of this name. @throws TypeError or RangeError for a bad name */
  readWriteLock(name: string): ReadWriteLock {
    const read = new HolderLock(this.#runtime, this.#target('read', name), true)
    const write = new HolderLock(this.#runtime, this.#target('write', name), true)
    return { name, read, write }
  }

  /** The plain lock of this name. @throws TypeError or RangeError for a bad name */
  mutex(name: string): Mutex {
    return new HolderLock(this.#runtime, this.#target('mutex', name), false)
  }

  /**
   * Several locks as one, all or none: of any kinds, of this and of other Holdfasts. One that is given twice is taken
   * once. @throws TypeError for what is no lock; RangeError for none, and for two kinds of lock under one name
   */
  multiLock(locks: readonly ExclusiveLock[]): MultiLock {
    return new MultiLockObject(this.#runtime, locks)
  }

  /**
   * One lock over several independent servers, held by whoever has a majority of them: three or five. The members are
   * those that are given, whichever Holdfast is asked.
   * @throws TypeError for what is no Holdfast, and for a bad name or option; RangeError for none, and for one given twice
   */
  redLock(name: string, members: readonly Holdfast[], options: RedLockOptions = {}): RedLock {
    if (!Array.isArray(members))
      throw new TypeError(`members must be an array of Holdfasts, but is ${describe(members)}`)
    if (members.length === 0) throw new RangeError('members must not be empty')
    if (new Set(members).size < members.length)
      throw new RangeError('members must be different Holdfasts, each on a server of its own')
    const places = members.map((member: unknown, i) => {
      if (typeof member !== 'object' || member === null || !(#runtime in member))
        throw new TypeError(`members must hold Holdfasts, but one of them is ${describe(member)}`)
      const target = member.#target('lock', name)
      const title = members.length === 1 ? name : `${name} (member ${String(i)})`
      return { runtime: member.#runtime, target: { ...target, title } }
    })
    return new RedLockObject(this.#runtime, redOf(name, places, options))
  }

  /** The semaphore of this name: a bare number of permits. @throws TypeError or RangeError for a bad name or option */
  semaphore(name: string, options: SemaphoreOptions = {}): Semaphore {
    return new CountedSemaphore(this.#runtime, this.#named(name), options)
  }

  /** The count-down latch of this name. @throws TypeError or RangeError for a bad name */
  countDownLatch(name: string): CountDownLatch {
    return new CountedLatch(this.#runtime, this.#named(name, 'latch'))
  }

  /** The semaphore of this name whose permits have ids and leases. @throws TypeError or RangeError for a bad name or option */
  permitSemaphore(name: string, options: PermitSemaphoreOptions = {}): PermitSemaphore {
    refuseUnknown(options, PERMIT_SEMAPHORE_KEYS, 'permit semaphore options')
    const total = options.permits === undefined ? undefined : wholeNumber(options.permits, 'permits')
    return new LeasedSemaphore(this.#runtime, { ...this.#target('permits', name), total })
  }

  /**
   * Watches data: a key, several, or all that fit a pattern, whoever writes them. Starts at once. Keys are what your
   * client calls them: a prefix of the client applies, `keyPrefix` and `nameMapper` do not.
   * @throws TypeError or RangeError for bad keys, pattern or options, and for a pattern on a cluster; ClosedError
   */
  watch(keys: WatchKeys, options?: WatchOptions): Watch {
    const resolved = resolveWatchOptions(options)
    const what = resolveWatchKeys(keys)
    if (typeof what === 'string') this.#backing.engine.checkPattern(what)
    const { under } = resolved
    const lockName = under === undefined ? undefined : this.#target('lock', under.name).name
    if (this.#runtime.closing) throw new ClosedError()
    return new DataWatch(this.#runtime, { keys: what, options: resolved, lockName })
  }

  /** What there is to do right now; everything is 0 when idle. */
  stats(): HoldfastStats {
    return this.#runtime.stats()
  }

  /**
   * Ends gracefully. From now on what acquires or waits gets a `ClosedError`: `acquire`, `using` and their kin,
   * `latch.wait`, `watch`, and all that wait already. Held leases stay renewed until their work ends or
   * `drain` is over, then their signals abort with reason `closed`. A lease whose callback has not settled is left to
   * expire, never released under running work; others are released. Nested uses inside running work still enter, and
   * until the end of it all goes on that needs no waiting: `release` and `extend`, `countDown` and `trySetCount`, `add`,
   * `drain` and `trySet`, and what only looks. After it they get a `ClosedError`, too. Only connections that
   * Holdfast opened are closed. Idempotent; never rejects for a good `drain`.
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
    return { family, ...this.#named(title) }
  }

  #named(title: string, family?: Topic['family']): { readonly name: string; readonly title: string } {
    const { engine } = this.#backing
    const mapped = this.#settings.nameMapper(checkName(title))
    const name = engine.keyPrefix + this.#settings.keyPrefix + checkName(mapped)
    engine.checkName(name, family)
    return { name, title }
  }
}

function reentrantOption(options: LockOptions, what: string): boolean {
  refuseUnknown(options, LOCK_KEYS, what)
  const { reentrant = true } = options
  if (typeof reentrant === 'boolean') return reentrant
  throw new TypeError(`reentrant must be a boolean, but is ${describe(reentrant)}`)
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
    shardedPubSub: settings.shardedPubSub,
    replication: settings.replication,
    patienceMs: settings.commandTimeout,
  })
  return { engine, close: () => Promise.resolve() }
}

function subscriberOf(
  client: unknown,
  port: ClientPort,
  { subscriber }: ResolvedHoldfastOptions,
): ((events: SubscriberEvents, sharded: boolean) => SubscriberPort) | undefined {
  if (subscriber === 'off') return undefined
  if (subscriber === 'auto') return (events, sharded) => port.subscriber(events, sharded)
  if (subscriber === client)
    throw new TypeError(
      'subscriber must be a client of its own: in subscriber mode the other one would take no commands',
    )
  // Made once for nothing: a wrong one is refused here, and not where the first waiter needs it.
  subscriberFrom(subscriber, DEAF)
  return (events) => subscriberFrom(subscriber, events)
}
