import type { Passage } from '../../engine.js'
import type { ForeignReply, Handlers, Hold, InspectReply, ReadWriteOperation } from '../../operations.js'
import { lockTombstone, readWriteChannel } from '../names.js'
import * as scripts from '../scripts.js'
import { nameOf, ownerOf, renewReply, type Wire } from './wire.js'

/** The read/write lock's operations as scripts. A writer's field leaves and is renewed as that of a lock. */
export const readWriteCommands: Handlers<ReadWriteOperation, [Wire, Passage], true> = {
  'read.acquire': ({ name, owner, writer, count, leaseMs }, wire, passage) => {
    const args = { lock: name, tombstone: lockTombstone(name, owner), owner, writer, count, leaseMs }
    return wire.send(scripts.readAcquire, args, passage)
  },
  'read.leave': ({ name, owner, count }, wire, passage) =>
    wire.send(scripts.readLeave, { lock: name, owner, count }, passage),
  'read.release': ({ name, owner, keepMs, entombMs }, wire, passage) => {
    const args = {
      lock: name,
      tombstone: lockTombstone(name, owner),
      owner,
      ...to(name, wire),
      keepMs,
      entombMs,
    }
    return wire.send(scripts.readRelease, args, passage)
  },
  'read.renew': ({ holds, ttlMs }, wire, passage) => {
    const args = { locks: holds.map(nameOf), ttlMs, owners: holds.map(ownerOf) }
    return wire.send(scripts.readRenew, args, passage).then(renewReply)
  },
  'read.inspect': ({ name }, wire, passage) =>
    wire.send(scripts.readInspect, { lock: name }, passage).then(inspectReply),
  'read.force': ({ name, owners }, wire, passage) =>
    wire.send(scripts.readForce, { lock: name, ...to(name, wire), owners }, passage),
  'write.acquire': ({ name, owner, count, leaseMs }, wire, passage) => {
    const args = { lock: name, tombstone: lockTombstone(name, writerOf(owner)), owner, count, leaseMs }
    return wire.send(scripts.writeAcquire, args, passage)
  },
  'write.leave': ({ name, owner, count }, wire, passage) =>
    wire.send(scripts.lockLeave, { lock: name, owner: writerOf(owner), count }, passage),
  'write.release': ({ name, owner, keepMs, entombMs }, wire, passage) => {
    const tombstone = lockTombstone(name, writerOf(owner))
    const args = { lock: name, tombstone, owner, ...to(name, wire), keepMs, entombMs }
    return wire.send(scripts.writeRelease, args, passage)
  },
  'write.renew': ({ holds, ttlMs }, wire, passage) => {
    const args = { locks: holds.map(nameOf), ttlMs, owners: holds.map(fieldOfWriter) }
    return wire.send(scripts.lockRenew, args, passage).then(renewReply)
  },
  'write.inspect': ({ name }, wire, passage) =>
    wire.send(scripts.writeInspect, { lock: name }, passage).then(inspectReply),
  'write.force': ({ name, owners }, wire, passage) =>
    wire.send(scripts.writeForce, { lock: name, ...to(name, wire), owners }, passage),
}

function to(name: string, wire: Wire): { readonly channel: string; readonly publish: string } {
  return { channel: readWriteChannel(name), publish: wire.publish }
}

/** The field of an owner that writes. */
function writerOf(owner: string): string {
  return `${owner}:write`
}

function fieldOfWriter({ owner }: Hold): string {
  return writerOf(owner)
}

function inspectReply(
  reply: scripts.ReadInspectReply | scripts.WriteInspectReply | ForeignReply,
): InspectReply {
  if (reply.outcome !== 'held') return reply
  const holders = new Map<string, number>()
  for (let i = 0; i + 1 < reply.holders.length; i += 2) {
    const owner = reply.holders[i]
    if (owner !== undefined) holders.set(owner, Number(reply.holders[i + 1]))
  }
  return { outcome: 'held', ttlMs: reply.ttlMs, holders }
}
