import type { Topic } from '../engine.js'
import * as fair from '../model/fair.js'
import type { FairOperation, Handlers } from '../operations.js'
import type { MemoryStore } from './memory-store.js'

/** The fair lock's operations on the store. */
export const fairHandlers: Handlers<FairOperation, [MemoryStore], false> = {
  'fair.acquire': (o, store) => store.apply(topic(o.name), (state) => fair.acquire(state, o, clocks(store))),
  'fair.abandon': (o, store) => store.apply(topic(o.name), (state) => fair.abandon(state, o, clocks(store))),
  'fair.release': (o, store) => store.apply(topic(o.name), (state) => fair.release(state, o, clocks(store))),
  'fair.force': (o, store) => store.apply(topic(o.name), (state) => fair.force(state, o, clocks(store))),
}

/** Client and server are one process here. */
function clocks({ clock }: MemoryStore): fair.FairClocks {
  const wallMs = Math.floor(clock.wall())
  return { nowMs: clock.now(), wallMs, serverMs: wallMs }
}

function topic(name: string): Topic {
  return { family: 'lock', name }
}
