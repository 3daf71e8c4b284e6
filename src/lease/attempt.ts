import { EngineError, newPassage, type Passage } from '../engine/engine.js'
import type { ReplyOf } from '../engine/operations.js'
import { NotInitialisedError } from '../errors.js'
import { Busy, type Call } from './call.js'
import { maybeApplied, unavailable } from './commands.js'
import { makeLease } from './fenced-lease.js'
import type { HeldLease } from './lease.js'
import { busyInLine, placeMs, undo } from './line.js'
import { wrongToken, wrongType } from './look.js'
import type { Runtime } from './runtime.js'
import { kindOf, type AcquireOperation } from './target.js'
import { Tenure, wallOffset } from './tenure.js'

/** Sends the acquire once. `void`: granted, but with no validity left; given back. */
export function attempt(runtime: Runtime, call: Call): Promise<HeldLease | Busy | 'void'> {
  const { clock, commands } = runtime
  const passage = newPassage()
  const wallOffsetMs = wallOffset(clock)
  const ttlMs = leaseMsOf(runtime, call)
  const deadlineMs = call.attemptDeadline(commands.timeoutMs)
  const line = { waitMs: placeMs(runtime, call), join: call.options.waitTimeMs > 0 }
  const terms = { count: 1, leaseMs: ttlMs, line, writer: call.writer }
  const operation = kindOf(call.target).acquire(call.target, call.owner, terms)
  return commands.send(operation, passage, { deadlineMs, keepAlive: true, interrupt: call }).then(
    (reply) => answered(runtime, call, { reply, passage, wallOffsetMs, ttlMs }),
    (error: unknown) => {
      if (passage.sends > 0 && maybeApplied(error)) call.unsure = true
      if (error instanceof EngineError && error.shortfall !== undefined) {
        call.shortfall = error.shortfall
        giveBack(runtime, call, ttlMs)
      }
      throw error instanceof EngineError || call.fired ? error : strange(error)
    },
  )
}

/** The server has granted it, and cannot be sure to keep it: the next attempt is somebody else's. */
function giveBack(runtime: Runtime, call: Call, leaseMs: number): void {
  undo(runtime, call, { leaseMs, sure: false })
  renewOwner(runtime, call)
}

/** A reply that no script gives: something between us and the server answers in its place. */
function strange(error: unknown): EngineError {
  const message = error instanceof Error ? error.message : String(error)
  return new EngineError(message, { kind: 'refused', outcome: 'unknown', cause: error })
}

interface Answer {
  readonly reply: ReplyOf<AcquireOperation>
  readonly passage: Passage
  readonly wallOffsetMs: number
  readonly ttlMs: number
}

function answered(runtime: Runtime, call: Call, answer: Answer): HeldLease | Busy | 'void' {
  const { reply, passage, wallOffsetMs, ttlMs } = answer
  call.shortfall = undefined
  switch (reply.outcome) {
    case 'granted': {
      if ('left' in reply) {
        const { left, ttlMs: nextMs } = reply
        call.room = { free: left, total: undefined, nextMs: left > 0 ? undefined : nextMs }
      }
      // Attempts that were surely answered leave no copy behind; any other may.
      const once = passage.once && !call.unsure
      return granted(runtime, call, {
        sentAtMs: passage.firstSentAtMs,
        wallOffsetMs,
        ttlMs,
        once,
        token: tokenOf(reply),
      })
    }
    case 'busy':
      // Another copy of the attempt may still be on its way over an old link.
      if (!passage.once) call.unsure = true
      if ('holder' in reply) return new Busy(reply.holder === '' ? undefined : reply)
      call.room = { free: reply.available, total: reply.total, nextMs: reply.ttlMs }
      return new Busy(undefined)
    case 'queued':
      if (!passage.once) call.unsure = true
      call.queued = true
      return busyInLine(reply, call, placeMs(runtime, call))
    case 'foreign':
      throw wrongType(call.target)
    case 'uninitialised':
      throw new NotInitialisedError(call.target.title)
    case 'badToken':
      throw wrongToken(call.target, reply.key)
    default:
      // Only an owner that was ended before is refused; the next attempt has a new one.
      renewOwner(runtime, call)
      return 'void'
  }
}

/** The fencing token of a grant; 0: it has none. */
export function tokenOf(reply: Extract<ReplyOf<AcquireOperation>, { readonly outcome: 'granted' }>): number {
  return 'token' in reply ? reply.token : 0
}

/** A granted attempt. */
export interface Grant {
  readonly sentAtMs: number
  readonly wallOffsetMs: number
  readonly ttlMs: number
  readonly once: boolean
  readonly token: number
}

/** Makes the lease of a grant, unless it has no validity left: then it is given back. */
export function granted(runtime: Runtime, call: Call, grant: Grant): HeldLease | 'void' {
  const { clock, settings, watchdog } = runtime
  const { target, owner, options } = call
  const tenure = new Tenure({
    target,
    owner,
    once: grant.once,
    clock,
    drift: settings.clockDrift,
    trustMs: kindOf(target).reading === true ? settings.lockWatchdogTimeout : Infinity,
    confirmation: grant,
    onEnd: (ended) => {
      watchdog.forget(ended)
    },
  })
  if (tenure.doubtful || clock.now() >= tenure.deadlineMs) {
    undo(runtime, call, { leaseMs: grant.ttlMs, sure: false })
    renewOwner(runtime, call)
    return 'void'
  }
  tenure.token = grant.token
  // From here on the lease is responsible for the owner.
  call.unsure = false
  call.queued = false
  const watched = options.leaseMs === undefined
  return makeLease(runtime, { target, tenure, watched, maxHoldMs: options.maxHoldMs })
}

/** The old owner is dead: its release was sent, or will be. */
export function renewOwner(runtime: Runtime, call: Call): void {
  call.owner = kindOf(call.target).shared?.newOwner(call.owner) ?? runtime.newOwner()
  call.unsure = false
  call.queued = false
}

/** The TTL that a grant of this call has. */
export function leaseMsOf(runtime: Runtime, call: Call): number {
  return call.options.leaseMs ?? runtime.settings.lockWatchdogTimeout
}

/** The error that the caller sees. */
export function failure(call: Call, error: unknown): unknown {
  if (call.fired) return call.reason
  if (!(error instanceof EngineError)) return error
  const { message, kind, cause } = error
  // The last attempt may not have been sent; what matters is whether any of them may have been applied.
  const outcome = call.unsure ? 'unknown' : error.outcome
  // The end of the waiting may have cut the last attempt short, before its replicas could answer.
  const shortfall = kind === 'unavailable' ? (error.shortfall ?? call.shortfall) : error.shortfall
  const { target } = call
  return unavailable(
    new EngineError(message, { kind, outcome, cause, shortfall }),
    target.title,
    kindOf(target).noun,
  )
}
