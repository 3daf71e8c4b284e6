import { ClosedError, QuorumError, UnavailableError } from '../errors.js'
import type { ResolvedAcquireOptions } from '../options.js'
import { failure } from './attempt.js'
import { Call, type Busy, type Wait } from './call.js'
import { Contest } from './contest.js'
import { settleGroup, tellFailure, tellStart } from './group-call.js'
import { checkMembers } from './independence.js'
import { partOf } from './part-of.js'
import { leaseTimeOf, type Red } from './red.js'
import { Ballot } from './red-ballot.js'
import type { HeldRedLease } from './red-lease.js'
import { quorumTopic } from './red-topic.js'
import type { Runtime } from './runtime.js'
import { kindOf } from './target.js'
import { attemptOnce, waitInLine, type Attempting } from './wait.js'

/** How to take the lock. */
export interface RedRequest {
  readonly options: ResolvedAcquireOptions
  /** The call that this one is a part of. */
  readonly whole?: Wait | undefined
}

/** Takes the lock on a majority of the members. @throws what `acquire` throws, and QuorumError */
export async function acquireRed(
  runtime: Runtime,
  red: Red,
  { options, whole }: RedRequest,
): Promise<HeldRedLease | Busy> {
  const { title } = red
  if (options.signal?.aborted === true) throw options.signal.reason
  const inside = isInside(red, options)
  if (runtime.closing && !inside) throw new ClosedError(title)
  checkMembers(red)
  const target = { family: 'lock', name: title, title } as const
  const call = new Call(target, options, { clock: runtime.clock, owner: runtime.newOwner() })
  call.nested = inside
  call.whole = whole
  tellStart(call)
  runtime.begin(call)
  const attempting = attemptingOn(red)
  try {
    const waiting = options.waitTimeMs === 0 ? attemptOnce : waitInLine
    return settleGroup(call, await waiting(runtime, call, attempting))
  } catch (error) {
    throw tellFailure(call, quorumTrouble(failure(call, error)))
  } finally {
    runtime.finish(call)
  }
}

/** Whether the caller is inside of the lock on a member. @throws TypeError for a `within` that has nothing to do with it */
function isInside({ title, members }: Red, { within }: ResolvedAcquireOptions): boolean {
  if (within === undefined) return enclosedRed(members)
  if (members.some(({ runtime, target }) => partOf(within, runtime, target) !== undefined)) return true
  throw new TypeError(`within must be a lease of lock '${title}', made by the same Holdfast`)
}

/** Whether the calling code runs inside of the lock on a member. */
export function enclosedRed(members: Red['members']): boolean {
  return members.some(({ runtime, target }) => runtime.scope.find(target) !== undefined)
}

function attemptingOn(red: Red): Attempting<HeldRedLease> {
  return {
    attempt: (runtime, call) => new Ballot(runtime, red, call).run(),
    contest: (runtime, call) => {
      const setting = {
        engine: quorumTopic(red),
        clock: runtime.clock,
        topic: kindOf(call.target).topic(call.target, call.owner),
      }
      const make = (onEmpty: () => void): Contest => new Contest(call.target, { ...setting, onEmpty })
      // Whoever is inside does not stand behind those who wait for him to come out.
      return call.nested ? make(() => undefined) : runtime.gathering(red.key, make)
    },
    granted: (_runtime, { options }, contest) => {
      contest.granted(leaseTimeOf(red, options.leaseMs), false)
    },
  }
}

function quorumTrouble(error: unknown): unknown {
  const cause = error instanceof UnavailableError ? error.cause : undefined
  return cause instanceof QuorumError || cause instanceof UnavailableError ? cause : error
}
