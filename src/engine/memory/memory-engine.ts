import { systemClock, type Clock } from '../../clock.js'
import type { Engine, Hint, Passage, Subscription, Topic } from '../engine.js'
import * as lock from '../model/lock.js'
import * as mutex from '../model/mutex.js'
import { at, FREE, type KeyState, type Step } from '../model/state.js'
import type { Operation, Renew, RenewReply, RenewResult, Replies, ReplyOf } from '../operations.js'

type Renewal = (state: KeyState, hold: { owner: string; ttlMs: number }, nowMs: number) => Step<RenewResult>

const SWEEP_MS = 10_000

/** The keys of one memory engine, or of several that share a name in one process. */
export class MemoryStore {
  readonly clock: Clock
  readonly #keys = new Map<string, KeyState>()
  readonly #listeners = new Map<string, Set<(hint: Hint) => void>>()
  #sweeping = false

  constructor(clock: Clock = systemClock) {
    this.clock = clock
  }

  /** How many names have any state, tombstones included. */
  get size(): number {
    return this.#keys.size
  }

  /** The state under a name, with what is due removed. */
  read(name: string): KeyState {
    return at(this.#keys.get(name) ?? FREE, this.clock.now())
  }

  /** Runs one step of a model on the state of a name. */
  apply<Reply>(topic: Topic, step: (state: KeyState, nowMs: number) => Step<Reply>): Reply {
    const { state, reply, wake } = step(this.#keys.get(topic.name) ?? FREE, this.clock.now())
    this.write(topic.name, state)
    if (wake) this.#tell(topic)
    return reply
  }

  /** Replaces the state under a name, as somebody else's program would. */
  write(name: string, state: KeyState): void {
    if (state.value === undefined && state.tombstones.size === 0) this.#keys.delete(name)
    else this.#keys.set(name, state)
    this.#sweepLater()
  }

  /** Adds a listener and returns the function that takes it away. */
  listen(topic: Topic, listener: (hint: Hint) => void): () => void {
    const key = topicKey(topic)
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key)
    }
  }

  #tell(topic: Topic): void {
    for (const listener of this.#listeners.get(topicKey(topic)) ?? []) {
      queueMicrotask(() => {
        listener('one')
      })
    }
  }

  #sweepLater(): void {
    if (this.#sweeping || this.#keys.size === 0) return
    this.#sweeping = true
    this.clock.setTimer(
      () => {
        this.#sweeping = false
        for (const [name, state] of this.#keys) this.write(name, at(state, this.clock.now()))
        this.#sweepLater()
      },
      SWEEP_MS,
      false,
    )
  }
}

/** The engine for unit tests and single processes: the models, a map, and a clock that tests can drive. */
export class MemoryEngine implements Engine {
  readonly name = 'memory'
  readonly keyPrefix = ''
  readonly #store: MemoryStore

  constructor(store: MemoryStore) {
    this.#store = store
  }

  async execute<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    const nowMs = this.#store.clock.now()
    if (passage.sends === 0) passage.firstSentAtMs = nowMs
    passage.lastSentAtMs = nowMs
    passage.sends += 1
    passage.once = passage.sends === 1
    const reply: Replies[Operation['op']] = this.#run(operation)
    // The compiler cannot see that the reply belongs to this operation; `#run` pairs them case by case.
    return Promise.resolve(reply as ReplyOf<O>)
  }

  #run(o: Operation): Replies[Operation['op']] {
    const topic = (name: string): Topic => ({ family: o.op.startsWith('lock') ? 'lock' : 'mutex', name })
    const store = this.#store
    switch (o.op) {
      case 'lock.acquire':
        return store.apply(topic(o.name), (state, now) => lock.acquire(state, o, now))
      case 'lock.leave':
        return store.apply(topic(o.name), (state, now) => lock.leave(state, o, now))
      case 'lock.release':
        return store.apply(topic(o.name), (state, now) => lock.release(state, o, now))
      case 'lock.renew':
        return this.#renew(o, 'lock', lock.renew)
      case 'lock.inspect':
        return store.apply(topic(o.name), (state, now) => lock.inspect(state, o, now))
      case 'lock.force':
        return store.apply(topic(o.name), (state, now) => lock.force(state, o, now))
      case 'mutex.acquire':
        return store.apply(topic(o.name), (state, now) => mutex.acquire(state, o, now))
      case 'mutex.release':
        return store.apply(topic(o.name), (state, now) => mutex.release(state, o, now))
      case 'mutex.renew':
        return this.#renew(o, 'mutex', mutex.renew)
      case 'mutex.inspect':
        return store.apply(topic(o.name), (state, now) => mutex.inspect(state, o, now))
      case 'mutex.force':
        return store.apply(topic(o.name), (state, now) => mutex.force(state, o, now))
    }
  }

  #renew(operation: Renew<string>, family: Topic['family'], renewal: Renewal): RenewReply {
    const { holds, ttlMs } = operation
    const results = holds.map(({ name, owner }) =>
      this.#store.apply({ family, name }, (state, now) => renewal(state, { owner, ttlMs }, now)),
    )
    return { results }
  }

  subscribe(topic: Topic, listener: (hint: Hint) => void): Subscription {
    return { live: Promise.resolve(true), close: this.#store.listen(topic, listener) }
  }

  batchKey(): string {
    return ''
  }

  checkName(): void {
    // Any name is safe in a map.
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function topicKey(topic: Topic): string {
  return `${topic.family}:${topic.name}`
}

const SHARED = Symbol.for('holdfast.memory-stores')

interface Shared {
  readonly store: MemoryStore
  /** As it was given: each copy of the package has a clock of the machine of its own. */
  readonly clock: Clock | undefined
}

/** The stores of `memory:x`, one per name and process, also across two copies of this package. @throws TypeError for a second clock */
export function sharedStore(name: string, clock: Clock | undefined): MemoryStore {
  const registry = globalThis as unknown as Record<symbol, Map<string, Shared> | undefined>
  const stores = (registry[SHARED] ??= new Map<string, Shared>())
  const existing = stores.get(name) ?? { store: new MemoryStore(clock), clock }
  stores.set(name, existing)
  if (existing.clock === clock) return existing.store
  throw new TypeError(`The store 'memory:${name}' has another clock: use the same one, or another name`)
}
