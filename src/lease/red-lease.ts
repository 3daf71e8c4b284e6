import type { ReleaseOutcome } from '../diagnostics.js'
import type { MemberResult } from '../errors.js'
import { GroupLease, type GroupTerms } from './group-lease.js'
import type { MemberLease } from './member.js'
import { troubleOf } from './red.js'
import type { Runtime } from './runtime.js'

/** The lease of a lock over several servers that users hold: held as long as a majority of them is. */
export class HeldRedLease extends GroupLease {
  readonly #places = new Map<MemberLease, number>()
  /** How many members the lock has. */
  readonly #size: number
  #extended = false

  constructor(
    runtime: Runtime,
    terms: GroupTerms & { readonly size: number },
    members: readonly MemberLease[],
  ) {
    super(runtime, terms, members)
    this.#size = terms.size
  }

  /** A member granted when the majority was there already: it may make up for one that fails later. */
  admit(lease: MemberLease, place: number): void {
    if (!this.join(lease)) {
      void lease.release()
      return
    }
    this.#places.set(lease, place)
    if (this.#extended) lease.letExpire()
  }

  /** Says which member a lease is of. */
  place(lease: MemberLease, place: number): void {
    this.#places.set(lease, place)
  }

  /** As soon as a majority has freed it, it is free; the others are freed behind it. */
  protected override releaseMembers(): Promise<ReleaseOutcome> {
    const releases = this.members.map((member) => member.release())
    return new Promise((resolve) => {
      const outcomes: ReleaseOutcome[] = []
      for (const release of releases)
        void release.then((outcome) => {
          outcomes.push(outcome)
          const decided = this.#outcome(outcomes)
          if (decided !== undefined || outcomes.length === releases.length)
            resolve(decided ?? worst(outcomes))
        })
    })
  }

  /** What enough members say. */
  #outcome(outcomes: readonly ReleaseOutcome[]): ReleaseOutcome | undefined {
    const count = (...which: readonly ReleaseOutcome[]): number =>
      outcomes.filter((outcome) => which.includes(outcome)).length
    if (count('released') >= this.quorum) return 'released'
    return count('released', 'still-held') >= this.quorum ? 'still-held' : undefined
  }

  protected override async extendMembers(ms: number): Promise<void> {
    const results = await this.#extendMost(ms)
    if (results !== undefined) {
      this.assertLive()
      throw troubleOf({ title: this.lock, quorum: this.quorum, size: this.#size }, results)
    }
    this.#extended = true
    // No watchdog goes on where the extension did not arrive.
    this.letExpire()
  }

  /** Undefined: enough members agreed, in time. */
  #extendMost(ms: number): Promise<readonly MemberResult[] | undefined> {
    return new Promise((resolve) => {
      const results: MemberResult[] = []
      const { members } = this
      const count = (result: MemberResult): void => {
        results.push(result)
        const granted = results.filter(({ outcome }) => outcome === 'granted').length
        if (granted >= this.quorum) resolve(undefined)
        else if (results.length === members.length) resolve(results)
      }
      for (const lease of members) {
        const member = this.#places.get(lease) ?? 0
        lease.extend(ms).then(
          () => {
            count({ member, outcome: 'granted' })
          },
          (error: unknown) => {
            count({ member, outcome: 'error', error })
          },
        )
      }
    })
  }
}

function worst(outcomes: readonly ReleaseOutcome[]): ReleaseOutcome {
  for (const outcome of ['unknown', 'stolen', 'expired'] as const)
    if (outcomes.includes(outcome)) return outcome
  return 'unknown'
}
