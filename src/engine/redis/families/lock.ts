import type { Passage } from '../../engine.js'
import type { ForeignReply, Handlers, InspectReply, LockOperation } from '../../operations.js'
import { lockChannel, lockTombstone } from '../names.js'
import * as scripts from '../scripts.js'
import { nameOf, ownerOf, renewReply, type Wire } from './wire.js'

/** The re-entrant lock's operations as scripts. */
export const lockCommands: Handlers<LockOperation, [Wire, Passage], true> = {
  'lock.acquire': ({ name, owner, count, leaseMs }, wire, passage) => {
    const args = { lock: name, tombstone: lockTombstone(name, owner), owner, count, leaseMs }
    return wire.send(scripts.lockAcquire, args, passage)
  },
  'lock.leave': ({ name, owner, count }, wire, passage) =>
    wire.send(scripts.lockLeave, { lock: name, owner, count }, passage),
  'lock.release': ({ name, owner, keepMs, entombMs }, wire, passage) => {
    const to = { channel: lockChannel(name), publish: wire.publish }
    const args = { lock: name, tombstone: lockTombstone(name, owner), owner, ...to, keepMs, entombMs }
    return wire.send(scripts.lockRelease, args, passage)
  },
  'lock.renew': ({ holds, ttlMs }, wire, passage) => {
    const args = { locks: holds.map(nameOf), ttlMs, owners: holds.map(ownerOf) }
    return wire.send(scripts.lockRenew, args, passage).then(renewReply)
  },
  'lock.inspect': ({ name }, wire, passage) =>
    wire.send(scripts.lockInspect, { lock: name }, passage).then(inspectReply),
  'lock.force': ({ name, owners }, wire, passage) => {
    const args = { lock: name, channel: lockChannel(name), publish: wire.publish, owners }
    return wire.send(scripts.lockForce, args, passage)
  },
}

function inspectReply(reply: scripts.LockInspectReply | ForeignReply): InspectReply {
  if (reply.outcome !== 'held') return reply
  const holders = new Map<string, number>()
  for (let i = 0; i + 1 < reply.holders.length; i += 2) {
    const owner = reply.holders[i]
    if (owner !== undefined && owner !== 'mode') holders.set(owner, Number(reply.holders[i + 1]))
  }
  return { outcome: 'held', ttlMs: reply.ttlMs, holders }
}
