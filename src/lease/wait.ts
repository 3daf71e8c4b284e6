import { events } from '../diagnostics.js'
import { attempt, failure, leaseMsOf } from './attempt.js'
import { Busy, type Call } from './call.js'
import { nextPause, worthRetrying } from './commands.js'
import type { Contest } from './contest.js'
import type { HeldLease } from './lease.js'
import type { Runtime } from './runtime.js'
import { kindOf } from './target.js'

const RETRY_MS = 50

/** How a call tries to get what it wants (`G`), and what its success means to those behind it. */
export interface Attempting<G extends object> {
  /** One try. `void`: granted, but without validity left, and given back. */
  attempt(runtime: Runtime, call: Call): Promise<G | Busy | 'void'>
  /** The queue to stand in. */
  contest(runtime: Runtime, call: Call): Contest
  /** Tells the queue that its head has got what it wanted. */
  granted(runtime: Runtime, call: Call, contest: Contest): void
}

/** Attempts of locks with one holder at a time. */
export const EXCLUSIVE: Attempting<HeldLease> = {
  attempt,
  contest: (runtime, { target, owner }) => runtime.contest(target, kindOf(target).topic(target, owner)),
  granted: (runtime, call, contest) => {
    contest.granted(leaseMsOf(runtime, call), false)
  },
}

/** One attempt, without queueing; a grant without validity left does not count as one. */
export async function attemptOnce<G extends object>(
  runtime: Runtime,
  call: Call,
  attempting: Pick<Attempting<G>, 'attempt'>,
): Promise<G | Busy> {
  for (let pauseMs = RETRY_MS; ; pauseMs = nextPause(pauseMs)) {
    let result: G | Busy | 'void'
    try {
      result = await attempting.attempt(runtime, call)
    } catch (error) {
      throw failure(call, error)
    }
    if (result !== 'void') return result
    const untilMs = call.startedMs + runtime.commands.timeoutMs
    if (runtime.clock.now() + pauseMs >= untilMs) return new Busy(undefined)
    await runtime.commands.pause(pauseMs, true)
  }
}

/**
 * Queues up behind the other callers of this process and waits for the lock. Nearly always there is nobody and the
 * first attempt is granted, so that path goes through as few promises as it can.
 */
export function waitInLine<G extends object>(
  runtime: Runtime,
  call: Call,
  attempting: Attempting<G>,
): Promise<G | Busy> {
  const contest = attempting.contest(runtime, call)
  const sinceMs = call.startedMs
  const attempted = { runtime, call, contest, attempting, sinceMs }
  if (!contest.join(call)) return queueUp(attempted)
  // Before the attempt, not after: a hint that arrives meanwhile must not be lost.
  contest.due = false
  return attempting.attempt(runtime, call).then(
    (result) => {
      if (!isGrant(result)) return lead(attempted, { result })
      attempting.granted(runtime, call, contest)
      contest.leave(call)
      return result
    },
    (error: unknown) => lead(attempted, { error }),
  )
}

function isGrant<G extends object>(result: G | Busy | string): result is G {
  return typeof result === 'object' && !(result instanceof Busy)
}

/**
 * The same where there may be room for several: while nobody waits, callers need not wait for each other's answers,
 * and queue up only when they were told to.
 */
export function waitTogether<G extends object>(
  runtime: Runtime,
  call: Call,
  attempting: Attempting<G>,
): Promise<G | Busy> {
  return runtime.waited(call.target)
    ? waitInLine(runtime, call, attempting)
    : tryBeside(runtime, call, attempting)
}

/** Tries beside the queue, and joins it if that was in vain. */
function tryBeside<G extends object>(
  runtime: Runtime,
  call: Call,
  attempting: Attempting<G>,
): Promise<G | Busy> {
  return attempting.attempt(runtime, call).then(
    (result) => (isGrant(result) ? result : joinLate(runtime, { call, attempting, outcome: { result } })),
    (error: unknown) => {
      if (call.fired || !worthRetrying(error)) throw failure(call, error)
      return joinLate(runtime, { call, attempting, outcome: { error } })
    },
  )
}

/** Queues up with an attempt made already. */
function joinLate<G extends object>(
  runtime: Runtime,
  late: { readonly call: Call; readonly attempting: Attempting<G>; readonly outcome: Outcome },
): Promise<G | Busy> {
  const { call, attempting, outcome } = late
  const contest = attempting.contest(runtime, call)
  const attempted = { runtime, call, contest, attempting, sinceMs: call.startedMs }
  // Before the outcome is judged, not after: a hint that arrived meanwhile was for nobody.
  if (contest.join(call)) {
    contest.due = false
    return lead(attempted, outcome)
  }
  return queueUp(attempted)
}

