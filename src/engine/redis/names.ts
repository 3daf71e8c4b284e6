/**
 * Every Redis key and channel is derived from the base name by Redisson's two rules, so that both sides
 * meet on the same keys and a cluster keeps an object's keys in one slot. See docs/protocol.md.
 */

import type { Topic } from '../engine.js'

/** Redisson's prefix form: `prefix:{name}`, or `prefix:name` if the name brings braces of its own. */
export function prefixed(prefix: string, name: string): string {
  return name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`
}

/** The channel on which a re-entrant lock's release is told. */
export function lockChannel(name: string): string {
  return prefixed('redisson_lock__channel', name)
}

/** Marks an ended owner of a re-entrant lock, so that its late acquires are refused. */
export function lockTombstone(name: string, owner: string): string {
  return `${prefixed('redisson_unlock_latch', name)}:${owner}`
}

/** The channel on which both sides of a read/write lock are told of releases. */
export function readWriteChannel(name: string): string {
  return prefixed('redisson_rwlock', name)
}

/** The counter of a fenced lock's tokens. */
export function fencedToken(name: string): string {
  return prefixed('redisson_lock_token', name)
}

/** The waiters of a fair lock, in the order of their coming. */
export function fairQueue(name: string): string {
  return prefixed('redisson_lock_queue', name)
}

/** Until when the place of each of them is kept. */
export function fairDeadlines(name: string): string {
  return prefixed('redisson_lock_timeout', name)
}

/** The channel on which a mutex's release is told; plain locks of other libraries do not publish. */
export function mutexChannel(name: string): string {
  return prefixed('holdfast_mutex__channel', name)
}

/** Marks an ended token of a mutex. */
export function mutexTombstone(name: string, owner: string): string {
  return `${prefixed('holdfast_mutex_tombstone', name)}:${owner}`
}

/** The channel on which permits that became free are told. */
export function semaphoreChannel(name: string): string {
  return prefixed('redisson_sc', name)
}

/** Redisson's suffix form: `{name}:suffix`, or `name:suffix` if the name brings braces of its own. */
export function suffixed(name: string, suffix: string): string {
  return name.includes('{') ? `${name}:${suffix}` : `{${name}}:${suffix}`
}

/** The permits that are out, beside the number of those that are not. */
export function permitLeases(name: string): string {
  return suffixed(name, 'timeout')
}

/** The channel of a latch. Redisson puts braces around the name whether it has some or not. */
export function latchChannel(name: string): string {
  return `redisson_countdownlatch__channel__{${name}}`
}

/** Notes what became of a request to an object without owners, so that its copies change nothing. */
export function requestKey(name: string, request: string): string {
  return `${prefixed('holdfast_request', name)}:${request}`
}

/** Which round of a latch it is, among the notes of its requests, none of which has such a name. */
export function roundKey(name: string): string {
  return requestKey(name, 'round')
}

/** What the handlers of a watch under a lock have handled. */
export function watchMarks(name: string): string {
  return prefixed('holdfast_watch', name)
}

/** Before a key, or a pattern of keys: the channel on which the server tells what is done to it. */
export function keyspaceChannel(database: number): string {
  return `__keyspace@${String(database)}__:`
}

/** The channel of a topic. */
export function channelOf({ family, name, owner }: Topic): string {
  switch (family) {
    case 'lock':
      // Each waiter of a fair lock has a channel of its own.
      return owner === undefined ? lockChannel(name) : `${lockChannel(name)}:${owner}`
    case 'mutex':
      return mutexChannel(name)
    case 'read-write':
      return readWriteChannel(name)
    case 'semaphore':
      return semaphoreChannel(name)
    case 'latch':
      return latchChannel(name)
  }
}

/** Why a name cannot be used in a cluster, or undefined: the keys derived from it would fall into different slots. */
export function unsafeInCluster(name: string, family?: Topic['family']): string | undefined {
  const open = name.indexOf('{')
  // Its channel would have the braces twice, and so another hash tag than its key.
  if (open !== -1 && family === 'latch') return `a latch's name must not contain '{'`
  if (open === -1) return name.includes('}') ? `it contains '}' without '{'` : undefined
  const close = name.indexOf('}', open + 1)
  if (close === -1) return `its '{' is never closed`
  return close === open + 1 ? `its hash tag '{}' is empty` : undefined
}
