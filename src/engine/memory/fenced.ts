import type { Topic } from '../engine.js'
import * as fenced from '../model/fenced.js'
import type { BadTokenReply, FencedOperation, Handlers } from '../operations.js'
import type { MemoryStore } from './memory-store.js'

/** The fenced lock's operations on the store. */
export const fencedHandlers: Handlers<FencedOperation, [MemoryStore], false> = {
  'fenced.acquire': (o, store) => {
    const reply = store.apply(topic(o.name), (state, now) => fenced.acquire(state, o, now))
    return reply.outcome === 'badToken' ? badToken(o.name) : reply
  },
  'fenced.token': (o, store) => {
    const reply = store.apply(topic(o.name), (state, now) => fenced.token(state, o, now))
    return reply.outcome === 'badToken' ? badToken(o.name) : reply
  },
}

/** The key is called as it would be in Redis. */
function badToken(name: string): BadTokenReply {
  return { outcome: 'badToken', key: `redisson_lock_token:${name.includes('{') ? name : `{${name}}`}` }
}

function topic(name: string): Topic {
  return { family: 'lock', name }
}
