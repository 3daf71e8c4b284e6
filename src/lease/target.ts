import type { Hold, Operation } from '../engine/operations.js'

/** The object that a call is about. */
export interface Target {
  readonly family: 'lock' | 'mutex'
  /** The base name in the engine. */
  readonly name: string
  /** The name as the caller gave it. */
  readonly title: string
}

/** How to end an owner. */
export interface ReleaseTerms {
  readonly keepMs: number
  readonly entombMs: number
}

/** The operation that takes the object for an owner; a mutex knows no counts. */
export function acquireOperation(
  { family, name }: Target,
  owner: string,
  { count, leaseMs }: { readonly count: number; readonly leaseMs: number },
): AcquireOperation {
  return family === 'lock'
    ? { op: 'lock.acquire', name, owner, count, leaseMs }
    : { op: 'mutex.acquire', name, owner, leaseMs }
}

/** The operation that ends an owner. */
export function releaseOperation(target: Target, owner: string, terms: ReleaseTerms): ReleaseOperation {
  const { family, name } = target
  const { keepMs, entombMs } = terms
  return family === 'lock'
    ? { op: 'lock.release', name, owner, keepMs, entombMs }
    : { op: 'mutex.release', name, owner, keepMs, entombMs }
}

/** The operation that raises TTLs. */
export function renewOperation(
  family: Target['family'],
  holds: readonly Hold[],
  ttlMs: number,
): RenewOperation {
  return family === 'lock' ? { op: 'lock.renew', ttlMs, holds } : { op: 'mutex.renew', ttlMs, holds }
}

/** The operation that reads the holders. */
export function inspectOperation({ family, name }: Target): InspectOperation {
  return family === 'lock' ? { op: 'lock.inspect', name } : { op: 'mutex.inspect', name }
}

/** The operation that takes the object away from owners that were seen. */
export function forceOperation({ family, name }: Target, owners: readonly string[]): ForceOperation {
  return family === 'lock' ? { op: 'lock.force', name, owners } : { op: 'mutex.force', name, owners }
}

type AcquireOperation = Extract<Operation, { readonly op: 'lock.acquire' | 'mutex.acquire' }>
type ReleaseOperation = Extract<Operation, { readonly op: 'lock.release' | 'mutex.release' }>
type RenewOperation = Extract<Operation, { readonly op: 'lock.renew' | 'mutex.renew' }>
type InspectOperation = Extract<Operation, { readonly op: 'lock.inspect' | 'mutex.inspect' }>
type ForceOperation = Extract<Operation, { readonly op: 'lock.force' | 'mutex.force' }>
