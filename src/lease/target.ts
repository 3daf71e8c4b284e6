import type { Topic } from '../engine/engine.js'
import type { Hold, LockOperation, MutexOperation } from '../engine/operations.js'
import { KINDS } from './kinds.js'

/** The kinds of locks that one owner holds at a time. */
export type Family = 'lock' | 'mutex'

/** The object that a call is about. */
export interface Target {
  readonly family: Family
  /** The base name in the engine. */
  readonly name: string
  /** The name as the caller gave it. */
  readonly title: string
}

/** How to take an object. */
export interface AcquireTerms {
  /** The hold count that the owner is to have. */
  readonly count: number
  readonly leaseMs: number
}

/** How to end an owner. */
export interface ReleaseTerms {
  readonly keepMs: number
  readonly entombMs: number
}

type AnyOperation = LockOperation | MutexOperation

/** An operation that takes an object for an owner. */
export type AcquireOperation = Extract<AnyOperation, { readonly op: `${string}.acquire` }>
/** An operation that lowers a hold count. */
export type LeaveOperation = Extract<AnyOperation, { readonly op: `${string}.leave` }>
/** An operation that ends an owner. */
export type ReleaseOperation = Extract<AnyOperation, { readonly op: `${string}.release` }>
/** An operation that raises TTLs. */
export type RenewOperation = Extract<AnyOperation, { readonly op: `${string}.renew` }>
/** An operation that reads the holders. */
export type InspectOperation = Extract<AnyOperation, { readonly op: `${string}.inspect` }>
/** An operation that takes the object away from owners that were seen. */
export type ForceOperation = Extract<AnyOperation, { readonly op: `${string}.force` }>

/** How the objects of a family are asked for: what differs between them, and nothing else. */
export interface Kind {
  /** Families with one keyspace are the same lock under the same name, whatever the class. */
  readonly keyspace: string
  /** What is expected under the name, for messages. */
  readonly what: string
  /** Some holders do not publish, so waiters poll. */
  readonly polls: boolean
  /** Where a waiter hears of releases; undefined: nowhere. */
  topic(target: Target): Topic | undefined
  acquire(target: Target, owner: string, terms: AcquireTerms): AcquireOperation
  /** Undefined: the object knows no counts. */
  leave(target: Target, owner: string, count: number): LeaveOperation | undefined
  release(target: Target, owner: string, terms: ReleaseTerms): ReleaseOperation
  renew(holds: readonly Hold[], ttlMs: number): RenewOperation
  inspect(target: Target): InspectOperation
  force(target: Target, owners: readonly string[]): ForceOperation
}

/** How this object is asked for. */
export function kindOf(target: Target): Kind {
  return KINDS[target.family]
}

/** Whether two targets are one lock: the same mapped name, whatever the class. */
export function sameLock(one: Target, other: Target): boolean {
  return one.name === other.name && KINDS[one.family].keyspace === KINDS[other.family].keyspace
}
