/** The names that the script tests share. Keys and channels are spelled out, as Redisson has them. */
import type {
  LockAcquireArgs,
  LockForceArgs,
  LockReleaseArgs,
  MutexAcquireArgs,
  MutexForceArgs,
  MutexReleaseArgs,
} from '../../src/engine/redis/scripts.js'
import type { Message } from '../support/raw.js'
import { text, type Entry } from './stage.js'

export const OWNER = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:57'
export const OTHER = '1c6e9b0a-0d7c-4f55-8a56-0f6c1f1f2f3f:4503599627370497'

export const LOCK = 'orders:42'
export const LOCK_CHANNEL = 'redisson_lock__channel:{orders:42}'
export const DEAD = `redisson_unlock_latch:{orders:42}:${OWNER}`

export const MUTEX = 'report'
export const MUTEX_CHANNEL = 'holdfast_mutex__channel:{report}'
export const MUTEX_DEAD = `holdfast_mutex_tombstone:{report}:${OWNER}`

/** What one release tells the waiters. */
export const unlocked: Message = { channel: LOCK_CHANNEL, payload: '0' }
export const mutexUnlocked: Message = { channel: MUTEX_CHANNEL, payload: '0' }

/** A tombstone of 60 s. */
export const dead: Entry = text('1', 60_000)

/** Arguments of the lock scripts, with what a test does not care about filled in. */
export const locks = {
  acquire(args: Partial<LockAcquireArgs> = {}): LockAcquireArgs {
    const { lock = LOCK, owner = OWNER } = args
    const tombstone = `redisson_unlock_latch:{${lock}}:${owner}`
    return { lock, tombstone, owner, count: 1, leaseMs: 30_000, ...args }
  },
  release(args: Partial<LockReleaseArgs> = {}): LockReleaseArgs {
    const { lock = LOCK, owner = OWNER } = args
    const tombstone = `redisson_unlock_latch:{${lock}}:${owner}`
    const channel = `redisson_lock__channel:{${lock}}`
    return { lock, tombstone, owner, channel, publish: 'PUBLISH', keepMs: 0, entombMs: 0, ...args }
  },
  force(owners: readonly string[]): LockForceArgs {
    return { lock: LOCK, channel: LOCK_CHANNEL, publish: 'PUBLISH', owners }
  },
}

/** The same for the mutex. */
export const mutexes = {
  acquire(args: Partial<MutexAcquireArgs> = {}): MutexAcquireArgs {
    const { mutex = MUTEX, owner = OWNER } = args
    const tombstone = `holdfast_mutex_tombstone:{${mutex}}:${owner}`
    return { mutex, tombstone, owner, leaseMs: 30_000, ...args }
  },
  release(args: Partial<MutexReleaseArgs> = {}): MutexReleaseArgs {
    const { mutex = MUTEX, owner = OWNER } = args
    const tombstone = `holdfast_mutex_tombstone:{${mutex}}:${owner}`
    const channel = `holdfast_mutex__channel:{${mutex}}`
    return { mutex, tombstone, owner, channel, publish: 'PUBLISH', keepMs: 0, entombMs: 0, ...args }
  },
  force(owner: string): MutexForceArgs {
    return { mutex: MUTEX, owner, channel: MUTEX_CHANNEL, publish: 'PUBLISH' }
  },
}
