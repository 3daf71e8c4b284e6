import type { Passage } from '../../engine.js'
import type { ForeignReply, Handlers, InspectReply, MutexOperation } from '../../operations.js'
import { mutexChannel, mutexTombstone } from '../names.js'
import * as scripts from '../scripts.js'
import { nameOf, ownerOf, renewReply, type Wire } from './wire.js'

/** The plain lock's operations as scripts. */
export const mutexCommands: Handlers<MutexOperation, [Wire, Passage], true> = {
  'mutex.acquire': ({ name, owner, leaseMs }, wire, passage) => {
    const args = { mutex: name, tombstone: mutexTombstone(name, owner), owner, leaseMs }
    return wire.send(scripts.mutexAcquire, args, passage)
  },
  'mutex.release': ({ name, owner, keepMs, entombMs }, wire, passage) => {
    const to = { channel: mutexChannel(name), publish: wire.publish }
    const args = { mutex: name, tombstone: mutexTombstone(name, owner), owner, ...to, keepMs, entombMs }
    return wire.send(scripts.mutexRelease, args, passage)
  },
  'mutex.renew': ({ holds, ttlMs }, wire, passage) => {
    const args = { mutexes: holds.map(nameOf), ttlMs, owners: holds.map(ownerOf) }
    return wire.send(scripts.mutexRenew, args, passage).then(renewReply)
  },
  'mutex.inspect': ({ name }, wire, passage) =>
    wire.send(scripts.mutexInspect, { mutex: name }, passage).then(inspectReply),
  'mutex.force': async ({ name, owners }, wire, passage) => {
    const [owner] = owners
    if (owner === undefined) return { outcome: 'none' }
    const args = { mutex: name, owner, channel: mutexChannel(name), publish: wire.publish }
    return wire.send(scripts.mutexForce, args, passage)
  },
}

function inspectReply(reply: scripts.MutexInspectReply | ForeignReply): InspectReply {
  if (reply.outcome !== 'held') return reply
  return { outcome: 'held', ttlMs: reply.ttlMs, holders: new Map([[reply.holder, 1]]) }
}
