import { diagnose } from '../diagnostics.js'
import { globEscape } from '../glob.js'
import { ClosedError, HoldfastError, UnavailableError } from '../errors.js'
import type { Lease } from '../lease/lease.js'
import type { Runtime } from '../lease/runtime.js'
import type { ExclusiveLock } from '../locks/holder-lock.js'
import { callbacksOf, type Callbacks } from './callbacks.js'
import type { Change, WatchCallback, WatchErrorCallback, WatchEvent } from './change.js'
import { Changes, type Over } from './changes.js'
import type { Difference } from './compare.js'
import { Marks } from './marks.js'
import { Observer, type Baseline } from './observer.js'
import { checkCallback, checkInterval, type ResolvedWatchOptions } from './watch-options.js'

/**
 * `starting` the first look is under way; `waiting` another process holds the lock that this watch is under;
 * `notifications` the server tells of writes; `polling` it does not, or not of all; `ended`.
 */
export type WatchMode = 'starting' | 'waiting' | 'notifications' | 'polling' | 'ended'

/**
 * Watches data in Redis: any keys, whoever writes them. (What Redisson calls its watchdog is something else: the
 * renewal of locks.) It compares looks: what is told is how a key differs from the last look, so that a value that
 * changed twice in between is told once, and one that is the old one again, not at all.
 */
export interface Watch extends AsyncIterable<Change, undefined>, AsyncDisposable {
  /** Resolves when every key was looked at once: each later change is told. Under a lock also when another process holds it. @throws what ended the watch before that */
  readonly ready: Promise<void>
  /** How it learns of changes right now. */
  readonly mode: WatchMode
  /** Milliseconds between two looks; may be set at any time, at once. @throws TypeError or RangeError outside 10…2^53−1 */
  interval: number
  /** Adds a callback. @throws TypeError for an event that there is not */
  on(event: WatchEvent, callback: WatchCallback): this
  /** Adds a callback for errors. */
  on(event: 'error', callback: WatchErrorCallback): this
  /** Takes a callback away. */
  off(event: WatchEvent, callback: WatchCallback): this
  /** Takes a callback for errors away. */
  off(event: 'error', callback: WatchErrorCallback): this
  /** Ends the watch; iterations end. Resolves when no callback runs any more. Idempotent, never rejects. */
  close(): Promise<void>
  /** Buffers from now on; the first one of a watch without callbacks, from the watch's start. Leaving its loop ends such a watch. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Change, undefined>
}

/** What to watch, with full keys. */
export interface WatchRequest {
  /** The keys as they were given, or the pattern. */
  readonly keys: string | readonly string[]
  readonly options: ResolvedWatchOptions
  /** The full name of the lock that it is under. */
  readonly lockName: string | undefined
}

const EVENTS: ReadonlySet<string> = new Set(['change', 'delete', 'expire', 'error'])
const CHECK_EVERY = 10
const RETRY_MS = 1_000
const ignore = (): void => undefined
const directly = (work: () => Promise<void>): Promise<void> => work()

/** How one observation tells of what it finds. */
interface Delivery {
  readonly signal: AbortSignal
  run(work: () => Promise<void>): Promise<void>
  /** `atMs`: the wall clock when it was seen. */
  handled?(key: string, difference: Difference, atMs: number): Promise<void>
}

/** The watch behind the interface. */
export class DataWatch implements Watch {
  readonly ready: Promise<void>
  readonly #runtime: Runtime
  readonly #request: WatchRequest
  readonly #title: string
  readonly #callbacks: Callbacks
  readonly #iterations = new Set<Changes>()
  /** Of a watch without callbacks, until somebody takes it. */
  #firstIteration: Changes | undefined
  readonly #ending = new AbortController()
  #over: Over | undefined
  #intervalMs: number
  #observer: Observer | undefined
  #isReady = false
  #waiting = false
  #settleReady: { resolve(): void; reject(reason: unknown): void } = { resolve: ignore, reject: ignore }
  readonly #forget: () => void
  readonly #work: Promise<void>

  constructor(runtime: Runtime, request: WatchRequest) {
    const { options, keys } = request
    this.#runtime = runtime
    this.#request = request
    this.#title = typeof keys === 'string' ? `pattern '${keys}'` : keys.map((key) => `'${key}'`).join(', ')
    this.#intervalMs = options.intervalMs
    this.#callbacks = callbacksOf(this.#title, options)
    this.ready = new Promise((resolve, reject) => {
      this.#settleReady = { resolve, reject }
    })
    // Whoever does not ask is not to hear of it either.
    this.ready.catch(ignore)
    if (this.#callbacks.size === 0 && options.under === undefined) this.#firstIteration = this.#iterate()
    this.#forget = runtime.atClose(() => {
      this.#end({ reason: new ClosedError() })
      return this.#callbacks.idle()
    })
    this.#listenTo(options.signal)
    this.#work = this.#start()
  }

