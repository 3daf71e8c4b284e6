import type { Topic } from '../engine.js'
import * as spin from '../model/spin.js'
import type { Handlers, SpinOperation } from '../operations.js'
import type { MemoryStore } from './memory-store.js'

/** The spin lock's operations on the store. */
export const spinHandlers: Handlers<SpinOperation, [MemoryStore], false> = {
  'spin.release': (o, store) => store.apply(topic(o.name), (state, now) => spin.release(state, o, now)),
  'spin.force': (o, store) => store.apply(topic(o.name), (state, now) => spin.force(state, o, now)),
}

function topic(name: string): Topic {
  return { family: 'lock', name }
}
