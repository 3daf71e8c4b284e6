/**
 * Random histories of three processes on one memory engine that loses, delays and doubles what it is asked: never
 * do two of them believe to hold one lock, every call ends, and nothing is left behind.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ManualClock } from '../../src/clock.js'
import { EngineError, newPassage, type Passage } from '../../src/engine/engine.js'
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { MemoryStore } from '../../src/engine/memory/memory-store.js'
import type { Operation, ReplyOf } from '../../src/engine/operations.js'
import type { Lease } from '../../src/lease/lease.js'
import { Runtime } from '../../src/lease/runtime.js'
import { HolderLock } from '../../src/locks/holder-lock.js'
import { resolveHoldfastOptions, type AcquireOptions } from '../../src/options.js'

const SEEDS = 40
const NAMES = ['lock', 'mutex'] as const
const IDLE = { held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 }

const unhandled: unknown[] = []
const onUnhandled = (error: unknown): void => {
  unhandled.push(error)
}
const onWarning = (): undefined => undefined
beforeAll(() => {
  process.on('unhandledRejection', onUnhandled)
  process.on('warning', onWarning)
})
afterAll(() => {
  process.off('unhandledRejection', onUnhandled)
  process.off('warning', onWarning)
})

it.each(Array.from({ length: SEEDS }, (_, seed) => seed))('history %i', async (seed) => {
  const history = new History(seed)
  const workers = Array.from({ length: 8 }, () => history.work())
  for (let i = 0; i < 60; i++) await history.step()
  const ended = history.end(workers)
  for (let i = 0; i < 300 && !history.over; i++) await history.clock.advance(500)
  expect(history.over).toBe(true)
  await ended
  await history.clock.advance(150_000)
  expect(history.runtimes.map((runtime) => runtime.stats())).toEqual(history.runtimes.map(() => IDLE))
  expect(NAMES.map((name) => history.store.read(name).value)).toEqual([undefined, undefined])
  expect(history.clock.pendingTimers).toBeLessThan(history.runtimes.length * 3)
  expect(unhandled).toEqual([])
  expect(history.grants).toBeGreaterThan(5)
  expect(history.overlaps).toBe(0)
  await Promise.all(history.runtimes.map((runtime) => runtime.close(0)))
})

class History {
  readonly clock = new ManualClock()
  readonly store = new MemoryStore(this.clock)
  readonly runtimes: Runtime[] = []
  readonly random: () => number
  grants = 0
  overlaps = 0
  over = false
  readonly #engines: WildEngine[] = []
  readonly #open: Runtime[] = []
  readonly #closings: Promise<void>[] = []
  readonly #inside = new Map<string, Set<Lease>>(NAMES.map((name) => [name, new Set()]))
  #stopped = false

  constructor(seed: number) {
    this.random = randomFrom(seed)
    for (let i = 0; i < 3; i++) this.#start(i)
  }

  /** Half a second in which the engines may be away, the machine may sleep, and a process may be replaced. */
  async step(): Promise<void> {
    const { random } = this
    for (const engine of this.#engines) engine.trouble = random() < 0.2 ? 1 : 0.1
    if (random() < 0.1) this.clock.sleepMachine(random() * 5_000)
    if (random() < 0.1) {
      const place = Math.floor(random() * 3)
      this.#closings.push(this.#at(place).close(random() * 3_000))
      this.#start(place)
    }
    await this.clock.advance(500)
    this.#look()
  }

  /** No more trouble; the workers finish what they are at. */
  async end(workers: readonly Promise<void>[]): Promise<void> {
    this.#stopped = true
    for (const engine of this.#engines) engine.trouble = 0
    await Promise.all([...workers, ...this.#closings])
    this.over = true
  }

  /** One caller, acquiring again and again. */
  async work(): Promise<void> {
    while (!this.#stopped) {
      const family = this.#pick(NAMES)
      const runtime = this.#at(Math.floor(this.random() * 3))
      const lock = new HolderLock(runtime, { family, name: family, title: family }, family === 'lock')
      try {
        await this.#use(lock)
      } catch {
        await this.#sleep(5)
      }
    }
  }

  async #use(lock: HolderLock): Promise<void> {
    const options = this.#options()
    if (this.random() < 0.5) {
      await lock.using(options, (lease) => this.#hold(lock, lease, 0))
      return
    }
    const lease = this.random() < 0.5 ? await lock.acquire(options) : await lock.tryAcquire(options)
    if (lease === null) return this.#sleep(20)
    try {
      await lease.run(() => this.#hold(lock, lease, 0))
    } finally {
      await lease.release()
    }
  }

  async #hold(lock: HolderLock, lease: Lease, depth: number): Promise<void> {
    const { random } = this
    const nested = (options: AcquireOptions): Promise<unknown> =>
      lock.using(options, (inner) => this.#hold(lock, inner, depth + 1)).catch(() => undefined)
    const inside = this.#inside.get(lock.name)
    inside?.add(lease)
    this.grants += 1
    try {
      this.#look()
      await this.#sleep(random() * 800)
      if (random() < 0.3) await lease.extend(100 + random() * 3_000)
      if (depth < 3 && random() < 0.5) await Promise.all([nested({}), nested({ waitTime: 500 })])
      if (depth < 3 && random() < 0.1) void nested({ waitTime: 300 })
      if (random() < 0.1) await lease.release()
      if (random() < 0.05) this.clock.block(random() * 4_000)
      this.#look()
    } finally {
      inside?.delete(lease)
    }
  }

  #options(): AcquireOptions {
    const { random } = this
    const maybe = (chance: number, most: number): number | undefined =>
      random() < chance ? 200 + random() * most : undefined
    const leaseTime = maybe(0.4, 4_000)
    const minHold = random() < 0.1 ? random() * (leaseTime ?? 1_000) : undefined
    const abort = new AbortController()
    if (random() < 0.2)
      this.clock.setTimer(() => {
        abort.abort(random() < 0.5 ? 'enough' : undefined)
      }, random() * 1_000)
    return {
      waitTime: maybe(0.5, 1_300),
      leaseTime,
      maxHold: maybe(0.2, 3_000),
      minHold,
      signal: abort.signal,
    }
  }

  /** How many owners believe, right now, that they hold the same lock. */
  #look(): void {
    for (const leases of this.#inside.values()) {
      const owners = new Set([...leases].filter((lease) => lease.held).map((lease) => lease.owner))
      if (owners.size > 1) this.overlaps += 1
    }
  }

  #start(place: number): void {
    const engine = new WildEngine(this)
    const times = { lockWatchdogTimeout: 3_000, commandTimeout: 500, unavailableAfter: 2_000 }
    const runtime = new Runtime(engine, resolveHoldfastOptions({ ...times, clock: this.clock }))
    this.#engines.push(engine)
    this.#open[place] = runtime
    this.runtimes.push(runtime)
  }

  #at(place: number): Runtime {
    const runtime = this.#open[place]
    if (runtime === undefined) throw new Error(`no process ${String(place)}`)
    return runtime
  }

  #pick<T>(all: readonly [T, T]): T {
    return all[this.random() < 0.5 ? 0 : 1]
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(resolve, ms))
  }
}