  get mode(): WatchMode {
    if (this.#over !== undefined) return 'ended'
    if (this.#waiting) return 'waiting'
    return this.#isReady && this.#observer !== undefined ? this.#observer.mode : 'starting'
  }

  get interval(): number {
    return this.#intervalMs
  }

  set interval(ms: number) {
    this.#intervalMs = checkInterval(ms)
    this.#observer?.readjust()
  }

  on(event: WatchEvent | 'error', callback: WatchCallback | WatchErrorCallback): this {
    this.#callbacks.add(checkEvent(event), checkCallback(callback, 'The callback'))
    this.#observer?.readjust()
    return this
  }

  off(event: WatchEvent | 'error', callback: WatchCallback | WatchErrorCallback): this {
    this.#callbacks.remove(checkEvent(event), checkCallback(callback, 'The callback'))
    this.#observer?.readjust()
    return this
  }

  async close(): Promise<void> {
    this.#end('done')
    await Promise.all([this.#callbacks.idle(), this.#work])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Change, undefined> {
    if (this.#request.options.under !== undefined)
      throw new TypeError('A watch under a lock has callbacks only: when they are done, a change is handled')
    const changes = this.#firstIteration ?? this.#iterate()
    this.#firstIteration = undefined
    if (this.#over !== undefined) changes.end(this.#over)
    return changes
  }

  #iterate(): Changes {
    const changes = new Changes(this.#request.options.buffer, {
      onWaiting: () => this.#observer?.readjust(),
      onLeave: (left) => {
        this.#iterations.delete(left)
        if (this.#iterations.size === 0 && this.#callbacks.size === 0) this.#end('done')
      },
    })
    this.#iterations.add(changes)
    return changes
  }

  #listenTo(signal: AbortSignal | undefined): void {
    if (signal === undefined) return
    const onAbort = (): void => {
      this.#end({ reason: signal.reason })
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#ending.signal.addEventListener('abort', () => {
      signal.removeEventListener('abort', onAbort)
    })
    if (signal.aborted) onAbort()
  }

  #end(over: Over): void {
    if (this.#over !== undefined) return
    this.#over = over
    this.#forget()
    this.#observer?.stop()
    this.#callbacks.forget()
    const reason: unknown =
      over === 'done' ? new DOMException('The watch was closed', 'AbortError') : over.reason
    this.#ending.abort(reason)
    for (const changes of this.#iterations) changes.end(over)
    this.#settleReady.reject(reason)
  }

  async #start(): Promise<void> {
    // The caller has this turn to add callbacks.
    await Promise.resolve()
    const { under } = this.#request.options
    try {
      if (under === undefined) await this.#observe({ signal: this.#ending.signal, run: directly }, undefined)
      else while (this.#over === undefined) await this.#campaign(under)
    } catch (error) {
      if (this.#over !== undefined) return
      const reason = this.#unavailable(error)
      this.#callbacks.report(reason, undefined)
      this.#end({ reason })
    }
  }

  /** Observes until the watch ends, or the delivery's signal aborts. */
  async #observe(delivery: Delivery, baseline: Baseline | undefined, marks?: Marks): Promise<void> {
    if (this.#over !== undefined || delivery.signal.aborted) return
    const observer = this.#makeObserver(delivery, baseline, marks)
    this.#observer = observer
    const stop = (): void => {
      observer.stop()
    }
    delivery.signal.addEventListener('abort', stop)
    try {
      await observer.run()
    } finally {
      delivery.signal.removeEventListener('abort', stop)
      this.#observer = undefined
    }
  }

  #makeObserver(delivery: Delivery, baseline: Baseline | undefined, marks: Marks | undefined): Observer {
    const { keys, options } = this.#request
    const prefix = this.#runtime.commands.engine.keyPrefix
    const observer: Observer = new Observer(this.#runtime, {
      title: this.#title,
      keys: typeof keys === 'string' ? [] : keys.map((key) => prefix + key),
      pattern: typeof keys === 'string' ? globEscape(prefix) + keys : undefined,
      notifications: options.notifications,
      exactBytes: options.exactBytes,
      baseline,
      intervalMs: () => this.#intervalMs,
      keepAlive: () => this.#keepsAlive(),
      onDifference: (key, difference) => {
        this.#deliver(key.slice(prefix.length), { difference, delivery, key })
      },
      onReady: () => {
        if (marks === undefined) this.#markReady()
        else this.#trying(marks.begin(observer.view(), baseline ?? { keys: new Map(), complete: false }))
      },
      onTrouble: (error) => {
        this.#callbacks.report(this.#unavailable(error), undefined)
      },
      onCheck: () => {
        if (marks !== undefined && this.#isReady) this.#trying(marks.keep())
      },
    })
    return observer
  }

  /** Notes that could not be written are told; the next holder of the lock then handles something once more. */
  #trying(work: Promise<void>): void {
    work.then(
      () => {
        this.#markReady()
      },
      (error: unknown) => {
        this.#callbacks.report(error, undefined)
        this.#markReady()
      },
    )
  }

  #markReady(): void {
    this.#isReady = true
    this.#settleReady.resolve()
  }

  #deliver(
    name: string,
    { key, difference, delivery }: { key: string; difference: Difference; delivery: Delivery },
  ): void {
    const { event, created, look } = difference
    const gone = event !== 'change'
    const change: Change = Object.freeze({
      event,
      key: name,
      created,
      type: look.type,
      ttl: gone ? 0 : look.ttlMs < 0 ? Infinity : look.ttlMs,
      sampled: !look.exact,
      merged: 0,
      signal: delivery.signal,
    })
    for (const changes of this.#iterations) changes.push(change)
    if (this.#callbacks.size === 0 && delivery.handled === undefined) return
    const atMs = this.#runtime.clock.wall()
    const handled = (): Promise<void> => delivery.handled?.(key, difference, atMs) ?? Promise.resolve()
    this.#callbacks.push({ change, handled }, (work) => delivery.run(work))
  }

  /** Waits for the lock, and observes while it is held. */
  async #campaign(lock: ExclusiveLock): Promise<void> {
    const { signal } = this.#ending
    let lease: Lease | null
    try {
      lease = await lock.tryAcquire({ signal })
      if (lease === null) {
        this.#waiting = true
        this.#settleReady.resolve()
        lease = await lock.acquire({ signal })
      }
    } catch (error) {
      if (this.#over !== undefined) return
      await this.#noLock(error)
      return
    } finally {
      this.#waiting = false
    }
    try {
      await this.#lead(lease)
    } finally {
      await this.#callbacks.idle()
      await lease.release()
    }
  }

  async #noLock(error: unknown): Promise<void> {
    if (error instanceof HoldfastError && error.code === 'HOLDFAST_CLOSED') throw error
    this.#callbacks.report(error, undefined)
    await this.#pause(Math.max(this.#intervalMs, RETRY_MS))
  }

  async #lead(lease: Lease): Promise<void> {
    const { lockName, keys } = this.#request
    const marks = new Marks(this.#runtime, {
      name: lockName ?? '',
      title: this.#title,
      pattern: typeof keys === 'string' ? keys : undefined,
      checkMs: () => this.#intervalMs * CHECK_EVERY,
    })
    const delivery: Delivery = {
      signal: AbortSignal.any([lease.signal, this.#ending.signal]),
      // A lost lease throws here, and the change is left to the next holder.
      run: (work) => lease.run(work),
      handled: async (key, { event, look }, atMs) => {
        // Whoever holds the lock by now knows more.
        if (!lease.held) return
        await marks.handled(key, event === 'change' ? look : { ...look, type: undefined }, atMs)
      },
    }
    const baseline = await this.#baseline(marks, lease)
    if (baseline === undefined) return
    await this.#observe(delivery, baseline, marks)
    // What was not begun is left to the next holder.
    this.#callbacks.forget()
    if (this.#over === undefined)
      diagnose(this.#title, 'watch-trouble', `The watch of ${this.#title} lost its lock`)
  }

  /** What was handled before; undefined: lock or watch ended meanwhile. */
  async #baseline(marks: Marks, lease: Lease): Promise<Baseline | undefined> {
    for (let told = false; this.#over === undefined && lease.held; told = true) {
      try {
        return await marks.read()
      } catch (error) {
        if (!told) this.#callbacks.report(error, undefined)
        await this.#pause(Math.min(this.#intervalMs, RETRY_MS))
      }
    }
    return undefined
  }

  async #pause(ms: number): Promise<void> {
    if (this.#over !== undefined) return
    const { signal } = this.#ending
    await new Promise<void>((resolve) => {
      const over = (): void => {
        timer.cancel()
        signal.removeEventListener('abort', over)
        resolve()
      }
      const timer = this.#runtime.clock.setTimer(over, ms, this.#keepsAlive())
      signal.addEventListener('abort', over)
    })
  }

  #keepsAlive(): boolean {
    for (const changes of this.#iterations) if (changes.waiting) return true
    return this.#request.options.keepAlive && (this.#callbacks.size > 0 || !this.#isReady)
  }

  #unavailable(error: unknown): Error {
    if (error instanceof HoldfastError) return error
    const why = error instanceof Error ? error.message : String(error)
    const terms = { outcome: 'not-applied', cause: error } as const
    return new UnavailableError(`The watch of ${this.#title}: ${why}`, undefined, terms)
  }
}

function checkEvent(event: unknown): WatchEvent | 'error' {
  if (typeof event === 'string' && EVENTS.has(event)) return event as WatchEvent | 'error'
  throw new TypeError(`There is no event ${String(event)}; there are ${[...EVENTS].join(', ')}`)
}
