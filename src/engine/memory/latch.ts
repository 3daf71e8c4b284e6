import type { Topic } from '../engine.js'
import * as latch from '../model/latch.js'
import type { Handlers, LatchOperation } from '../operations.js'
import type { MemoryStore } from './memory-store.js'

/** The latch's operations on the store. */
export const latchHandlers: Handlers<LatchOperation, [MemoryStore], false> = {
  'latch.set': (o, store) => store.apply(topic(o), (state, now) => latch.set(state, o, now)),
  'latch.countDown': (o, store) => store.apply(topic(o), (state, now) => latch.countDown(state, o, now)),
  'latch.cancel': (o, store) => store.apply(topic(o), (state, now) => latch.cancel(state, o, now)),
  'latch.delete': (o, store) => store.apply(topic(o), (state, now) => latch.remove(state, o, now)),
  'latch.inspect': (o, store) => store.apply(topic(o), (state, now) => latch.inspect(state, o, now)),
}

function topic({ name }: { readonly name: string }): Topic {
  return { family: 'latch', name }
}
