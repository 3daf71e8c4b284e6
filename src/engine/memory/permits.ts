import type { Topic } from '../engine.js'
import type { KeyState, Step } from '../model/state.js'
import * as permits from '../model/permits.js'
import type { Handlers, PermitsOperation } from '../operations.js'
import { renewAll } from './lock.js'
import type { MemoryStore } from './memory-store.js'

/** The operations of the semaphore with leases on the store. */
export const permitsHandlers: Handlers<PermitsOperation, [MemoryStore], false> = {
  'permits.acquire': (o, store) => run(store, o, permits.acquire),
  'permits.release': (o, store) => run(store, o, permits.release),
  'permits.renew': (o, store) =>
    renewAll(store, {
      family: 'semaphore',
      operation: o,
      renew: (state, hold, nowMs) => permits.renew(state, hold, momentOf(store, nowMs)),
    }),
  'permits.give': (o, store) => run(store, o, permits.give),
  'permits.update': (o, store) => run(store, o, permits.update),
  'permits.rest': (o, store) => run(store, o, permits.rest),
  'permits.count': (o, store) => run(store, o, permits.count),
  'permits.set': (o, store) => run(store, o, permits.set),
  'permits.try-set': (o, store) => run(store, o, permits.trySet),
  'permits.add': (o, store) => run(store, o, permits.add),
}

function run<O extends { readonly name: string }, Reply>(
  store: MemoryStore,
  operation: O,
  step: (state: KeyState, operation: O, moment: permits.Moment) => Step<Reply>,
): Reply {
  const topic: Topic = { family: 'semaphore', name: operation.name }
  return store.apply(topic, (state, nowMs) => step(state, operation, momentOf(store, nowMs)))
}

/** Client and server are one process here and have one clock. */
function momentOf({ clock }: MemoryStore, nowMs: number): permits.Moment {
  const wallMs = clock.wall()
  return { nowMs, clientMs: wallMs, serverMs: wallMs }
}
