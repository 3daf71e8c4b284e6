import { HeldLease, type Lease } from './lease.js'

/** One or several permits of a semaphore, taken together: they are renewed, lost and released together. */
export interface PermitLease extends Lease {
  /** Stands for the permits in messages and events: the id of the first, and `+` how many more there are. */
  readonly owner: string
  /** The ids of the permits, 32 hex characters each: by them another process can look after or release them. */
  readonly ids: readonly string[]
}

/** The lease of permits that users hold. */
export class HeldPermitLease extends HeldLease implements PermitLease {
  get ids(): readonly string[] {
    return this.tenure.owner.split(',')
  }
}
