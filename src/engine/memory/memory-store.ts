import { systemClock, type Clock } from '../../clock.js'
import type { Hint, News, Topic } from '../engine.js'
import { at, FREE, isEmpty, type KeyState, type Step, type Wake } from '../model/state.js'

const ONE: Wake = { hint: 'one' }
const SWEEP_MS = 10_000

/** Hears of a message; its payload where that says more than the hint. */
type Listener = (hint: Hint, payload?: string) => void

/** The keys of one memory engine, or of several that share a name in one process. */
export class MemoryStore {
  readonly clock: Clock
  readonly #keys = new Map<string, KeyState>()
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #witnesses = new Set<(news: News) => void>()
  #sweeping = false

  constructor(clock: Clock = systemClock) {
    this.clock = clock
  }

  /** How many names have any state, tombstones included. */
  get size(): number {
    return this.#keys.size
  }

  /** All names under which there is a value. */
  names(): string[] {
    return [...this.#keys.keys()].filter((name) => this.read(name).value !== undefined)
  }

  /** The state under a name, with what is due removed. */
  read(name: string): KeyState {
    return at(this.#keys.get(name) ?? FREE, this.clock.now())
  }

  /** Runs one step of a model on the state of a name. */
  apply<Reply>(topic: Topic, step: (state: KeyState, nowMs: number) => Step<Reply>): Reply {
    const { state, reply, wake } = step(this.#keys.get(topic.name) ?? FREE, this.clock.now())
    this.write(topic.name, state)
    if (wake !== false) this.#tell(topic, wake === true ? ONE : wake)
    return reply
  }

  /** Replaces the state under a name, as somebody else's program would. */
  write(name: string, state: KeyState): void {
    if (this.#witnesses.size > 0) this.#report(name, state)
    if (isEmpty(state)) this.#keys.delete(name)
    else this.#keys.set(name, state)
    this.#sweepLater()
  }

  /** Adds a listener and returns the function that takes it away. */
  listen(topic: Topic, listener: Listener): () => void {
    const key = topicKey(topic)
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key)
    }
  }

  /** Adds one who is told of everything that is done to any key, and returns the function that takes it away. */
  overhear(witness: (news: News) => void): () => void {
    this.#witnesses.add(witness)
    return () => this.#witnesses.delete(witness)
  }

  #report(name: string, after: KeyState): void {
    const stored = this.#keys.get(name) ?? FREE
    const before = this.read(name)
    if (stored.value !== undefined && before.value === undefined) this.#witness(name, 'expired')
    if (before.value !== after.value) this.#witness(name, after.value === undefined ? 'del' : 'set')
    else if (after.value !== undefined && before.expiresAtMs !== after.expiresAtMs)
      this.#witness(name, 'expire')
  }

  #witness(key: string, event: string): void {
    for (const witness of this.#witnesses) {
      queueMicrotask(() => {
        witness({ key, event })
      })
    }
  }

  #tell({ family, name }: Topic, { hint, payload, owner }: Wake): void {
    const topic = owner === undefined ? { family, name } : { family, name, owner }
    for (const listener of this.#listeners.get(topicKey(topic)) ?? []) {
      queueMicrotask(() => {
        listener(hint, payload)
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

function topicKey({ family, name, owner }: Topic): string {
  return owner === undefined ? `${family}:${name}` : `${family}:${name}:${owner}`
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
