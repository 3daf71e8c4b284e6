import type { Busy } from '../lease/call.js'
import { acquireAll } from '../lease/multi-acquire.js'
import type { HeldMultiLease, MultiLease } from '../lease/multi-lease.js'
import type { Member } from '../lease/member.js'
import type { Runtime } from '../lease/runtime.js'
import { sameLock } from '../lease/target.js'
import { describe } from '../option-checks.js'
import { type ResolvedAcquireOptions } from '../options.js'
import { GroupLock } from './group-lock.js'
import { LeaseLock, ownerArgument, type ExclusiveLock } from './holder-lock.js'
import { RedLockObject } from './red-lock.js'

/**
 * Several locks as one: all or none. Its looks are about all of them: `isLocked` whether any member is held, so that
 * somebody who wants all has to wait; `isHeldBy` whether this owner holds every member; `remainingTime` until all
 * would be free; `forceRelease` takes every member from whoever holds it.
 */
export type MultiLock = ExclusiveLock<MultiLease>

/** A lock that was given, and what it is to the runtime. */
interface Part {
  readonly lock: Pick<ExclusiveLock, 'isLocked' | 'isHeldBy' | 'remainingTime' | 'forceRelease'>
  readonly member: Member
}

/** The multi-lock behind the interface. */
export class MultiLockObject extends GroupLock<MultiLease, HeldMultiLease> implements MultiLock {
  readonly parts: readonly Part[]
  readonly #members: readonly Member[]
  readonly #sorted: readonly Member[]

  /** @throws TypeError for what is no lock; RangeError for none, and for two kinds of lock under one name */
  constructor(runtime: Runtime, locks: readonly unknown[]) {
    const parts = merged(partsOf(locks))
    super(runtime, parts.map(({ member }) => member.target.title).join(' + '))
    this.parts = parts
    this.#members = parts.map(({ member }) => member)
    this.#sorted = [...this.#members].sort(inOrder)
  }

  async isLocked(): Promise<boolean> {
    const locked = await Promise.all(this.parts.map(({ lock }) => lock.isLocked()))
    return locked.includes(true)
  }

  async isHeldBy(owner: string): Promise<boolean> {
    ownerArgument(owner)
    const held = await Promise.all(this.parts.map(({ lock }) => lock.isHeldBy(owner)))
    return !held.includes(false)
  }

  async remainingTime(): Promise<number> {
    return Math.max(...(await Promise.all(this.parts.map(({ lock }) => lock.remainingTime()))))
  }

  async forceRelease(): Promise<boolean> {
    const forced = await Promise.allSettled(this.parts.map(({ lock }) => lock.forceRelease()))
    for (const result of forced) if (result.status === 'rejected') throw result.reason
    return forced.some((result) => result.status === 'fulfilled' && result.value)
  }

  protected override take(options: ResolvedAcquireOptions): Promise<HeldMultiLease | Busy> {
    const request = { title: this.name, members: this.#members, sorted: this.#sorted, options }
    return acquireAll(this.runtime, request)
  }
}

function partsOf(locks: unknown): readonly Part[] {
  if (!Array.isArray(locks)) throw new TypeError(`locks must be an array of locks, but is ${describe(locks)}`)
  if (locks.length === 0) throw new RangeError('locks must not be empty')
  return locks.flatMap((lock: unknown): readonly Part[] => {
    if (lock instanceof MultiLockObject) return lock.parts
    if (lock instanceof LeaseLock || lock instanceof RedLockObject) return [{ lock, member: lock.enrolment }]
    throw new TypeError(`locks must hold locks made by Holdfast, but one of them is ${describe(lock)}`)
  })
}

/** A lock that was given twice is taken once. */
function merged(parts: readonly Part[]): readonly Part[] {
  const kept: Part[] = []
  for (const part of parts) {
    const place = kept.findIndex(({ member }) => isSame(member, part.member))
    const before = kept[place]
    if (before === undefined) kept.push(part)
    else if (before.member.reentrant && !part.member.reentrant) kept[place] = part
  }
  return kept
}

/** @throws RangeError if they are two kinds of lock under one name */
function isSame(one: Member, other: Member): boolean {
  if (one.runtime !== other.runtime || one.key !== other.key) return false
  if (!sameLock(one.target, other.target)) return false
  if (one.target.family === other.target.family) return true
  const kinds = `${one.target.family} and ${other.target.family}`
  throw new RangeError(`locks has '${one.target.title}' as two kinds of lock: ${kinds}`)
}

/** The same order for all callers of all processes, so that they seldom get in each other's way. */
function inOrder({ target: one }: Member, { target: other }: Member): number {
  if (one.name !== other.name) return one.name < other.name ? -1 : 1
  return one.family < other.family ? -1 : 1
}
