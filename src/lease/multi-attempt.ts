import { newPassage } from '../engine/engine.js'
import type { MultiAcquireReply } from '../engine/operations.js'
import { granted } from './attempt.js'
import { Busy, Call } from './call.js'
import { maybeApplied } from './commands.js'
import type { HeldLease } from './lease.js'
import { wrongType } from './look.js'
import type { Member } from './member.js'
import type { Runtime } from './runtime.js'
import { wallOffset } from './tenure.js'

/** What one script on all members came to. */
export type TogetherResult =
  | { readonly leases: ReadonlyMap<Member, HeldLease> }
  /** Nothing was taken, because of the member at this place. */
  | { readonly busy: Busy; readonly place: number }

/** Whether one script can take all of these locks: re-entrant locks of one engine whose keys share a slot, none of them entered. */
export function canGoTogether(members: readonly Member[]): boolean {
  const [first] = members
  if (first === undefined || members.length < 2) return false
  const { runtime, target } = first
  const { engine } = runtime.commands
  const slot = engine.batchKey(target.name)
  return members.every(
    (member) =>
      member.joins &&
      member.runtime === runtime &&
      engine.batchKey(member.target.name) === slot &&
      !member.enclosed(),
  )
}

/** Takes all of the locks by one script, or none. @throws EngineError when it was not answered, WrongTypeError */
export async function attemptTogether(
  runtime: Runtime,
  call: Call,
  members: readonly Member[],
): Promise<TogetherResult> {
  const { commands, clock, settings, compensations } = runtime
  const { owner, options } = call
  const leaseMs = options.leaseMs ?? settings.lockWatchdogTimeout
  const names = members.map(({ target }) => target.name)
  const passage = newPassage()
  const wallOffsetMs = wallOffset(clock)
  const send = { deadlineMs: call.attemptDeadline(commands.timeoutMs), keepAlive: true, interrupt: call }
  // An owner that was given back is dead: the next round has another one.
  const renew = (): void => {
    call.owner = runtime.newOwner()
  }
  const undoAll = (): void => {
    for (const { target } of members) compensations.acquire(target, owner, leaseMs)
    renew()
  }
  let reply: MultiAcquireReply
  try {
    reply = await commands.send({ op: 'multi.acquire', names, owner, leaseMs }, passage, send)
  } catch (error) {
    if (passage.sends > 0 && maybeApplied(error)) undoAll()
    throw error
  }
  if (reply.outcome !== 'granted') {
    // Another copy of the attempt may still be on its way over an old link.
    if (!passage.once) undoAll()
    else if (reply.outcome === 'dead') renew()
    return refused(reply, members)
  }
  const grant = {
    sentAtMs: passage.firstSentAtMs,
    wallOffsetMs,
    ttlMs: leaseMs,
    once: passage.once,
    token: 0,
  }
  const result = leasesOf(
    members.map((member) => {
      const of = new Call(
        member.target,
        { ...options, signal: undefined, maxHoldMs: Infinity },
        { clock, owner },
      )
      return [member, granted(runtime, of, grant)] as const
    }),
  )
  if ('busy' in result) renew()
  return result
}

function refused(
  reply: Exclude<MultiAcquireReply, { readonly outcome: 'granted' }>,
  members: readonly Member[],
): TogetherResult {
  const member = members[reply.index]
  if (reply.outcome === 'foreign' && member !== undefined) throw wrongType(member.target)
  return { busy: new Busy(reply.outcome === 'busy' ? reply : undefined), place: reply.index }
}

/** All have one deadline, so all are valid, or none is; those that are not were given back. */
function leasesOf(results: readonly (readonly [Member, HeldLease | 'void'])[]): TogetherResult {
  const leases = new Map<Member, HeldLease>()
  for (const [member, result] of results) if (result !== 'void') leases.set(member, result)
  if (leases.size === results.length) return { leases }
  for (const lease of leases.values()) void lease.release()
  return { busy: new Busy(undefined), place: 0 }
}
