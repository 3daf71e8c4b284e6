import { events } from '../diagnostics.js'
import { ClosedError, SelfHeldError } from '../errors.js'
import type { ResolvedAcquireOptions } from '../options.js'
import { failure, leaseMsOf } from './attempt.js'
import { Pauses, type BackoffPolicy } from './backoff.js'
import { Busy, Call, type Wait } from './call.js'
import { HeldLease } from './lease.js'
import { undo } from './line.js'
import { enterNested } from './nested.js'
import { acrossSides, downgrade, READING, SIDES, waitToRead } from './read-write.js'
import type { Runtime } from './runtime.js'
import type { ScopeNode } from './scope.js'
import { kindOf, sameLock, type Target } from './target.js'
import { attemptOnce, EXCLUSIVE, waitInLine } from './wait.js'
import { watchSelfWait } from './self-wait.js'

/** What a call has of the one that it is a part of. */
export interface Part {
  readonly whole: Wait
  /** The owner of the first attempt: the same for all parts. */
  readonly owner: string
}

/** What to acquire, and for whom. */
export interface Request {
  readonly target: Target
  readonly options: ResolvedAcquireOptions
  /** Re-entering is allowed (a re-entrant lock). */
  readonly reentrant: boolean
  /** How the object's waiters pace their attempts, where nobody tells them of a release. */
  readonly backoff?: BackoffPolicy | undefined
  /** The owner of the first attempt, where that says how much is taken. */
  readonly owner?: string | undefined
  /** How callers wait for each other, where several can hold the object; also tries once. */
  readonly compete?: ((runtime: Runtime, call: Call) => Promise<HeldLease | Busy>) | undefined
  /** It is a part of another call. */
  readonly part?: Part | undefined
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
  const { part } = request
  if (part === undefined && events.start.hasSubscribers)
    events.start.publish({ lock: target.title, waitTime: options.waitTimeMs })
  const owner = part?.owner ?? request.owner ?? runtime.newOwner()
  const call = new Call(target, options, { clock: runtime.clock, owner })
  call.nested = parent !== undefined
  call.whole = part?.whole
  if (request.backoff !== undefined) call.pauses = new Pauses(request.backoff)
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
  if (call.unsure || call.queued)
    undo(runtime, call, { leaseMs: leaseMsOf(runtime, call), sure: !call.unsure })
}

/** The lease that the call re-enters. */
function enclosing(runtime: Runtime, { target, options, reentrant }: Request): HeldLease | undefined {
  const { within } = options
  if (kindOf(target).shared !== undefined) return undefined
  if (within !== undefined) return explicitParent(runtime, { target, reentrant }, within)
  const lease = runtime.scope.find(target)
  if (lease === undefined) return undefined
  if (!reentrant) throw new SelfHeldError(target.title, 'this kind of lock does not re-enter')
  return entered(runtime, target, lease)
}

/** The sides of a read/write lock are one lock, but not one lease. */
function entered(runtime: Runtime, target: Target, lease: HeldLease): HeldLease {
  const across = SIDES[target.family] !== undefined && lease.tenure.target.family !== target.family
  return across ? acrossSides(runtime, target, lease) : lease
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
  return entered(runtime, target, within)
}

/** Enters the lease that the caller is inside of; if it ends meanwhile, the next one outside, and at last competes. */
async function reenter(runtime: Runtime, call: Call, request: Request): Promise<HeldLease | Busy> {
  for (let parent = enclosing(runtime, request); parent !== undefined; parent = enclosing(runtime, request)) {
    const beside = parent.tenure.target.family === 'write' && call.target.family === 'read'
    const result = await (beside ? downgrade : enterNested)(runtime, call, parent)
    if (result !== 'closed') return result
    if (beside) break
  }
  call.nested = false
  if (runtime.closing) throw new ClosedError(call.target.title)
  return compete(runtime, call, request)
}

function compete(runtime: Runtime, call: Call, request: Request): Promise<HeldLease | Busy> {
  if (request.compete !== undefined) return request.compete(runtime, call)
  const { from } = request
  const attempting = SIDES[call.target.family] ?? EXCLUSIVE
  // Whoever reads already must not be held back for a writer that waits for that read.
  if (attempting === READING && from !== undefined)
    call.letIn = runtime.scope.bareHolder(call.target, from, ({ family }) => family === 'read') !== undefined
  if (call.options.waitTimeMs === 0) return attemptOnce(runtime, call, attempting)
  const stopWatching = from === undefined ? undefined : watchSelfWait(runtime, call, from)
  const waiting = attempting === READING ? waitToRead(runtime, call) : waitInLine(runtime, call, attempting)
  return stopWatching === undefined ? waiting : waiting.finally(stopWatching)
}

/** Hands the result over, unless the caller aborted in the same tick: then the lock is given back. */
function settle(call: Call, result: HeldLease | Busy): HeldLease | Busy {
  if (result instanceof Busy) {
    if (call.whole === undefined && events.timeout.hasSubscribers)
      events.timeout.publish({ lock: call.target.title, waited: call.waitedMs })
    return result
  }
  if (call.fired) {
    void result.release()
    throw failure(call, call.reason)
  }
  if (call.whole === undefined && events.granted.hasSubscribers) {
    const { owner, tenure } = result
    events.granted.publish({
      lock: call.target.title,
      owner,
      waited: call.waitedMs,
      holdCount: tenure.members.length,
    })
  }
  return result.handOver(call.options.minHoldMs)
}

function report(call: Call, error: unknown): unknown {
  if (call.whole !== undefined) return error
  const { title: lock } = call.target
  const waited = call.waitedMs
  if (call.fired) {
    if (events.aborted.hasSubscribers) events.aborted.publish({ lock, waited, reason: error })
  } else if (events.failed.hasSubscribers) events.failed.publish({ lock, waited, error })
  return error
}
