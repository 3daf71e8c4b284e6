import type { Engine, Hint, Passage, Subscription, Topic } from '../engine.js'
import type { Handlers, Operation, Replies, ReplyOf } from '../operations.js'
import { lockHandlers } from './lock.js'
import { mutexHandlers } from './mutex.js'
import type { MemoryStore } from './memory-store.js'

const HANDLERS: Handlers<Operation, [MemoryStore], false> = { ...lockHandlers, ...mutexHandlers }

type Handler<O extends Operation> = (operation: O, store: MemoryStore) => Replies[O['op']]

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
    // The compiler cannot see that handler and reply belong to this operation; the table pairs them.
    const handler: unknown = HANDLERS[operation.op]
    return Promise.resolve((handler as Handler<O>)(operation, this.#store))
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
