import { events } from '../diagnostics.js'
import { EngineError, newPassage, type Passage } from '../engine/engine.js'
import type { SemaphoreAcquireReply } from '../engine/operations.js'
import { ClosedError, NotInitialisedError } from '../errors.js'
import { Wait } from '../lease/call.js'
import { maybeApplied } from '../lease/commands.js'
import type { Runtime } from '../lease/runtime.js'
import type { ResolvedWaitOptions } from '../options.js'
import { permitLine, standInLine, type Tried } from './permit-standing.js'
import { failure, REQUEST_MS, RESEND_MS, trouble, undo, wrongType, type Subject } from './request.js'
import { HeldPermits, returning } from './held-permits.js'

/** There were too few permits at the end; how many, by the last look. */
export class TooFew {
  readonly available: number | undefined

  constructor(available: number | undefined) {
    this.available = available
  }
}

/** What to take. */
export interface PermitRequest {
  readonly subject: Subject
  readonly permits: number
  /** With how many permits a semaphore begins that has no number yet; undefined: it does not. */
  readonly initial: number | undefined
  readonly options: ResolvedWaitOptions
}

/** One call of `acquire` or one of its kin, until it has its permits or not. */
class PermitCall extends Wait<ResolvedWaitOptions> {
  readonly subject: Subject
  readonly permits: number
  readonly initial: number
  /** Of all attempts of this call, as long as they are answered. */
  request: string
  /** When the first of the copies was sent that may have been applied without our knowing. */
  unsureSinceMs: number | undefined = undefined
  /** A copy that was not applied so far may still be on its way. */
  loose = false
  available: number | undefined = undefined

  constructor(runtime: Runtime, { subject, permits, initial, options }: PermitRequest) {
    super(subject.title, options, runtime.clock)
    this.subject = subject
    this.permits = permits
    this.initial = initial ?? -1
    this.request = runtime.newOwner()
  }
}

/** Takes permits, or waits for them. @throws the signal's reason, ClosedError, UnavailableError, WrongTypeError, NotInitialisedError */
export async function acquirePermits(runtime: Runtime, wanted: PermitRequest): Promise<HeldPermits | TooFew> {
  const { subject, options } = wanted
  if (options.signal?.aborted === true) throw options.signal.reason
  if (runtime.closing) throw new ClosedError(subject.title)
  if (events.start.hasSubscribers) events.start.publish({ lock: subject.title, waitTime: options.waitTimeMs })
  const call = new PermitCall(runtime, wanted)
  runtime.begin(call)
  try {
    const once = options.waitTimeMs === 0
    return settled(call, once ? await tryOnce(runtime, call) : await waitInLine(runtime, call))
  } catch (error) {
    throw reported(call, error)
  } finally {
    runtime.finish(call)
    if (call.unsureSinceMs !== undefined || call.loose) abandonRequest(runtime, call)
  }
}

async function tryOnce(runtime: Runtime, call: PermitCall): Promise<HeldPermits | TooFew> {
  try {
    const { left } = await attempt(runtime, call)
    return left === undefined ? new TooFew(call.available) : granted(runtime, call)
  } catch (error) {
    throw failed(call, error)
  }
}

async function waitInLine(runtime: Runtime, call: PermitCall): Promise<HeldPermits | TooFew> {
  const grant = await standInLine<HeldPermits>({
    runtime,
    line: permitLine(runtime, 'semaphore', call.subject),
    call,
    attempt: () => tried(runtime, call),
    waits: () => {
      publishWait(call)
    },
    failed: (error) => failed(call, error),
  })
  return grant ?? new TooFew(call.available)
}

async function tried(runtime: Runtime, call: PermitCall): Promise<Tried<HeldPermits>> {
  const { left } = await attempt(runtime, call)
  const grant = left === undefined ? undefined : granted(runtime, call)
  return { grant, free: left ?? call.available ?? 0, nextMs: Infinity }
}

