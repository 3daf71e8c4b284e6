import type { Topic } from '../engine.js'
import * as model from '../model/read-write.js'
import type { Handlers, ReadWriteOperation } from '../operations.js'
import { renewAll } from './lock.js'
import type { MemoryStore } from './memory-store.js'

const family = 'read-write'

/** The read/write lock's operations on the store. */
export const readWriteHandlers: Handlers<ReadWriteOperation, [MemoryStore], false> = {
  'read.acquire': (o, store) => store.apply(topic(o.name), (state, now) => model.readAcquire(state, o, now)),
  'read.leave': (o, store) => store.apply(topic(o.name), (state, now) => model.readLeave(state, o, now)),
  'read.release': (o, store) => store.apply(topic(o.name), (state, now) => model.readRelease(state, o, now)),
  'read.renew': (o, store) => renewAll(store, { family, operation: o, renew: model.readRenew }),
  'read.inspect': (o, store) => store.apply(topic(o.name), (state, now) => model.readInspect(state, o, now)),
  'read.force': (o, store) => store.apply(topic(o.name), (state, now) => model.readForce(state, o, now)),
  'write.acquire': (o, store) =>
    store.apply(topic(o.name), (state, now) => model.writeAcquire(state, o, now)),
  'write.leave': (o, store) => store.apply(topic(o.name), (state, now) => model.writeLeave(state, o, now)),
  'write.release': (o, store) =>
    store.apply(topic(o.name), (state, now) => model.writeRelease(state, o, now)),
  'write.renew': (o, store) => renewAll(store, { family, operation: o, renew: model.writeRenew }),
  'write.inspect': (o, store) =>
    store.apply(topic(o.name), (state, now) => model.writeInspect(state, o, now)),
  'write.force': (o, store) => store.apply(topic(o.name), (state, now) => model.writeForce(state, o, now)),
}

function topic(name: string): Topic {
  return { family, name }
}
