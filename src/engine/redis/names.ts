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

/** The channel on which a mutex's release is told; plain locks of other libraries do not publish. */
export function mutexChannel(name: string): string {
  return prefixed('holdfast_mutex__channel', name)
}

/** Marks an ended token of a mutex. */
export function mutexTombstone(name: string, owner: string): string {
  return `${prefixed('holdfast_mutex_tombstone', name)}:${owner}`
}

/** The channel of a topic. */
export function channelOf({ family, name }: Topic): string {
  switch (family) {
    case 'lock':
      return lockChannel(name)
    case 'mutex':
      return mutexChannel(name)
  }
}

/** Why a name cannot be used in a cluster, or undefined: the keys derived from it would fall into different slots. */
export function unsafeInCluster(name: string): string | undefined {
  const open = name.indexOf('{')
  if (open === -1) return name.includes('}') ? `it contains '}' without '{'` : undefined
  const close = name.indexOf('}', open + 1)
  if (close === -1) return `its '{' is never closed`
  return close === open + 1 ? `its hash tag '{}' is empty` : undefined
}
