import { ClosedError } from '../errors.js'
import type { ResolvedAcquireOptions } from '../options.js'
import { failure } from './attempt.js'
import { Busy, Call } from './call.js'
import { settleGroup, tellFailure, tellStart } from './group-call.js'
import type { Member } from './member.js'
import { HeldMultiLease } from './multi-lease.js'
import { Rounds, type Collected } from './multi-rounds.js'
import type { Runtime } from './runtime.js'

/** What is to be taken as one. */
export interface MultiRequest {
  readonly title: string
  /** In the order in which the lease names them. */
  readonly members: readonly Member[]
  /** In the order in which all callers of all processes take them. */
  readonly sorted: readonly Member[]
  readonly options: ResolvedAcquireOptions
}

/** Takes all members, or none. @throws what `acquire` throws */
export async function acquireAll(runtime: Runtime, request: MultiRequest): Promise<HeldMultiLease | Busy> {
  const { title, members, options } = request
  if (options.signal?.aborted === true) throw options.signal.reason
  const inside = isInside(title, members, options)
  if (runtime.closing && !inside) throw new ClosedError(title)
  const call = new Call({ family: 'lock', name: title, title }, options, {
    clock: runtime.clock,
    owner: runtime.newOwner(),
  })
  call.nested = inside
  tellStart(call)
  runtime.begin(call)
  try {
    const taken = await new Rounds(runtime, request.sorted, call).run()
    return settleGroup(call, taken instanceof Busy ? taken : leaseOf(runtime, request, taken))
  } catch (error) {
    throw tellFailure(call, failure(call, error))
  } finally {
    runtime.finish(call)
  }
}

/** Whether the caller is inside of a member. @throws TypeError for a `within` that has nothing to do with them */
function isInside(title: string, members: readonly Member[], { within }: ResolvedAcquireOptions): boolean {
  if (within === undefined) return members.some((member) => member.enclosed())
  if (members.some((member) => member.within(within) !== undefined)) return true
  throw new TypeError(`within must be a lease of '${title}' or of a part of it, made by the same Holdfast`)
}

function leaseOf(runtime: Runtime, request: MultiRequest, taken: Collected): HeldMultiLease {
  const { title, members, options } = request
  const leases = members.flatMap((member) => taken.get(member) ?? [])
  const owner = leases[0]?.owner ?? ''
  return new HeldMultiLease(
    runtime,
    { title, owner, quorum: leases.length, maxHoldMs: options.maxHoldMs },
    leases,
  )
}
