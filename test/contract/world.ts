/** Where a contract is tried: an engine, its time, and what other programs see of it and do to it. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { afterAll, beforeAll, describe, onTestFinished, test } from 'vitest'
import type { CountingLock, ExclusiveLock, Holdfast, HoldfastOptions } from '../../src/index.js'
import type { Value } from '../support/resp.js'

/** The kinds of lock with one holder. */
export type Kind = 'fair' | 'lock' | 'mutex' | 'fenced' | 'spin' | GroupKind | Side

/** The sides of a read/write lock. What many readers may do at once is no matter of the common suites. */
export type Side = 'read' | 'write'

/** Locks made of several, here of one: they keep all the promises that a single lock makes. */
export type GroupKind = 'multi' | 'red'

/** Those that re-enter, and count. */
export type CountingKind = Exclude<Kind, 'mutex' | GroupKind>

/** What differs between the kinds, as a test sees it. */
export interface Traits {
  /** The key is a hash of owners and counts. */
  readonly hash: boolean
  /** Waiters are told of each release, and sleep until then. */
  readonly told: boolean
  /** Where releases are told, before the name. */
  readonly channel: string | undefined
}

const HASH = { hash: true, told: true, channel: 'redisson_lock__channel' }

/** The traits of each kind. */
export const TRAITS: Readonly<Record<Kind, Traits>> = {
  lock: HASH,
  // Each waiter has a channel of its own.
  fair: { ...HASH, channel: undefined },
  fenced: HASH,
  spin: { hash: true, told: false, channel: undefined },
  multi: HASH,
  red: HASH,
  mutex: { hash: false, told: false, channel: 'holdfast_mutex__channel' },
  read: { ...HASH, channel: 'redisson_rwlock' },
  write: { ...HASH, channel: 'redisson_rwlock' },
}

/** What lies under the name of a lock that is held once. */
export function heldAs(kind: Kind, owner: string): unknown {
  if (kind === 'read') return { mode: 'read', [owner]: 1 }
  if (kind === 'write') return { mode: 'write', [`${owner}:write`]: 1 }
  return TRAITS[kind].hash ? { [owner]: 1 } : owner
}

/** What lies there when another process has taken it: from readers, by writing. */
export function takenAs(kind: Kind, owner: string): unknown {
  return heldAs(kind === 'read' ? 'write' : kind, owner)
}

/** What is stored under a name. */
export interface Stored {
  /** Owner → count of a lock, the token of a mutex, or somebody's data. */
  readonly value: unknown
  /** -1: none. */
  readonly ttlMs: number
}

/** A real server. */
export interface RealServer {
  command(...words: readonly (string | number)[]): Promise<Value>
  /** Destroys the client of a Holdfast, as its user might. */
  cut(holdfast: Holdfast): void
  /** A connected client, closed when the test is finished. */
  client(): Promise<object>
  /** A second Holdfast on the same client. */
  again(holdfast: Holdfast): Holdfast
}

/** A store that all Holdfasts of a world share, and its time. */
export interface World {
  /** The same as a Holdfast of another process; closed when the test is finished. */
  holdfast(options?: HoldfastOptions): Promise<Holdfast>
  now(): number
  /** Lets (at least) so many milliseconds pass. */
  pass(ms: number): Promise<void>
  /** Lets time pass until the promise settles. */
  settled<T>(promise: Promise<T>): Promise<T>
  /** Lets time pass until the condition holds. */
  until(condition: () => boolean | Promise<boolean>, what: string): Promise<void>
  /** How many operations were executed so far. */
  operations(): Promise<number>
  read(name: string): Promise<Stored | undefined>
  /** Another program stores a list, or a hash that is no lock. */
  storeData(name: string, type: 'list' | 'hash'): Promise<void>
  /** Another process takes the lock, whoever has it, and tells nobody. */
  take(name: string, owner: string, terms: { kind: Kind; ttlMs: number }): Promise<void>
  /** Removes the key and tells nobody. */
  remove(name: string): Promise<void>
  persist(name: string): Promise<void>
  readonly server: RealServer | undefined
  /** Ends the world. */
  end(): Promise<void>
}

type Ending = () => void | Promise<void>

