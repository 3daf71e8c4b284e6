import type { Topic } from '../engine.js'
import * as multi from '../model/multi.js'
import type { KeyState } from '../model/state.js'
import type { Handlers, MultiOperation } from '../operations.js'
import type { MemoryStore } from './memory-store.js'

/** The operations on several re-entrant locks on the store. */
export const multiHandlers: Handlers<MultiOperation, [MemoryStore], false> = {
  'multi.acquire': (o, store) => applyAll(store, o.names, (states, now) => multi.acquire(states, o, now)),
  'multi.release': (o, store) => applyAll(store, o.names, (states, now) => multi.release(states, o, now)),
}

/** Nothing happens in between: this is all one turn. */
function applyAll<Reply>(
  store: MemoryStore,
  names: readonly string[],
  step: (states: readonly KeyState[], nowMs: number) => multi.MultiStep<Reply>,
): Reply {
  const before = names.map((name) => store.read(name))
  const { states, reply, wakes } = step(before, store.clock.now())
  names.forEach((name, i) => {
    const topic: Topic = { family: 'lock', name }
    store.apply(topic, (state) => ({ state: states[i] ?? state, reply, wake: wakes[i] ?? false }))
  })
  return reply
}
