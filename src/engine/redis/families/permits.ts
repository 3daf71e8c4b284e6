import type { Passage } from '../../engine.js'
import type {
  ForeignReply,
  Handlers,
  PermitsAcquireReply,
  PermitsCountReply,
  PermitsOperation,
  PermitsRestReply,
} from '../../operations.js'
import { lockTombstone, permitLeases, requestKey, semaphoreChannel } from '../names.js'
import * as scripts from '../scripts.js'
import { ownerOf, renewReply, type Wire } from './wire.js'

/** How long the note of a change is kept, by which a late copy knows that it was applied. */
const MARK_MS = 60_000

/** The operations of the semaphore with leases as scripts. */
export const permitsCommands: Handlers<PermitsOperation, [Wire, Passage], true> = {
  'permits.acquire': ({ name, owner, total = -1, leaseMs }, wire, passage) => {
    const args = { ...keysOf(name), tombstone: tombstoneOf(name, owner), ...to(name, wire) }
    const terms = { nowMs: wire.now(), leaseMs, total, ids: owner.split(',') }
    return wire.send(scripts.permitsAcquire, { ...args, ...terms }, passage).then(acquireReply)
  },
  'permits.release': ({ name, owner, entombMs }, wire, passage) => {
    const args = { ...keysOf(name), tombstone: tombstoneOf(name, owner), ...to(name, wire) }
    return wire.send(scripts.permitsRelease, { ...args, entombMs, ids: owner.split(',') }, passage)
  },
  'permits.renew': ({ holds, ttlMs }, wire, passage) => {
    const leases = holds.map(({ name }) => permitLeases(name))
    const args = { leases, nowMs: wire.now(), ttlMs, owners: holds.map(ownerOf) }
    return wire.send(scripts.permitsRenew, args, passage).then(renewReply)
  },
  'permits.give': ({ name, ids, all }, wire, passage) => {
    const args = { ...keysOf(name), ...to(name, wire), nowMs: wire.now(), all: all ? 1 : 0, ids }
    return wire.send(scripts.permitsGive, args, passage)
  },
  'permits.update': ({ name, id, leaseMs, request }, wire, passage) => {
    const on = { leases: permitLeases(name), request: requestKey(name, request) }
    const args = { ...on, nowMs: wire.now(), leaseMs, markMs: MARK_MS, id }
    return wire.send(scripts.permitsUpdate, args, passage)
  },
  'permits.rest': ({ name, id }, wire, passage) =>
    wire
      .send(scripts.permitsRest, { leases: permitLeases(name), nowMs: wire.now(), id }, passage)
      .then(restReply),
  'permits.count': ({ name }, wire, passage) => {
    const args = { ...keysOf(name), ...to(name, wire), nowMs: wire.now() }
    return wire.send(scripts.permitsCount, args, passage).then(countReply)
  },
  'permits.set': ({ name, permits, request }, wire, passage) => {
    const args = { ...keysOf(name), request: requestKey(name, request), ...to(name, wire) }
    return wire.send(scripts.permitsSet, { ...args, permits, markMs: MARK_MS }, passage)
  },
  'permits.try-set': ({ name, permits, request }, wire, passage) => {
    const args = { ...keysOf(name), request: requestKey(name, request), ...to(name, wire) }
    return wire.send(scripts.permitsTrySet, { ...args, permits, markMs: MARK_MS }, passage)
  },
  'permits.add': ({ name, permits, total = -1, request }, wire, passage) => {
    const args = { ...keysOf(name), request: requestKey(name, request), ...to(name, wire) }
    return wire.send(scripts.permitsAdd, { ...args, permits, total, markMs: MARK_MS }, passage)
  },
}

function keysOf(name: string): { readonly count: string; readonly leases: string } {
  return { count: name, leases: permitLeases(name) }
}

function to(name: string, { publish }: Wire): { readonly channel: string; readonly publish: string } {
  return { channel: semaphoreChannel(name), publish }
}

/** An owner can be of many ids; the first one stands for them. */
function tombstoneOf(name: string, owner: string): string {
  const [first = ''] = owner.split(',', 1)
  return lockTombstone(name, first)
}

function acquireReply(reply: scripts.PermitsAcquireReply | ForeignReply): PermitsAcquireReply {
  switch (reply.outcome) {
    case 'granted':
      return { ...reply, left: Number(reply.left), ttlMs: endless(reply.ttlMs) }
    case 'busy': {
      const { available, total, ttlMs } = reply
      return { ...reply, available: Number(available), total: Number(total), ttlMs: endless(ttlMs) }
    }
    default:
      return reply
  }
}

function countReply(reply: scripts.PermitsCountReply | ForeignReply): PermitsCountReply {
  return reply.outcome === 'counted' ? { ...reply, available: Number(reply.available) } : reply
}

function restReply(reply: scripts.PermitsRestReply | ForeignReply): PermitsRestReply {
  return reply.outcome === 'held' ? { outcome: 'held', ttlMs: endless(reply.ttlMs) } : reply
}

function endless(ttlMs: number): number {
  return ttlMs < 0 ? Infinity : ttlMs
}
