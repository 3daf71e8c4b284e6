import type { Topic } from '../engine.js'
import * as mutex from '../model/mutex.js'
import type { Handlers, MutexOperation } from '../operations.js'
import { renewAll } from './lock.js'
import type { MemoryStore } from './memory-store.js'

/** The plain lock's operations on the store. */
export const mutexHandlers: Handlers<MutexOperation, [MemoryStore], false> = {
  'mutex.acquire': (o, store) => store.apply(topic(o.name), (state, now) => mutex.acquire(state, o, now)),
  'mutex.release': (o, store) => store.apply(topic(o.name), (state, now) => mutex.release(state, o, now)),
  'mutex.renew': (o, store) => renewAll(store, { family: 'mutex', operation: o, renew: mutex.renew }),
  'mutex.inspect': (o, store) => store.apply(topic(o.name), (state, now) => mutex.inspect(state, o, now)),
  'mutex.force': (o, store) => store.apply(topic(o.name), (state, now) => mutex.force(state, o, now)),
}

function topic(name: string): Topic {
  return { family: 'mutex', name }
}
