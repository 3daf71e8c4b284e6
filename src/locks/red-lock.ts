import { ClosedError, type MemberResult } from '../errors.js'
import type { Busy } from '../lease/call.js'
import type { GroupLease } from '../lease/group-lease.js'
import type { Lease } from '../lease/lease.js'
import { forceRelease, look, type Holders } from '../lease/look.js'
import type { Member } from '../lease/member.js'
import { partOf } from '../lease/part-of.js'
import { acquireRed, enclosedRed } from '../lease/red-acquire.js'
import type { HeldRedLease } from '../lease/red-lease.js'
import { troubleOf, type Red, type RedMember } from '../lease/red.js'
import type { Runtime } from '../lease/runtime.js'
import { duration, refuseUnknown } from '../option-checks.js'
import { type ResolvedAcquireOptions } from '../options.js'
import { GroupLock } from './group-lock.js'
import { ownerArgument, type ExclusiveLock } from './holder-lock.js'

/**
 * One lock over several independent servers: whoever has a majority of them has it, and it outlives the loss of the
 * others. On each server it is the re-entrant lock of that name. Its looks tell what a majority says: `isLocked`
 * whether a majority is taken, `isHeldBy` whether this owner has a majority, `remainingTime` until no majority would
 * be taken any more; they throw QuorumError when too few servers answer.
 */
export type RedLock = ExclusiveLock

/** How a lock over several servers behaves. */
export interface RedLockOptions {
  /** How long one attempt waits for a member, in milliseconds. 1…2^53−1. @defaultValue a tenth of the lease time, from 50 to 500 */
  readonly memberTimeout?: number | undefined
}

const OPTION_KEYS: ReadonlySet<string> = new Set<keyof RedLockOptions>(['memberTimeout'])

/** Makes the lock over these members. @throws TypeError or RangeError */
export function redOf(name: string, members: readonly RedMember[], options: RedLockOptions): Red {
  refuseUnknown(options, OPTION_KEYS, 'red lock options')
  const { memberTimeout } = options
  const ids = members.map(({ runtime }) => runtime.clientId)
  return {
    title: name,
    members,
    quorum: Math.floor(members.length / 2) + 1,
    memberTimeoutMs: duration(memberTimeout, 'memberTimeout', { min: 1, max: Number.MAX_SAFE_INTEGER }),
    key: `red ${ids.join(' ')} ${name}`,
  }
}

/** The red lock behind the interface. */
export class RedLockObject extends GroupLock<Lease, HeldRedLease> implements RedLock {
  readonly #red: Red

  constructor(runtime: Runtime, red: Red) {
    super(runtime, red.title)
    this.#red = red
  }

  /** This lock as one of several that are taken as one. */
  get enrolment(): Member {
    const red = this.#red
    const { title, members, key } = red
    return {
      runtime: this.runtime,
      target: { family: 'lock', name: title, title },
      reentrant: true,
      key,
      joins: false,
      enclosed: () => enclosedRed(members),
      within: (lease) =>
        members.some(({ runtime, target }) => partOf(lease, runtime, target) !== undefined)
          ? lease
          : undefined,
      // An owner of its own, since a plain lock of that name on one of the members may be beside it.
      acquire: (options, { whole }): Promise<GroupLease | Busy> =>
        acquireRed(this.runtime, red, { options, whole }),
    }
  }

  isLocked(): Promise<boolean> {
    return this.#majority((seen) => seen !== undefined)
  }

  async isHeldBy(owner: string): Promise<boolean> {
    ownerArgument(owner)
    return this.#majority((seen) => seen?.holders.has(owner) === true)
  }

  async remainingTime(): Promise<number> {
    const looks = await this.#all((member) => look(member.runtime, member.target))
    const times = looks.map((seen) => (seen === undefined ? 0 : seen.ttlMs < 0 ? Infinity : seen.ttlMs))
    return times.sort((a, b) => b - a)[this.#red.quorum - 1] ?? 0
  }

  async forceRelease(): Promise<boolean> {
    const forced = await this.#all((member) => forceRelease(member.runtime, member.target))
    return forced.includes(true)
  }

  protected override take(options: ResolvedAcquireOptions): Promise<HeldRedLease | Busy> {
    return acquireRed(this.runtime, this.#red, { options })
  }

  get #size(): { readonly title: string; readonly quorum: number; readonly size: number } {
    const { title, quorum, members } = this.#red
    return { title, quorum, size: members.length }
  }

  /** Whether it is so on a majority; decided as soon as that is sure. @throws QuorumError */
  #majority(question: (seen: Holders | undefined) => boolean): Promise<boolean> {
    const { members, quorum } = this.#red
    if (this.runtime.closed) return Promise.reject(new ClosedError(this.name))
    return new Promise((resolve, reject) => {
      const votes: (boolean | MemberResult)[] = []
      const count = (vote: boolean | MemberResult): void => {
        votes.push(vote)
        if (votes.filter((one) => one === true).length >= quorum) resolve(true)
        else if (votes.filter((one) => one === false).length > members.length - quorum) resolve(false)
        else if (votes.length === members.length)
          reject(
            troubleOf(
              this.#size,
              votes.filter((one) => typeof one === 'object'),
            ),
          )
      }
      members.forEach(({ runtime, target }, member) => {
        look(runtime, target).then(
          (seen) => {
            count(question(seen))
          },
          (error: unknown) => {
            count({ member, outcome: 'error', error })
          },
        )
      })
    })
  }

  /** What the members answer, if a majority does. @throws QuorumError */
  async #all<T>(ask: (member: RedMember) => Promise<T>): Promise<readonly T[]> {
    const { members, quorum } = this.#red
    if (this.runtime.closed) throw new ClosedError(this.name)
    const results = await Promise.allSettled(members.map(ask))
    const answers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    if (answers.length >= quorum) return answers
    const failed = results.flatMap((result, member): MemberResult[] =>
      result.status === 'rejected' ? [{ member, outcome: 'error', error: result.reason }] : [],
    )
    throw troubleOf(this.#size, failed)
  }
}
