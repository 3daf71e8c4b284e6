import { events } from '../diagnostics.js'
import { EngineError, newPassage } from '../engine/engine.js'
import type { AcquireReply } from '../engine/operations.js'
import { ClosedError, SelfHeldError } from '../errors.js'
import type { ResolvedAcquireOptions } from '../options.js'
import { Busy, Call } from './call.js'
import { maybeApplied, unavailable, worthRetrying } from './commands.js'
import type { Contest } from './contest.js'
import { HeldLease } from './lease.js'
import { wrongType } from './look.js'
import { enterNested } from './nested.js'
import type { Runtime } from './runtime.js'
import { sameLock } from './scope.js'
import { acquireOperation, type Target } from './target.js'
import { Tenure, wallOffset } from './tenure.js'
import { watchSelfWait, type Origin } from './self-wait.js'

/** What to acquire, and for whom. */
export interface Request {
  readonly target: Target
  readonly options: ResolvedAcquireOptions
  /** Re-entering is allowed (a re-entrant lock). */
  readonly reentrant: boolean
  readonly from: Origin
}

/**
 * Acquires: enters a lease that the caller is inside of, or competes as a new owner.
 * @throws the caller's abort reason, ClosedError, UnavailableError, WrongTypeError, SelfHeldError, LeaseLostError
 */
export async function acquire(runtime: Runtime, request: Request): Promise<HeldLease | Busy> {
  const { target, options } = request
  options.signal?.throwIfAborted()
  const parent = enclosing(runtime, request)
  if (runtime.closing && parent === undefined) throw new ClosedError(target.title)
  if (events.start.hasSubscribers) events.start.publish({ lock: target.title, waitTime: options.waitTimeMs })
  const call = new Call(target, options, { clock: runtime.clock, owner: runtime.newOwner() })
  runtime.begin(call)
  try {
    return settle(call, await compete(runtime, call, request))
  } catch (error) {
    throw report(call, error)
  } finally {
    runtime.finish(call)
    if (call.unsure) runtime.compensations.acquire(target, call.owner, leaseMsOf(runtime, call))
  }
}

/** The lease that the call re-enters. */
function enclosing(runtime: Runtime, { target, options, reentrant }: Request): HeldLease | undefined {
  const { within } = options
  if (within !== undefined) return explicitParent(target, within, reentrant)
  const lease = runtime.scope.find(target)
  if (!(lease instanceof HeldLease)) return undefined
  if (!reentrant) throw new SelfHeldError(target.title, 'this kind of lock does not re-enter')
  return lease
}

function explicitParent(target: Target, within: object, reentrant: boolean): HeldLease {
  if (!(within instanceof HeldLease)) throw new TypeError('within must be a lease of this lock')
  if (!reentrant) throw new TypeError('within cannot be used with a lock that does not re-enter')
  if (!sameLock(within.tenure.target, target))
    throw new TypeError(`within must be a lease of lock '${target.title}', but is one of '${within.lock}'`)
  within.assertLive()
  return within
}

async function compete(runtime: Runtime, call: Call, request: Request): Promise<HeldLease | Busy> {
  for (let parent = enclosing(runtime, request); parent !== undefined; parent = enclosing(runtime, request)) {
    const entered = await enterNested(runtime, call, parent)
    if (entered !== 'closed') return entered
  }
  if (call.options.waitTimeMs === 0) return once(runtime, call)
  const contest = runtime.contest(call.target)
  const head = contest.join(call)
  const stopWatching = watchSelfWait(runtime, call, request.from)
  try {
    return await wait(runtime, call, { contest, head })
  } finally {
    stopWatching()
    contest.leave(call)
  }
}

/** One attempt, without queueing; a grant without validity left does not count as one. */
async function once(runtime: Runtime, call: Call): Promise<HeldLease | Busy> {
  for (;;) {
    let result: HeldLease | Busy | 'void'
    try {
      result = await attempt(runtime, call)
    } catch (error) {
      throw failure(call, error)
    }
    if (result !== 'void') return result
    if (runtime.clock.now() >= call.startedMs + runtime.commands.timeoutMs) return new Busy(undefined)
  }
}

async function wait(
  runtime: Runtime,
  call: Call,
  { contest, head }: { readonly contest: Contest; readonly head: boolean },
): Promise<HeldLease | Busy> {
  if (!head) {
    publishWait(call)
    if (!(await contest.turn(call))) return ended(call, contest)
  }
  try {
    return await lead(runtime, call, contest)
  } catch (error) {
    contest.abandoned()
    throw error
  }
}

/** The head of the queue: attempt, subscribe, attempt, sleep, and so on. */
async function lead(runtime: Runtime, call: Call, contest: Contest): Promise<HeldLease | Busy> {
  for (;;) {
    if (contest.due) {
      const result = await tryAsHead(runtime, call, contest)
      if (result instanceof HeldLease) return result
      if (result === 'trouble' && (await contest.backOff(call)) === 'deadline') return ended(call, contest)
      if (result !== 'busy') {
        if (call.overdue) return ended(call, contest)
        continue
      }
    }
    contest.listen()
    if ((await contest.sleep(call)) === 'deadline') return ended(call, contest)
  }
}

