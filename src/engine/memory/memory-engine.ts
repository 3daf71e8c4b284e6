import { globMatcher } from '../../glob.js'
import type { DataListener, DataTopic, Engine, Hint, Passage, Subscription, Topic } from '../engine.js'
import type { Handlers, Operation, ReplyOf } from '../operations.js'
import { fairHandlers } from './fair.js'
import { fencedHandlers } from './fenced.js'
import { latchHandlers } from './latch.js'
import { lockHandlers } from './lock.js'
import { multiHandlers } from './multi.js'
import { mutexHandlers } from './mutex.js'
import type { MemoryStore } from './memory-store.js'
import { permitsHandlers } from './permits.js'
import { readWriteHandlers } from './read-write.js'
import { semaphoreHandlers } from './semaphore.js'
import { serverHandlers } from './server.js'
import { spinHandlers } from './spin.js'
import { watchHandlers } from './watch.js'

const HANDLERS: Handlers<Operation, [MemoryStore], false> = {
  ...lockHandlers,
  ...readWriteHandlers,
  ...mutexHandlers,
  ...semaphoreHandlers,
  ...permitsHandlers,
  ...latchHandlers,
  ...multiHandlers,
  ...serverHandlers,
  ...fairHandlers,
  ...fencedHandlers,
  ...spinHandlers,
  ...watchHandlers,
}
/** The same without the types, whose product is too large for the compiler. */
const BY_NAME: Readonly<Record<string, unknown>> = HANDLERS

type Handler<O extends Operation> = (operation: O, store: MemoryStore) => ReplyOf<O>

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
    const handler: unknown = BY_NAME[operation.op]
    const reply = (handler as Handler<O>)(operation, this.#store)
    return new Promise<ReplyOf<O>>((resolve) => {
      resolve(reply)
    })
  }

  subscribe(topic: Topic, listener: (hint: Hint) => void): Subscription {
    return { live: Promise.resolve(true), close: this.#store.listen(topic, listener) }
  }

  listenTo({ kind, name }: DataTopic, listener: DataListener): Subscription {
    const fits = kind === 'pattern' ? globMatcher(name) : (key: string): boolean => key === name
    const close = this.#store.overhear((news) => {
      if (fits(news.key)) listener(news)
    })
    return { live: Promise.resolve(true), close }
  }

  batchKey(): string {
    return ''
  }

  checkName(): void {
    // Any name is safe in a map.
  }

  checkPattern(): void {
    // All keys are here.
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