/** Sends the acquire once. Without `left`: there were too few. */
async function attempt(runtime: Runtime, call: PermitCall): Promise<{ readonly left?: number }> {
  const passage = newPassage()
  const reply = await send(runtime, call, passage)
  if (reply.outcome === 'granted') {
    call.unsureSinceMs = undefined
    call.loose = false
    return { left: reply.left }
  }
  // No copy was applied so far. One may be later, which the next attempt would find, or the end of the call undoes.
  if (!passage.once || call.unsureSinceMs !== undefined) call.loose = true
  call.unsureSinceMs = undefined
  switch (reply.outcome) {
    case 'busy':
      call.available = reply.available
      return {}
    case 'uninitialised':
      throw new NotInitialisedError(call.title)
    case 'foreign':
      throw wrongType(call.subject)
    case 'dead':
      call.request = runtime.newOwner()
      throw new EngineError('The request was ended before', { kind: 'unavailable', outcome: 'not-applied' })
  }
}

async function send(runtime: Runtime, call: PermitCall, passage: Passage): Promise<SemaphoreAcquireReply> {
  const { commands, clock } = runtime
  const { permits, initial, request } = call
  const limitMs = (call.unsureSinceMs ?? Infinity) + RESEND_MS
  if (clock.now() >= limitMs)
    throw new EngineError('No answer for too long to try again', { kind: 'refused', outcome: 'unknown' })
  const { name } = call.subject
  const deadlineMs = Math.min(call.attemptDeadline(commands.timeoutMs), limitMs)
  try {
    return await commands.send(
      { op: 'semaphore.acquire', name, request, permits, initial, requestMs: REQUEST_MS },
      passage,
      { deadlineMs, keepAlive: true, interrupt: call },
    )
  } catch (error) {
    if (error instanceof EngineError && error.shortfall !== undefined) {
      // The server has taken them, and cannot be sure to know of it tomorrow: the next attempt is another request.
      abandonRequest(runtime, call)
      call.request = runtime.newOwner()
      call.unsureSinceMs = undefined
    } else if (passage.sends > 0 && maybeApplied(error)) call.unsureSinceMs ??= passage.firstSentAtMs
    throw call.fired ? error : trouble(error)
  }
}

/** Undoes what the request may have done, or may do yet. */
function abandonRequest(runtime: Runtime, { subject, request }: PermitCall): void {
  undo(runtime, subject, returning(runtime, { subject, request, permits: 0 }))
}

function granted(runtime: Runtime, { subject, request, permits }: PermitCall): HeldPermits {
  return new HeldPermits(runtime, { subject, request, permits })
}

function failed(call: PermitCall, error: unknown): unknown {
  if (call.fired) return call.reason
  return error instanceof EngineError ? failure(call.subject, error, call.unsureSinceMs !== undefined) : error
}

/** Hands the result over, unless the caller aborted in the same tick: then the permits are given back. */
function settled(call: PermitCall, result: HeldPermits | TooFew): HeldPermits | TooFew {
  const { title: lock, waitedMs: waited } = call
  if (result instanceof TooFew) {
    if (events.timeout.hasSubscribers) events.timeout.publish({ lock, waited })
    return result
  }
  if (call.fired) {
    void result.release()
    throw call.reason
  }
  if (events.granted.hasSubscribers)
    events.granted.publish({ lock, owner: result.request, waited, holdCount: result.permits })
  return result
}

function reported(call: PermitCall, error: unknown): unknown {
  const { title: lock, waitedMs: waited } = call
  if (call.fired) {
    if (events.aborted.hasSubscribers) events.aborted.publish({ lock, waited, reason: error })
  } else if (events.failed.hasSubscribers) events.failed.publish({ lock, waited, error })
  return error
}

function publishWait(call: PermitCall): void {
  if (call.announced || !events.wait.hasSubscribers) return
  call.announced = true
  events.wait.publish({ lock: call.title, holder: undefined, holderTtl: undefined })
}
