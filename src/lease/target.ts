import type { Topic } from '../engine/engine.js'
import type {
  FairAbandon,
  FairOperation,
  FencedAcquire,
  Hold,
  LockOperation,
  MutexOperation,
  PermitsOperation,
  ReadWriteOperation,
  SpinOperation,
} from '../engine/operations.js'
import { KINDS } from './kinds.js'

/** The kinds of locks that one owner holds at a time. */
export type Family = 'fair' | 'permits' | 'lock' | 'mutex' | 'fenced' | 'spin' | 'read' | 'write'

/** The object that a call is about. */
export interface Target {
  readonly family: Family
  /** The base name in the engine. */
  readonly name: string
  /** The name as the caller gave it. */
  readonly title: string
  /** How many permits there are in all, if the object has some and its maker said so. */
  readonly total?: number | undefined
}

/** How to take an object. */
export interface AcquireTerms {
  /** The hold count that the owner is to have. */
  readonly count: number
  readonly leaseMs: number
  /** How to stand in line, where the engine has a queue; undefined: not at all. */
  readonly line?: Line | undefined
  /** The writer that lets this reader in beside itself; empty: none. */
  readonly writer?: string | undefined
}

/** A place in a queue of the engine. */
export interface Line {
  /** How long the place is kept. */
  readonly waitMs: number
  /** Take one, if the object cannot be had at once. */
  readonly join: boolean
}

/** How to end an owner that may stand in a queue. */
export interface AbandonTerms {
  /** As in its attempts. */
  readonly waitMs: number
  readonly entombMs: number
}

/** How to end an owner. */
export interface ReleaseTerms {
  readonly keepMs: number
  readonly entombMs: number
}

type AnyOperation =
  | ReadWriteOperation
  | FairOperation
  | PermitsOperation
  | LockOperation
  | MutexOperation
  | FencedAcquire
  | SpinOperation

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
  /** Each grant carries a token. */
  readonly tokens?: true
  /** What the object is called in messages. @defaultValue `'Lock'` */
  readonly noun?: 'Semaphore'
  /** Several hold the object at once, each with an owner of its own kind; nobody re-enters, or waits for oneself. */
  readonly shared?: {
    /** A new owner in place of one that was ended. */
    newOwner(old: string): string
    /** The owner for messages and events: it may be of a thousand ids. */
    shown(owner: string): string
  }
  /** Its holders let each other in, and the renewal of another may cut the time for which the server knows them. */
  readonly reading?: true
  /** Where a waiter hears of releases; undefined: nowhere. */
  topic(target: Target, owner?: string): Topic | undefined
  acquire(target: Target, owner: string, terms: AcquireTerms): AcquireOperation
  /** Undefined: the object knows no counts. */
  leave(target: Target, owner: string, count: number): LeaveOperation | undefined
  release(target: Target, owner: string, terms: ReleaseTerms): ReleaseOperation
  /** Ends an owner that was handed to nobody, where it may stand in a queue; undefined: a release does that. */
  abandon?(target: Target, owner: string, terms: AbandonTerms): FairAbandon
  renew(holds: readonly Hold[], ttlMs: number): RenewOperation
  /** Undefined: who holds the object is nobody's question. */
  inspect(target: Target): InspectOperation | undefined
  force(target: Target, owners: readonly string[]): ForceOperation | undefined
}

/** How this object is asked for. */
export function kindOf(target: Target): Kind {
  return KINDS[target.family]
}

/** An owner of this object, as messages and events show it. */
export function shownOwner(target: Target, owner: string): string {
  return kindOf(target).shared?.shown(owner) ?? owner
}

/** Whether two targets are one lock: the same mapped name, whatever the class. */
export function sameLock(one: Target, other: Target): boolean {
  return one.name === other.name && KINDS[one.family].keyspace === KINDS[other.family].keyspace
}