/** Refuses, executes without an answer, answers late, executes twice, or executes when nobody waits any more. */
class WildEngine extends MemoryEngine {
  /** The part of all operations that something happens to. */
  trouble = 0.1
  readonly #history: History

  constructor(history: History) {
    super(history.store)
    this.#history = history
  }

  override async execute<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    const { random, clock } = this.#history
    const fate = random() / this.trouble
    const run = (): Promise<ReplyOf<O>> => super.execute(operation, newPassage())
    passage.sends += 1
    if (passage.sends === 1) passage.firstSentAtMs = clock.now()
    if (fate < 0.1) throw trouble('not-applied')
    if (fate < 0.2) {
      await run()
      throw trouble('unknown')
    }
    if (fate < 0.3) {
      void this.#later(8_000).then(run)
      throw trouble('unknown')
    }
    if (fate < 0.4) {
      await run()
      return new Promise(() => undefined)
    }
    if (fate < 0.5) void this.#later(8_000).then(run)
    if (fate < 0.7) await this.#later(400)
    const reply = await run()
    passage.once = fate >= 0.5 && passage.sends === 1
    if (fate < 0.7) await this.#later(400)
    return reply
  }

  #later(ms: number): Promise<void> {
    const { random, clock } = this.#history
    return new Promise((resolve) => clock.setTimer(resolve, random() * ms))
  }
}

function trouble(outcome: 'unknown' | 'not-applied'): EngineError {
  return new EngineError('away', { kind: 'unavailable', outcome })
}

/** Mulberry32: small, and the same on every machine. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
