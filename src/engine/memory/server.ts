import { randomUUID } from 'node:crypto'
import type { Handlers, ServerOperation } from '../operations.js'
import type { MemoryStore } from './memory-store.js'

const ids = new WeakMap<MemoryStore, string>()

/** What a store tells about itself: two engines on one store are not independent. */
export const serverHandlers: Handlers<ServerOperation, [MemoryStore], false> = {
  'server.identify': (_operation, store) => {
    const id = ids.get(store) ?? randomUUID()
    ids.set(store, id)
    return { runId: id, dataId: id }
  },
}
