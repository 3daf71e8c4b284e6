import { EngineError, newPassage, type Passage } from '../engine/engine.js'
import type { AcquireReply } from '../engine/operations.js'
import { Busy, type Call } from './call.js'
import { maybeApplied, unavailable } from './commands.js'
import { HeldLease } from './lease.js'
import { wrongType } from './look.js'
import type { Runtime } from './runtime.js'
import { kindOf } from './target.js'
import { Tenure, wallOffset } from './tenure.js'

/** Sends the acquire once. `void`: granted, but with no validity left; given back. */
export function attempt(runtime: Runtime, call: Call): Promise<HeldLease | Busy | 'void'> {
  const { clock, commands } = runtime
  const passage = newPassage()
  const wallOffsetMs = wallOffset(clock)
  const ttlMs = leaseMsOf(runtime, call)
  const deadlineMs = call.attemptDeadline(commands.timeoutMs)
  const operation = kindOf(call.target).acquire(call.target, call.owner, { count: 1, leaseMs: ttlMs })
  return commands.send(operation, passage, { deadlineMs, keepAlive: true, interrupt: call }).then(
    (reply) => answered(runtime, call, { reply, passage, wallOffsetMs, ttlMs }),
    (error: unknown) => {
      if (passage.sends > 0 && maybeApplied(error)) call.unsure = true
      throw error instanceof EngineError || call.fired ? error : strange(error)
    },
  )
}

/** A reply that no script gives: something between us and the server answers in its place. */
function strange(error: unknown): EngineError {
  const message = error instanceof Error ? error.message : String(error)
  return new EngineError(message, { kind: 'refused', outcome: 'unknown', cause: error })
}

interface Answer {
  readonly reply: AcquireReply
  readonly passage: Passage
  readonly wallOffsetMs: number
  readonly ttlMs: number
}

function answered(runtime: Runtime, call: Call, answer: Answer): HeldLease | Busy | 'void' {
  const { reply, passage, wallOffsetMs, ttlMs } = answer
  switch (reply.outcome) {
    case 'granted': {
      // Attempts that were surely answered leave no copy behind; any other may.
      const once = passage.once && !call.unsure
      return granted(runtime, call, { sentAtMs: passage.firstSentAtMs, wallOffsetMs, ttlMs, once })
    }
    case 'busy':
      // Another copy of the attempt may still be on its way over an old link.
      if (!passage.once) call.unsure = true
      return new Busy(reply)
    case 'foreign':
      throw wrongType(call.target)
    default:
      // Only an owner that was ended before is refused; the next attempt has a new one.
      renewOwner(runtime, call)
      return 'void'
  }
}

interface Grant {
  readonly sentAtMs: number
  readonly wallOffsetMs: number
  readonly ttlMs: number
  readonly once: boolean
}

function granted(runtime: Runtime, call: Call, grant: Grant): HeldLease | 'void' {
  const { clock, settings, watchdog } = runtime
  const { target, owner, options } = call
  const tenure = new Tenure({
    target,
    owner,
    once: grant.once,
    clock,
    drift: settings.clockDrift,
    confirmation: grant,
    onEnd: (ended) => {
      watchdog.forget(ended)
    },
  })
  if (tenure.doubtful || clock.now() >= tenure.deadlineMs) {
    runtime.compensations.acquire(target, owner, grant.ttlMs)
    renewOwner(runtime, call)
    return 'void'
  }
  // From here on the lease is responsible for the owner.
  call.unsure = false
  const watched = options.leaseMs === undefined
  return new HeldLease(runtime, { target, tenure, watched, maxHoldMs: options.maxHoldMs })
}

/** The old owner is dead: its release was sent, or will be. */
function renewOwner(runtime: Runtime, call: Call): void {
  call.owner = runtime.newOwner()
  call.unsure = false
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
  return unavailable(new EngineError(message, { kind, outcome, cause }), call.target.title)
}
