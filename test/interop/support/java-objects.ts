/** Redisson's objects with their Java methods, as one Java thread sees them. All times are milliseconds. */
import { MS, type Answer, type Argument, type JavaThread } from './java-peer.js'

/** The reference of an object with one name. */
export function reference(factory: string, name: string, part?: 'readLock' | 'writeLock'): string {
  const whole = `${factory}/${encodeURIComponent(name)}`
  return part === undefined ? whole : `${whole}/${part}`
}

/** The reference of the same object on one server of several. */
export function onServer(place: number, ref: string): string {
  return `${place}@${ref}`
}

/** The reference of a multi-lock over others, or a red lock. */
export function multiReference(
  members: readonly string[],
  factory: 'getMultiLock' | 'getRedLock' = 'getMultiLock',
): string {
  return [factory, ...members.map((member) => encodeURIComponent(member))].join('/')
}

class JavaObject {
  readonly reference: string
  readonly thread: JavaThread

  constructor(thread: JavaThread, ref: string) {
    this.thread = thread
    this.reference = ref
  }

  protected call(method: string, ...args: readonly Argument[]): Promise<Answer> {
    return this.thread.call(this.reference, method, ...args)
  }

  protected async bool(method: string, ...args: readonly Argument[]): Promise<boolean> {
    return (await this.call(method, ...args)) === 'true'
  }

  protected async number(method: string, ...args: readonly Argument[]): Promise<number> {
    return Number(await this.call(method, ...args))
  }

  protected async none(method: string, ...args: readonly Argument[]): Promise<void> {
    await this.call(method, ...args)
  }
}

/** An `RLock`, and what an `RFencedLock` adds. */
export class JavaLock extends JavaObject {
  /** Without a lease its watchdog keeps it alive. */
  lock(leaseMs?: number): Promise<void> {
    return leaseMs === undefined ? this.none('lock') : this.none('lock', leaseMs, MS)
  }

  lockInterruptibly(): Promise<void> {
    return this.none('lockInterruptibly')
  }

  /** Without arguments one attempt. A lease of -1 means the watchdog. */
  tryLock(waitMs?: number, leaseMs = -1): Promise<boolean> {
    return waitMs === undefined ? this.bool('tryLock') : this.bool('tryLock', waitMs, leaseMs, MS)
  }

  unlock(): Promise<void> {
    return this.none('unlock')
  }

  forceUnlock(): Promise<boolean> {
    return this.bool('forceUnlock')
  }

  isLocked(): Promise<boolean> {
    return this.bool('isLocked')
  }

  isHeldByCurrentThread(): Promise<boolean> {
    return this.bool('isHeldByCurrentThread')
  }

  holdCount(): Promise<number> {
    return this.number('getHoldCount')
  }

  /** -2: free, -1: no TTL. */
  remainTimeToLive(): Promise<number> {
    return this.number('remainTimeToLive')
  }

  /** Always with the watchdog: Redisson's method with a lease does not use it. */
  lockAndGetToken(): Promise<number> {
    return this.number('lockAndGetToken')
  }

  async tryLockAndGetToken(waitMs: number, leaseMs: number): Promise<number | null> {
    const token = await this.call('tryLockAndGetToken', waitMs, leaseMs, MS)
    return token === null ? null : Number(token)
  }

  getToken(): Promise<number> {
    return this.number('getToken')
  }
}

/** An `RSemaphore`. */
export class JavaSemaphore extends JavaObject {
  acquire(permits = 1): Promise<void> {
    return this.none('acquire', permits)
  }

  tryAcquire(permits = 1, waitMs = 0): Promise<boolean> {
    return waitMs === 0 ? this.bool('tryAcquire', permits) : this.bool('tryAcquire', permits, waitMs, MS)
  }

  release(permits = 1): Promise<void> {
    return this.none('release', permits)
  }

  availablePermits(): Promise<number> {
    return this.number('availablePermits')
  }

  drainPermits(): Promise<number> {
    return this.number('drainPermits')
  }

  trySetPermits(permits: number): Promise<boolean> {
    return this.bool('trySetPermits', permits)
  }

  addPermits(permits: number): Promise<void> {
    return this.none('addPermits', permits)
  }

  delete(): Promise<boolean> {
    return this.bool('delete')
  }
}

/** An `RPermitExpirableSemaphore`. */
export class JavaPermits extends JavaObject {
  async acquire(leaseMs?: number): Promise<string> {
    return String(
      leaseMs === undefined ? await this.call('acquire') : await this.call('acquire', leaseMs, MS),
    )
  }

  /** The id, or null. A lease of -1 means none. */
  async tryAcquire(waitMs: number, leaseMs = -1): Promise<string | null> {
    const id = await this.call('tryAcquire', waitMs, leaseMs, MS)
    return id === null ? null : String(id)
  }

  release(id: string): Promise<void> {
    return this.none('release', id)
  }

  tryRelease(id: string): Promise<boolean> {
    return this.bool('tryRelease', id)
  }

  /** Since 3.23.4. */
  tryReleaseAll(ids: readonly string[]): Promise<number> {
    return this.number('tryRelease', ids)
  }

  availablePermits(): Promise<number> {
    return this.number('availablePermits')
  }

  /** Since 3.19.1. */
  acquiredPermits(): Promise<number> {
    return this.number('acquiredPermits')
  }

  trySetPermits(permits: number): Promise<boolean> {
    return this.bool('trySetPermits', permits)
  }

  /** Since 3.19.1. */
  setPermits(permits: number): Promise<void> {
    return this.none('setPermits', permits)
  }

  addPermits(permits: number): Promise<void> {
    return this.none('addPermits', permits)
  }

  updateLeaseTime(id: string, leaseMs: number): Promise<boolean> {
    return this.bool('updateLeaseTime', id, leaseMs, MS)
  }

  /** Since 3.41.0; -1: none. */
  leaseTime(id: string): Promise<number> {
    return this.number('getLeaseTime', id)
  }
}

/** An `RCountDownLatch`. */
export class JavaLatch extends JavaObject {
  await(): Promise<void> {
    return this.none('await')
  }

  awaitFor(waitMs: number): Promise<boolean> {
    return this.bool('await', waitMs, MS)
  }

  countDown(): Promise<void> {
    return this.none('countDown')
  }

  getCount(): Promise<number> {
    return this.number('getCount')
  }

  trySetCount(count: number): Promise<boolean> {
    return this.bool('trySetCount', count)
  }

  delete(): Promise<boolean> {
    return this.bool('delete')
  }
}