async function queueUp<G extends object>(attempted: Attempted<G>): Promise<G | Busy> {
  const { call, contest } = attempted
  publishWait(call)
  const turn = await contest.turn(call)
  if (turn && contest.has(call)) return lead({ ...attempted, sinceMs: 0 })
  if (turn) {
    call.letIn = true
    return tryBeside(attempted.runtime, call, attempted.attempting)
  }
  contest.leave(call)
  return ended(call, contest)
}

function tryAsHead<G extends object>(attempted: Attempted<G>): Promise<G | Busy | 'void'> {
  const { runtime, call, contest, attempting } = attempted
  // Before the attempt, not after: a hint that arrives meanwhile must not be lost.
  contest.due = false
  return attempting.attempt(runtime, call).then((result) => {
    if (isGrant(result)) attempting.granted(runtime, call, contest)
    return result
  })
}

interface Attempted<G extends object> {
  readonly runtime: Runtime
  readonly call: Call
  readonly contest: Contest
  readonly attempting: Attempting<G>
  readonly sinceMs: number
}

type Outcome = { readonly result: Busy | 'void' } | { readonly error: unknown }

/** The head of the queue: attempt, subscribe, attempt, sleep, and so on. `first` is an attempt that was made already. */
async function lead<G extends object>(attempted: Attempted<G>, first?: Outcome): Promise<G | Busy> {
  const { call, contest } = attempted
  try {
    for (let outcome = first; ; outcome = undefined) {
      if (contest.due || outcome !== undefined) {
        const result = await judged(attempted, outcome)
        if (isGrant<G>(result)) return result
        if (result === 'over' || call.overdue) return ended(call, contest)
        if (contest.due) continue
      }
      contest.listen()
      if ((await contest.sleep(call)) === 'deadline') return ended(call, contest)
    }
  } finally {
    contest.leave(call)
  }
}

/** Attempts, unless that was done before, and draws the conclusions for the queue. */
async function judged<G extends object>(
  attempted: Attempted<G>,
  outcome: Outcome | undefined,
): Promise<G | 'goOn' | 'over'> {
  const { runtime, call, contest } = attempted
  const sinceMs = outcome === undefined ? runtime.clock.now() : attempted.sinceMs
  try {
    if (outcome !== undefined && 'error' in outcome) throw outcome.error
    const result = outcome === undefined ? await tryAsHead(attempted) : outcome.result
    if (isGrant<G>(result)) return result
    if (result === 'void') return await tooLate(call, contest)
    noteBusy(call, contest, result)
    return 'goOn'
  } catch (error) {
    contest.due = true
    noteTrouble({ ...attempted, sinceMs }, error)
    return (await contest.backOff(call)) === 'deadline' ? 'over' : 'goOn'
  }
}

/** A grant was over before it arrived: at once, the next one would be too. */
async function tooLate(call: Call, contest: Contest): Promise<'goOn' | 'over'> {
  contest.follow(call)
  contest.due = true
  contest.trouble = undefined
  contest.troubleSinceMs = undefined
  return (await contest.backOff(call)) === 'deadline' ? 'over' : 'goOn'
}

/** Notes that an attempt was not served. @throws if another one is of no use, or the time for trying is over */
function noteTrouble(attempted: Attempted<object>, error: unknown): void {
  const { runtime, call, contest, sinceMs } = attempted
  if (call.fired || !worthRetrying(error)) throw failure(call, error)
  if (cutShort(attempted)) return
  contest.troubled(error, sinceMs)
  const { unavailableAfter } = runtime.settings
  contest.dismissHopeless(unavailableAfter)
  if (contest.hopeless(call, unavailableAfter)) throw failure(call, error)
}

function noteBusy(call: Call, contest: Contest, result: Busy): void {
  const hinted = contest.due
  publishWait(call, result)
  call.seen = result.seen
  contest.busy(result.rhythm?.untilMs ?? result.seen?.ttlMs ?? -1, result.rhythm)
  // The hint may be younger than the answer.
  if (hinted) contest.due = true
}

/** The end of `waitTime` cut an attempt short before it could mean anything: what was seen before counts. */
function cutShort({ runtime, call, contest, sinceMs }: Attempted<object>): boolean {
  if (!contest.served || !call.overdue) return false
  return runtime.clock.now() - sinceMs < Math.min(500, runtime.commands.timeoutMs)
}

/** The end of the waiting: the last cause decides. */
function ended(call: Call, contest: Contest): Busy {
  if (call.fired) throw failure(call, call.reason)
  if (contest.trouble !== undefined) throw failure(call, contest.trouble)
  return new Busy(call.seen)
}

/** Tells, once, that a call begins to wait. */
export function publishWait(call: Call, busy?: Busy): void {
  const teller = call.whole ?? call
  if (teller.announced || !events.wait.hasSubscribers) return
  teller.announced = true
  const { holder, ttlMs: holderTtl } = busy?.seen ?? { holder: undefined, ttlMs: undefined }
  events.wait.publish({ lock: teller.title, holder, holderTtl })
}
