import type { Passage } from '../../engine.js'
import type { FairOperation, Handlers } from '../../operations.js'
import { fairDeadlines, fairQueue, lockChannel, lockTombstone } from '../names.js'
import * as scripts from '../scripts.js'
import type { Wire } from './wire.js'

/** The fair lock's operations as scripts. Each waiter listens to a channel of its own, whose name begins with the lock's. */
export const fairCommands: Handlers<FairOperation, [Wire, Passage], true> = {
  'fair.acquire': ({ name, owner, leaseMs, waitMs, join, lookMs }, wire, passage) => {
    const terms = { leaseMs, waitMs, join: join ? 1 : 0, lookMs, nowMs: wire.now() }
    const args = {
      ...keysOf(name),
      ...told(name, wire),
      tombstone: lockTombstone(name, owner),
      owner,
      ...terms,
    }
    return wire.send(scripts.fairAcquire, args, passage)
  },
  'fair.abandon': ({ name, owner, waitMs, entombMs, lookMs }, wire, passage) => {
    const terms = { waitMs, entombMs, lookMs, nowMs: wire.now() }
    const args = {
      ...keysOf(name),
      ...told(name, wire),
      tombstone: lockTombstone(name, owner),
      owner,
      ...terms,
    }
    return wire.send(scripts.fairAbandon, args, passage).then((reply) =>
      // The queue itself is somebody's data: then there is no place to leave.
      reply.outcome === 'foreign' ? { outcome: 'none' } : reply,
    )
  },
  'fair.release': ({ name, owner, keepMs, entombMs }, wire, passage) => {
    const terms = { keepMs, entombMs, nowMs: wire.now() }
    const args = {
      ...keysOf(name),
      ...told(name, wire),
      tombstone: lockTombstone(name, owner),
      owner,
      ...terms,
    }
    return wire.send(scripts.fairRelease, args, passage)
  },
  'fair.force': ({ name, owners }, wire, passage) => {
    const args = { ...keysOf(name), ...told(name, wire), owners, nowMs: wire.now() }
    return wire.send(scripts.fairForce, args, passage)
  },
}

function keysOf(name: string): { readonly lock: string; readonly queue: string; readonly deadlines: string } {
  return { lock: name, queue: fairQueue(name), deadlines: fairDeadlines(name) }
}

function told(name: string, { publish }: Wire): { readonly channel: string; readonly publish: string } {
  return { channel: lockChannel(name), publish }
}
