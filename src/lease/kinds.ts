import type { Family, Kind } from './target.js'

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

/** How each family is asked for. */
export const KINDS: Readonly<Record<Family, Kind>> = { lock, mutex }
