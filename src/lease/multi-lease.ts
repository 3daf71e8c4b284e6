import type { ReleaseOutcome } from '../diagnostics.js'
import { LeaseLostError } from '../errors.js'
import { GroupLease } from './group-lease.js'
import { HeldLease, type Lease } from './lease.js'
import type { MemberLease } from './member.js'
import { releaseTogether } from './release-together.js'

/** One lease of several locks: held as long as all of them are. */
export interface MultiLease extends Lease {
  /** The leases of the locks, in the order in which these were given; of a lock that was given twice there is one. They are released through the whole. */
  readonly leases: readonly Lease[]
}

/** From the best to the worst. */
const OUTCOMES: readonly ReleaseOutcome[] = ['released', 'still-held', 'unknown', 'expired', 'stolen']

/** The lease of a multi-lock that users hold. */
export class HeldMultiLease extends GroupLease implements MultiLease {
  get leases(): readonly MemberLease[] {
    return this.members
  }

  protected override async releaseMembers(): Promise<ReleaseOutcome> {
    const single = this.members.filter((member) => member instanceof HeldLease)
    const others = this.members.filter((member) => !(member instanceof HeldLease))
    const outcomes = await Promise.all([
      ...releaseTogether(single),
      ...others.map((member) => member.release()),
    ])
    return OUTCOMES[Math.max(...outcomes.map((outcome) => OUTCOMES.indexOf(outcome)))] ?? 'unknown'
  }

  protected override async extendMembers(ms: number): Promise<void> {
    const results = await Promise.allSettled(this.members.map((member) => member.extend(ms)))
    const failed = results.filter((result) => result.status === 'rejected')
    if (failed.length > 0) this.assertLive()
    for (const { reason } of failed) if (reason instanceof LeaseLostError) throw reason
    for (const { reason } of failed) throw reason
  }
}
