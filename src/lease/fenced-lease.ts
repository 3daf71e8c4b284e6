import { HeldLease, type Lease, type LeaseTerms } from './lease.js'
import type { Runtime } from './runtime.js'
import { HeldPermitLease } from './permit-lease.js'
import { kindOf } from './target.js'

/** A lease with a number that grows with every grant of its lock, so that a store can refuse those who hold it no more. */
export interface FencedLease extends Lease {
  /**
   * The fencing token: higher than that of every earlier holder, and still to be read when the lease is lost.
   * Entering once more gives a higher one, which the leases around it then have too: they are one holder. So read
   * it when you write, rather than before.
   */
  readonly token: number
}

/** The lease of a fenced lock that users hold. */
export class HeldFencedLease extends HeldLease implements FencedLease {
  get token(): number {
    return this.tenure.token
  }
}

/** The lease that an object of this kind gives. */
export function makeLease(runtime: Runtime, terms: LeaseTerms): HeldLease {
  const kind = kindOf(terms.target)
  if (kind.shared !== undefined) return new HeldPermitLease(runtime, terms)
  return kind.tokens === true ? new HeldFencedLease(runtime, terms) : new HeldLease(runtime, terms)
}
