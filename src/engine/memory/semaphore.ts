import type { Topic } from '../engine.js'
import * as semaphore from '../model/semaphore.js'
import type { Handlers, SemaphoreOperation } from '../operations.js'
import type { MemoryStore } from './memory-store.js'

/** The semaphore's operations on the store. */
export const semaphoreHandlers: Handlers<SemaphoreOperation, [MemoryStore], false> = {
  'semaphore.acquire': (o, store) => store.apply(topic(o), (state, now) => semaphore.acquire(state, o, now)),
  'semaphore.end': (o, store) => store.apply(topic(o), (state, now) => semaphore.end(state, o, now)),
  'semaphore.add': (o, store) => store.apply(topic(o), (state, now) => semaphore.add(state, o, now)),
  'semaphore.drain': (o, store) => store.apply(topic(o), (state, now) => semaphore.drain(state, o, now)),
  'semaphore.set': (o, store) => store.apply(topic(o), (state, now) => semaphore.set(state, o, now)),
  'semaphore.inspect': (o, store) => store.apply(topic(o), (state, now) => semaphore.inspect(state, o, now)),
}

function topic({ name }: { readonly name: string }): Topic {
  return { family: 'semaphore', name }
}