async function tryAsHead(
  runtime: Runtime,
  call: Call,
  contest: Contest,
): Promise<HeldLease | 'busy' | 'void' | 'trouble'> {
  const sinceMs = runtime.clock.now()
  // Before the attempt, not after: a hint that arrives meanwhile must not be lost.
  contest.due = false
  try {
    const result = await attempt(runtime, call)
    if (result === 'void') {
      contest.due = true
      return 'void'
    }
    if (result instanceof HeldLease) {
      contest.granted(leaseMsOf(runtime, call))
      return result
    }
    noteBusy(call, contest, result)
    return 'busy'
  } catch (error) {
    if (call.interrupt.fired || !worthRetrying(error)) throw failure(call, error)
    if (cutShort(runtime, call, sinceMs)) return 'void'
    contest.troubled(error, sinceMs)
    const lasted = runtime.clock.now() - (contest.troubleSinceMs ?? sinceMs)
    if (call.options.waitTimeMs === Infinity && lasted >= runtime.settings.unavailableAfter)
      throw failure(call, error)
    return 'trouble'
  }
}

function noteBusy(call: Call, contest: Contest, result: Busy): void {
  const hinted = contest.due
  if (call.seen === undefined) publishWait(call, result)
  call.seen = result.seen
  contest.busy(result.seen?.ttlMs ?? -1)
  // The hint may be younger than the answer.
  if (hinted) contest.due = true
}

/** The end of `waitTime` cut an attempt short before it could mean anything: what was seen before counts. */
function cutShort(runtime: Runtime, call: Call, sinceMs: number): boolean {
  if (call.seen === undefined || !call.overdue) return false
  return runtime.clock.now() - sinceMs < Math.min(500, runtime.commands.timeoutMs)
}

/** The end of the waiting: the last cause decides. */
function ended(call: Call, contest: Contest): Busy {
  if (call.interrupt.fired) throw failure(call, call.interrupt.reason)
  if (contest.trouble !== undefined) throw failure(call, contest.trouble)
  return new Busy(call.seen)
}

/** Sends the acquire once. `void`: granted, but with no validity left; given back. */
async function attempt(runtime: Runtime, call: Call): Promise<HeldLease | Busy | 'void'> {
  const { clock, commands } = runtime
  const passage = newPassage()
  const wallOffsetMs = wallOffset(clock)
  const leaseMs = leaseMsOf(runtime, call)
  const deadlineMs = call.attemptDeadline(commands.timeoutMs)
  let reply: AcquireReply
  try {
    const operation = acquireOperation(call.target, call.owner, { count: 1, leaseMs })
    reply = await commands.send(operation, passage, {
      deadlineMs,
      keepAlive: true,
      interrupt: call.interrupt,
    })
  } catch (error) {
    if (passage.sends > 0 && maybeApplied(error)) call.unsure = true
    throw error
  }
  switch (reply.outcome) {
    case 'granted':
      return granted(runtime, call, {
        sentAtMs: passage.firstSentAtMs,
        wallOffsetMs,
        ttlMs: leaseMs,
        // Attempts that were surely answered leave no copy behind; any other may.
        once: passage.once && !call.unsure,
      })
    case 'busy':
      // Another copy of the attempt may still be on its way over an old link.
      if (!passage.once) call.unsure = true
      return new Busy({ holder: reply.holder, ttlMs: reply.ttlMs })
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
  const { minHoldMs, maxHoldMs } = options
  return new HeldLease(runtime, { target, tenure, watched, minHoldMs, maxHoldMs })
}

/** The old owner is dead: its release was sent, or will be. */
function renewOwner(runtime: Runtime, call: Call): void {
  call.owner = runtime.newOwner()
  call.unsure = false
}

function leaseMsOf(runtime: Runtime, call: Call): number {
  return call.options.leaseMs ?? runtime.settings.lockWatchdogTimeout
}

/** Hands the result over, unless the caller aborted in the same tick: then the lock is given back. */
function settle(call: Call, result: HeldLease | Busy): HeldLease | Busy {
  if (result instanceof Busy) {
    if (events.timeout.hasSubscribers)
      events.timeout.publish({ lock: call.target.title, waited: call.waitedMs })
    return result
  }
  if (call.interrupt.fired) {
    void result.release()
    throw failure(call, call.interrupt.reason)
  }
  if (events.granted.hasSubscribers) {
    const { owner, holdCount } = result
    events.granted.publish({ lock: call.target.title, owner, waited: call.waitedMs, holdCount })
  }
  return result
}

/** The error that the caller sees. */
function failure(call: Call, error: unknown): unknown {
  if (call.interrupt.fired) return call.interrupt.reason
  return error instanceof EngineError ? unavailable(error, call.target.title) : error
}

function report(call: Call, error: unknown): unknown {
  const { title: lock } = call.target
  const waited = call.waitedMs
  if (call.interrupt.fired) {
    if (events.aborted.hasSubscribers) events.aborted.publish({ lock, waited, reason: error })
  } else if (events.failed.hasSubscribers) events.failed.publish({ lock, waited, error })
  return error
}

function publishWait(call: Call, busy?: Busy): void {
  if (!events.wait.hasSubscribers) return
  const { holder, ttlMs: holderTtl } = busy?.seen ?? { holder: undefined, ttlMs: undefined }
  events.wait.publish({ lock: call.target.title, holder, holderTtl })
}
