import type { Passage } from '../../engine.js'
import type { BadTokenReply, FencedOperation, Handlers } from '../../operations.js'
import { fencedToken, lockTombstone } from '../names.js'
import * as scripts from '../scripts.js'
import type { Wire } from './wire.js'

/** The fenced lock's operations as scripts. */
export const fencedCommands: Handlers<FencedOperation, [Wire, Passage], true> = {
  'fenced.acquire': async ({ name, owner, count, leaseMs }, wire, passage) => {
    const keys = { lock: name, tombstone: lockTombstone(name, owner), token: fencedToken(name) }
    const reply = await wire.send(scripts.fencedAcquire, { ...keys, owner, count, leaseMs }, passage)
    if (reply.outcome === 'badToken') return badToken(name)
    return reply.outcome === 'granted' ? { outcome: 'granted', token: Number(reply.token) } : reply
  },
  'fenced.token': async ({ name }, wire, passage) => {
    const reply = await wire.send(scripts.fencedToken, { token: fencedToken(name) }, passage)
    return reply.outcome === 'known' ? { outcome: 'known', token: Number(reply.token) } : badToken(name)
  },
}

function badToken(name: string): BadTokenReply {
  return { outcome: 'badToken', key: fencedToken(name) }
}
