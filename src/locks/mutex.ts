import type { ExclusiveLock } from './holder-lock.js'

/**
 * The plain lock: one string key, `SET key token NX PX` and compare-and-delete, as in Redis' own documentation;
 * interoperable with other libraries that do the same. It does not re-enter.
 */
export type Mutex = ExclusiveLock
