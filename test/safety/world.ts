/** A server, workers that take turns on its locks, and faults; the coordinator of one run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy } from '../support/proxy.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { Control } from './control.js'
import type { Fault, Scene } from './faults.js'
import { Folder } from './folder.js'
import type { ProcessEvent, RemainingKey, Terms, WorldEvent } from './history.js'
import { Journal, now, readJournals } from './journal.js'
import type { ClientName, Manners } from './messages.js'
import { LONGEST_TTL_MS } from './plan.js'
import { Random } from './random.js'
import { Seat } from './seat.js'
import { Story } from './story.js'
import { mayRemain } from './tidiness.js'
import { judgedOf, seenOf, type Thing } from './things.js'

export interface WorldOptions {
  readonly seed: string
  readonly workers: number
  readonly things: readonly Thing[]
  /** Undefined: the workers have the one and the other in turn. */
  readonly client: ClientName | undefined
  readonly manners: Manners
  /** The file to load Holdfast from. */
  readonly source: string
}

export const WATCHDOG_MS = 1_000
const COMMAND_TIMEOUT_MS = 800
/** So that a dead waiter holds up nobody for long. */
const PLACE_MS = 2_000
const LANES = 2
const LOOK_EVERY_MS = 20
const BEAT_MS = 10
const TOLERATED_MS = 10
/** Whoever is seen for so long is in a long section. */
const SETTLED_MS = 60
const HOLDER_WITHIN_MS = 1_500
const GRANT_WITHIN_MS = LONGEST_TTL_MS + 7_000
const END_WITHIN_MS = 45_000
const TIDY_WITHIN_MS = LONGEST_TTL_MS + 3_000

export class World implements AsyncDisposable {
  /** Where the histories are. */
  readonly folder = new Folder('holdfast-safety-')
  readonly #options: WorldOptions
  readonly #random: Random
  readonly #journal: Journal
  readonly #server: RedisServer
  /** With the server, the members of red locks: a majority of them has no faults. */
  readonly #others: RedisServer[] = []
  readonly #control: Control
  readonly #seats: Seat[] = []
  /** Who was seen last in each lock, and since when. */
  readonly #holders = new Map<string, ReadonlyMap<string, number>>()
  readonly #beat: NodeJS.Timeout
  /** How a worker ended that nobody had killed or asked to end. */
  crash: string | undefined
  #kept = false
  readonly #reap = (): void => {
    for (const seat of this.#seats) seat.reap()
  }
  #looking: Promise<void> = Promise.resolve()
  #open = true
  #draining = false
  #faults = 0