const slowEndings = new AsyncLocalStorage<Ending[]>()

/** Calls back when the running test is finished, also where several run at once. */
export function atEnd(ending: Ending): void {
  const endings = slowEndings.getStore()
  if (endings === undefined) onTestFinished(ending)
  else endings.push(ending)
}

async function withEndings(body: () => Promise<void>): Promise<void> {
  const endings: Ending[] = []
  try {
    await slowEndings.run(endings, body)
  } finally {
    for (const ending of endings.reverse()) await ending()
  }
}

/** A world for all tests of a file, and shorthands for them. */
export class Stage {
  #world: World | undefined
  #names = 0
  #slow: [name: string, body: () => Promise<void>][] = []
  readonly #realTime: boolean

  constructor(open: () => Promise<World>, { realTime }: { readonly realTime: boolean }) {
    this.#realTime = realTime
    beforeAll(async () => {
      this.#world = await open()
    })
    afterAll(async () => {
      await this.#world?.end()
      if (this.#slow.length > 0) throw new Error('slow tests were declared and never run')
    })
  }

  get world(): World {
    if (this.#world === undefined) throw new Error('outside of a test')
    return this.#world
  }

  /** The real server, for tests that run only where there is one. */
  get server(): RealServer {
    const { server } = this.world
    if (server === undefined) throw new Error('there is no server')
    return server
  }

  /** Declares a test that waits for most of its time; see {@link slowTests}. */
  slow(name: string, body: () => Promise<void>): void {
    this.#slow.push([name, body])
  }

  /** The slow tests declared before: in real time they all run at once, so they must not look at the whole server. */
  slowTests(): void {
    // Inside, since what stands in a describe before this one is collected just before this one.
    describe('in the course of time', () => {
      const slow = this.#slow
      this.#slow = []
      let running: readonly Promise<void>[] = []
      beforeAll(() => {
        if (!this.#realTime) return
        running = slow.map(([, body]) => withEndings(body))
        for (const run of running) run.catch(() => undefined)
      })
      slow.forEach(([name, body], i) => test(name, () => running[i] ?? withEndings(body)))
    })
  }

  /** A name that no other test uses. */
  name(): string {
    this.#names += 1
    return `contract:${this.#names}`
  }
}

/** A stage for one kind of lock. */
export interface KindStage {
  readonly stage: Stage
  readonly kind: Kind
  /** A lock on a Holdfast of its own. */
  readonly lock: (name: string, options?: HoldfastOptions) => Promise<ExclusiveLock>
}

/** The stage for one kind of lock. */
export function forKind(stage: Stage, kind: Kind): KindStage {
  const lock = async (name: string, options?: HoldfastOptions) =>
    lockOf(kind, await stage.world.holdfast(options), name)
  return { stage, kind, lock }
}

/** The lock of a kind. */
export function lockOf(kind: Kind, holdfast: Holdfast, name: string): ExclusiveLock {
  switch (kind) {
    case 'mutex':
      return holdfast.mutex(name)
    case 'multi':
      return holdfast.multiLock([holdfast.lock(name), holdfast.lock(name)])
    case 'red':
      return holdfast.redLock(name, [holdfast])
    default:
      return countingLockOf(kind, holdfast, name)
  }
}

/** The same for those that re-enter. */
export function countingLockOf(kind: CountingKind, holdfast: Holdfast, name: string): CountingLock {
  switch (kind) {
    case 'lock':
      return holdfast.lock(name)
    case 'fair':
      return holdfast.fairLock(name)
    case 'fenced':
      return holdfast.fencedLock(name)
    case 'spin':
      return holdfast.spinLock(name)
    case 'read':
      return holdfast.readWriteLock(name).read
    case 'write':
      return holdfast.readWriteLock(name).write
  }
}

/** An owner as another process would have one. */
export const STRANGER = '1c6e9b0a-0d7c-4f55-8a56-0f6c1f1f2f3f:57'

/** Closes it when the test is finished, and then what is under it. */
export function closeLater(world: World, holdfast: Holdfast, after?: () => void): Holdfast {
  atEnd(async () => {
    await world.settled(holdfast.close({ drain: 0 }))
    after?.()
  })
  return holdfast
}
