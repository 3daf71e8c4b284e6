import { GroupLease } from './group-lease.js'
import { HeldLease } from './lease.js'
import type { Runtime } from './runtime.js'
import { sameLock, type Target } from './target.js'

/** The lease of this lock that another lease is, or has as a part. */
export function partOf(lease: object, runtime: Runtime, target: Target): HeldLease | undefined {
  const parts = lease instanceof GroupLease ? lease.parts() : [lease]
  return parts.find(
    (part): part is HeldLease =>
      part instanceof HeldLease && part.isOf(runtime) && sameLock(part.tenure.target, target),
  )
}