  private constructor(options: WorldOptions, server: RedisServer) {
    this.#options = options
    this.#random = new Random(options.seed)
    this.#server = server
    this.#control = new Control(server.port)
    this.#journal = new Journal(this.folder.path, 'world')
    this.#beat = this.#startBeat()
    process.on('exit', this.#reap)
  }

  /** Resolves when all workers are at work. */
  static async open(options: WorldOptions): Promise<World> {
    // Without fsync, but written before any reply: whatever was answered survives kill -9.
    const server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'no'] })
    const world = new World(options, server)
    try {
      if (options.things.some(({ kind }) => kind === 'red'))
        world.#others.push(await startRedis(), await startRedis())
      for (let place = 1; place <= options.workers; place++) await world.#addSeat(place)
      await Promise.all(world.#seats.map((seat) => seat.fill()))
      world.#looking = world.#look()
      return world
    } catch (error) {
      await world[Symbol.asyncDispose]()
      throw error
    }
  }

  get terms(): Terms {
    return {
      locks: judgedOf(this.#options.things),
      longestTtlMs: LONGEST_TTL_MS,
      commandTimeoutMs: COMMAND_TIMEOUT_MS,
    }
  }

  /** The server's name and version. */
  async version(): Promise<string> {
    const info = String(await this.#control.send('INFO', 'server'))
    const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1]
    return valkey === undefined
      ? `Redis ${/^redis_version:(\S+)/m.exec(info)?.[1] ?? ''}`
      : `Valkey ${valkey}`
  }

  /** What was written down so far. */
  story(): Story {
    return new Story(readJournals(this.folder.path), this.terms)
  }

  /** Makes a fault, heals it, and waits until every lock was granted again. */
  async make(fault: Fault): Promise<void> {
    const victim = await this.#victim()
    const id = (this.#faults += 1)
    this.#tell({ is: 'fault', id, fault: fault.name, on: fault.on === 'all' ? null : victim.process })
    await fault.make(this.#scene(), victim)
    this.#tell({ is: 'heal', id })
    for (const { proxy } of this.#seats) proxy.requests.length = 0
    await this.#granted()
  }

  /** Works without faults for a while. */
  async rest(low: number, high: number): Promise<void> {
    await sleep(this.#random.between(low, high))
  }

  /** No more faults: the workers finish and end by themselves. Gives the whole history. */
  async finish(): Promise<Story> {
    this.#draining = true
    this.#tell({ is: 'drain', who: this.#seats.map(({ process }) => process) })
    for (const seat of this.#seats) seat.order({ do: 'finish' })
    await until(() => !this.#seats.some(({ alive }) => alive), END_WITHIN_MS)
    await Promise.all(this.#seats.map((seat) => seat.kill()))
    await this.#tellRemains()
    return this.story()
  }

  /** Ends everything at once, and removes the histories unless they are to be kept. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#open = false
    clearInterval(this.#beat)
    process.off('exit', this.#reap)
    await Promise.all(this.#seats.map((seat) => seat.kill()))
    for (const { proxy } of this.#seats) proxy.close()
    this.#control.close()
    await this.#looking
    await Promise.all([this.#server, ...this.#others].map((server) => server.stop()))
    if (!this.#kept) this.folder[Symbol.dispose]()
  }

  /** The histories stay, to be looked at. */
  keep(): string {
    this.#kept = true
    this.folder.keep()
    return this.folder.path
  }

  #tell(event: WorldEvent | ProcessEvent, t = now()): void {
    this.#journal.write({ t, ...event })
  }

  async #addSeat(place: number): Promise<void> {
    const { source, seed, things, manners, client } = this.#options
    const task = {
      ...{ source, seed, things, manners, folder: this.folder.path, storePort: this.#server.port },
      otherPorts: this.#others.map(({ port }) => port),
      ...{ lanes: LANES, watchdogMs: WATCHDOG_MS, commandTimeoutMs: COMMAND_TIMEOUT_MS, placeMs: PLACE_MS },
    }
    const seat = new Seat(place, await startProxy({ port: this.#server.port }), {
      task,
      client: client ?? (place % 2 === 1 ? 'ioredis' : 'node-redis'),
      onGone: (who, { at, killed, how }) => {
        this.#tell({ is: 'gone', who, killed, how }, at)
        if (!killed && !this.#draining) this.crash ??= `worker ${who}: ${how}`
      },
    })
    this.#seats.push(seat)
  }

  /** One look after the other, at all locks in turn. */
  async #look(): Promise<void> {
    while (this.#open) {
      for (const thing of seenOf(this.#options.things)) await this.#lookAt(thing)
      await sleep(LOOK_EVERY_MS)
    }
  }

  async #lookAt(thing: Thing): Promise<void> {
    const { name: lock, kind } = thing
    const from = now()
    try {
      const { holders, queue } = await this.#control.look(thing)
      this.#tell({ is: 'seen', from, lock, holders, queue: kind === 'fair' ? queue : undefined })
      const before = this.#holders.get(lock)
      this.#holders.set(lock, new Map(holders.map(({ field }) => [field, before?.get(field) ?? from])))
    } catch {
      // The server is down, and there is nothing to see.
    }
  }

  #startBeat(): NodeJS.Timeout {
    let last = now()
    return setInterval(() => {
      const t = now()
      if (t - last > BEAT_MS + TOLERATED_MS) this.#tell({ is: 'stall', from: last }, t)
      last = t
    }, BEAT_MS)
  }

  /** Mostly somebody who has been in a section for a while, and is likely to be there still. */
  async #victim(): Promise<Seat> {
    if (this.#random.chance(0.2)) return this.#random.pick(this.#seats)
    let holder: Seat | undefined
    await until(() => {
      const since = now() - SETTLED_MS
      const settled = [...this.#holders.values()].flatMap((fields) =>
        [...fields].filter(([, from]) => from < since).map(([field]) => field),
      )
      const seats = this.#seats.filter(
        ({ clientId: id }) => id !== undefined && settled.some((field) => field.startsWith(id)),
      )
      if (seats.length > 0) holder = this.#random.pick(seats)
      return holder !== undefined
    }, HOLDER_WITHIN_MS)
    return holder ?? this.#random.pick(this.#seats)
  }

  #scene(): Scene {
    return {
      server: this.#server,
      control: this.#control,
      seats: this.#seats,
      random: this.#random,
      watchdogMs: WATCHDOG_MS,
      rob: () => this.#rob(),
    }
  }

  async #rob(): Promise<void> {
    // Each of them, so that each of them is seen to bear it.
    for (const thing of seenOf(this.#options.things)) {
      const from = now()
      const fields = await this.#control.takeAway(thing)
      this.#tell({ is: 'forced', from, lock: thing.name, fields })
    }
  }

  /** Resolves when each lock was seen with another owner than now. That it takes too long is for the checker to say. */
  async #granted(): Promise<void> {
    const before = new Map(this.#holders)
    const missing = new Set(seenOf(this.#options.things).map(({ name }) => name))
    await until(() => {
      for (const name of missing) {
        const fields = [...(this.#holders.get(name)?.keys() ?? [])]
        if (fields.some((field) => before.get(name)?.has(field) !== true)) missing.delete(name)
      }
      return missing.size === 0
    }, GRANT_WITHIN_MS)
  }

  async #tellRemains(): Promise<void> {
    const tidy = async (): Promise<boolean> => {
      const channels = await this.#control.channels()
      return channels.length === 0 && (await this.#left()).every((key) => mayRemain(this.terms.locks, key))
    }
    // The link may be one to the server before its last restart.
    await this.#control.send('PING').catch(() => undefined)
    await until(tidy, TIDY_WITHIN_MS)
    this.#tell({ is: 'remains', keys: await this.#left(), channels: await this.#control.channels() })
  }

  #left(): Promise<RemainingKey[]> {
    const semaphores = this.terms.locks.filter(({ kind }) => kind === 'permits')
    return this.#control.keys(semaphores.map(({ name }) => name))
  }
}

/** Polls until the condition holds, or the time is over. */
async function until(condition: () => boolean | Promise<boolean>, ms: number): Promise<void> {
  const endAt = now() + ms
  while (!(await condition()) && now() < endAt) await sleep(20)
}
