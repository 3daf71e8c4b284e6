import { events } from '../diagnostics.js'
import { ClosedError, SelfHeldError } from '../errors.js'
import type { ResolvedAcquireOptions } from '../options.js'
import { failure, leaseMsOf } from './attempt.js'
import { Busy, Call } from './call.js'
import { HeldLease } from './lease.js'
import { enterNested } from './nested.js'
import type { Runtime } from './runtime.js'
import type { ScopeNode } from './scope.js'
import { sameLock, type Target } from './target.js'
import { attemptOnce, EXCLUSIVE, waitInLine } from './wait.js'
import { watchSelfWait } from './self-wait.js'

/** What to acquire, and for whom. */
export interface Request {
  readonly target: Target
  readonly options: ResolvedAcquireOptions
  /** Re-entering is allowed (a re-entrant lock). */
  readonly reentrant: boolean
  /** The path of the calling code before this call. */
  readonly from: ScopeNode | undefined
  /** The note of a bare acquire in that path. */
  readonly note: ScopeNode | undefined
}

/**
 * Acquires and converts the result: enters a lease that the caller is inside of, or competes as a new owner.
 * Throws at once, or rejects with, the caller's abort reason, ClosedError, UnavailableError, WrongTypeError, SelfHeldError, LeaseLostError
 */
export function acquire<R>(
  runtime: Runtime,
  request: Request,
  convert: (result: HeldLease | Busy) => R,
): Promise<R> {
  const { target, options } = request
  if (options.signal?.aborted === true) throw options.signal.reason
  const parent = enclosing(runtime, request)
  if (runtime.closing && parent === undefined) throw new ClosedError(target.title)
  if (events.start.hasSubscribers) events.start.publish({ lock: target.title, waitTime: options.waitTimeMs })
  const call = new Call(target, options, { clock: runtime.clock, owner: runtime.newOwner() })
  call.nested = parent !== undefined
  runtime.begin(call)
  const competing = parent === undefined ? compete(runtime, call, request) : reenter(runtime, call, request)
  return competing.then(
    (result) => {
      finish(runtime, call)
      return convert(settle(call, result))
    },
    (error: unknown) => {
      finish(runtime, call)
      if (request.note !== undefined) request.note.lease = null
      throw report(call, failure(call, error))
    },
  )
}

function finish(runtime: Runtime, call: Call): void {
  runtime.finish(call)
  if (call.unsure) runtime.compensations.acquire(call.target, call.owner, leaseMsOf(runtime, call))
}

/** The lease that the call re-enters. */
function enclosing(runtime: Runtime, { target, options, reentrant }: Request): HeldLease | undefined {
  const { within } = options
  if (within !== undefined) return explicitParent(runtime, { target, reentrant }, within)
  const lease = runtime.scope.find(target)
  if (lease === undefined) return undefined
  if (!reentrant) throw new SelfHeldError(target.title, 'this kind of lock does not re-enter')
  return lease
}

function explicitParent(
  runtime: Runtime,
  { target, reentrant }: Pick<Request, 'target' | 'reentrant'>,
  within: object,
): HeldLease {
  if (!(within instanceof HeldLease) || !within.isOf(runtime))
    throw new TypeError('within must be a lease of this lock, made by the same Holdfast')
  if (!reentrant) throw new TypeError('within cannot be used with a lock that does not re-enter')
  if (!sameLock(within.tenure.target, target))
    throw new TypeError(`within must be a lease of lock '${target.title}', but is one of '${within.lock}'`)
  within.assertLive()
  return within
}

/** Enters the lease that the caller is inside of; if it ends meanwhile, the next one outside, and at last competes. */
async function reenter(runtime: Runtime, call: Call, request: Request): Promise<HeldLease | Busy> {
  for (let parent = enclosing(runtime, request); parent !== undefined; parent = enclosing(runtime, request)) {
    const entered = await enterNested(runtime, call, parent)
    if (entered !== 'closed') return entered
  }
  call.nested = false
  if (runtime.closing) throw new ClosedError(call.target.title)
  return compete(runtime, call, request)
}

function compete(runtime: Runtime, call: Call, { from }: Request): Promise<HeldLease | Busy> {
  if (call.options.waitTimeMs === 0) return attemptOnce(runtime, call, EXCLUSIVE)
  if (from === undefined) return waitInLine(runtime, call, EXCLUSIVE)
  const stopWatching = watchSelfWait(runtime, call, from)
  return stopWatching === undefined
    ? waitInLine(runtime, call, EXCLUSIVE)
    : waitInLine(runtime, call, EXCLUSIVE).finally(stopWatching)
}

/** Hands the result over, unless the caller aborted in the same tick: then the lock is given back. */
function settle(call: Call, result: HeldLease | Busy): HeldLease | Busy {
  if (result instanceof Busy) {
    if (events.timeout.hasSubscribers)
      events.timeout.publish({ lock: call.target.title, waited: call.waitedMs })
    return result
  }
  if (call.fired) {
    void result.release()
    throw failure(call, call.reason)
  }
  if (events.granted.hasSubscribers) {
    const { owner, members } = result.tenure
    events.granted.publish({
      lock: call.target.title,
      owner,
      waited: call.waitedMs,
      holdCount: members.length,
    })
  }
  return result.handOver(call.options.minHoldMs)
}

function report(call: Call, error: unknown): unknown {
  const { title: lock } = call.target
  const waited = call.waitedMs
  if (call.fired) {
    if (events.aborted.hasSubscribers) events.aborted.publish({ lock, waited, reason: error })
  } else if (events.failed.hasSubscribers) events.failed.publish({ lock, waited, error })
  return error
}
