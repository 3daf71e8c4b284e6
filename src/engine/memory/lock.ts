import * as lock from '../model/lock.js'
import type { KeyState, Step } from '../model/state.js'
import type { Handlers, LockOperation, Renew, RenewReply, RenewResult } from '../operations.js'
import type { Topic } from '../engine.js'
import type { MemoryStore } from './memory-store.js'

/** The re-entrant lock's operations on the store. */
export const lockHandlers: Handlers<LockOperation, [MemoryStore], false> = {
  'lock.acquire': (o, store) => store.apply(topic(o.name), (state, now) => lock.acquire(state, o, now)),
  'lock.leave': (o, store) => store.apply(topic(o.name), (state, now) => lock.leave(state, o, now)),
  'lock.release': (o, store) => store.apply(topic(o.name), (state, now) => lock.release(state, o, now)),
  'lock.renew': (o, store) => renewAll(store, { family: 'lock', operation: o, renew: lock.renew }),
  'lock.inspect': (o, store) => store.apply(topic(o.name), (state, now) => lock.inspect(state, o, now)),
  'lock.force': (o, store) => store.apply(topic(o.name), (state, now) => lock.force(state, o, now)),
}

/** A renewal of many holds, one name after the other. */
export function renewAll(
  store: MemoryStore,
  renewal: {
    readonly family: Topic['family']
    readonly operation: Renew<string>
    readonly renew: (
      state: KeyState,
      hold: { readonly owner: string; readonly ttlMs: number },
      nowMs: number,
    ) => Step<RenewResult>
  },
): RenewReply {
  const { family, operation, renew } = renewal
  const { holds, ttlMs } = operation
  const results = holds.map(({ name, owner }) =>
    store.apply({ family, name }, (state, now) => renew(state, { owner, ttlMs }, now)),
  )
  return { results }
}

function topic(name: string): Topic {
  return { family: 'lock', name }
}
