import { permitsInstead, shownPermits } from './permit-ids.js'
import type { Family, Kind } from './target.js'

/** Of an owner without a place nothing has to be taken back. */
const NO_LINE = { waitMs: 0, join: false }

/** A waiter behind the head of a queue looks by itself after this time at the latest; who should look earlier is told. */
export const BEHIND_MS = 10_000

const lock: Kind = {
  keyspace: 'lock',
  what: 'a lock (a hash of owners)',
  polls: false,
  topic: ({ name }) => ({ family: 'lock', name }),
  acquire: ({ name }, owner, { count, leaseMs }) => ({ op: 'lock.acquire', name, owner, count, leaseMs }),
  leave: ({ name }, owner, count) => ({ op: 'lock.leave', name, owner, count }),
  release: ({ name }, owner, { keepMs, entombMs }) => ({ op: 'lock.release', name, owner, keepMs, entombMs }),
  renew: (holds, ttlMs) => ({ op: 'lock.renew', ttlMs, holds }),
  inspect: ({ name }) => ({ op: 'lock.inspect', name }),
  force: ({ name }, owners) => ({ op: 'lock.force', name, owners }),
}

const fair: Kind = {
  ...lock,
  topic: ({ name }, owner) => ({ family: 'lock', name, ...(owner === undefined ? {} : { owner }) }),
  acquire: (target, owner, terms) => {
    const { leaseMs, line = NO_LINE } = terms
    // Who is inside need not stand in line again.
    if (terms.count > 1) return lock.acquire(target, owner, terms)
    return { op: 'fair.acquire', name: target.name, owner, leaseMs, ...line, lookMs: BEHIND_MS }
  },
  release: ({ name }, owner, { keepMs, entombMs }) => ({ op: 'fair.release', name, owner, keepMs, entombMs }),
  abandon: ({ name }, owner, terms) => ({ op: 'fair.abandon', name, owner, ...terms, lookMs: BEHIND_MS }),
  force: ({ name }, owners) => ({ op: 'fair.force', name, owners }),
}

const fenced: Kind = {
  ...lock,
  tokens: true,
  acquire: ({ name }, owner, { count, leaseMs }) => ({ op: 'fenced.acquire', name, owner, count, leaseMs }),
}

const spin: Kind = {
  ...lock,
  topic: () => undefined,
  release: ({ name }, owner, { keepMs, entombMs }) => ({ op: 'spin.release', name, owner, keepMs, entombMs }),
  force: ({ name }, owners) => ({ op: 'spin.force', name, owners }),
}

const mutex: Kind = {
  keyspace: 'mutex',
  what: 'a mutex (a string)',
  polls: true,
  topic: ({ name }) => ({ family: 'mutex', name }),
  acquire: ({ name }, owner, { leaseMs }) => ({ op: 'mutex.acquire', name, owner, leaseMs }),
  leave: () => undefined,
  release: ({ name }, owner, { keepMs, entombMs }) => ({
    op: 'mutex.release',
    name,
    owner,
    keepMs,
    entombMs,
  }),
  renew: (holds, ttlMs) => ({ op: 'mutex.renew', ttlMs, holds }),
  inspect: ({ name }) => ({ op: 'mutex.inspect', name }),
  force: ({ name }, owners) => ({ op: 'mutex.force', name, owners }),
}

const permits: Kind = {
  keyspace: 'permits',
  what: 'a number of permits, with leases beside it',
  polls: false,
  noun: 'Semaphore',
  shared: { newOwner: permitsInstead, shown: shownPermits },
  topic: ({ name }) => ({ family: 'semaphore', name }),
  acquire: ({ name, total }, owner, { leaseMs }) => ({ op: 'permits.acquire', name, owner, total, leaseMs }),
  leave: () => undefined,
  release: ({ name }, owner, { keepMs, entombMs }) => ({
    op: 'permits.release',
    name,
    owner,
    keepMs,
    entombMs,
  }),
  renew: (holds, ttlMs) => ({ op: 'permits.renew', ttlMs, holds }),
  inspect: () => undefined,
  force: () => undefined,
}

const read: Kind = {
  keyspace: 'read-write',
  what: 'a read/write lock (a hash of a mode and owners)',
  polls: false,
  reading: true,
  topic: ({ name }) => ({ family: 'read-write', name }),
  acquire: ({ name }, owner, { count, leaseMs, writer = '' }) => ({
    op: 'read.acquire',
    name,
    owner,
    writer,
    count,
    leaseMs,
  }),
  leave: ({ name }, owner, count) => ({ op: 'read.leave', name, owner, count }),
  release: ({ name }, owner, { keepMs, entombMs }) => ({ op: 'read.release', name, owner, keepMs, entombMs }),
  renew: (holds, ttlMs) => ({ op: 'read.renew', ttlMs, holds }),
  inspect: ({ name }) => ({ op: 'read.inspect', name }),
  force: ({ name }, owners) => ({ op: 'read.force', name, owners }),
}

const write: Kind = {
  keyspace: 'read-write',
  what: 'a read/write lock (a hash of a mode and owners)',
  polls: false,
  topic: ({ name }) => ({ family: 'read-write', name }),
  acquire: ({ name }, owner, { count, leaseMs }) => ({ op: 'write.acquire', name, owner, count, leaseMs }),
  leave: ({ name }, owner, count) => ({ op: 'write.leave', name, owner, count }),
  release: ({ name }, owner, { keepMs, entombMs }) => ({
    op: 'write.release',
    name,
    owner,
    keepMs,
    entombMs,
  }),
  renew: (holds, ttlMs) => ({ op: 'write.renew', ttlMs, holds }),
  inspect: ({ name }) => ({ op: 'write.inspect', name }),
  force: ({ name }, owners) => ({ op: 'write.force', name, owners }),
}

/** How each family is asked for. */
export const KINDS: Readonly<Record<Family, Kind>> = { fair, permits, lock, mutex, fenced, spin, read, write }
