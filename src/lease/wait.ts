import { events } from '../diagnostics.js'
import { attempt, failure, leaseMsOf } from './attempt.js'
import { Busy, type Call } from './call.js'
import { nextPause, worthRetrying } from './commands.js'
import type { Contest } from './contest.js'
import { HeldLease } from './lease.js'
import type { Runtime } from './runtime.js'

const RETRY_MS = 50

/** One attempt, without queueing; a grant without validity left does not count as one. */
export async function attemptOnce(runtime: Runtime, call: Call): Promise<HeldLease | Busy> {
  for (let pauseMs = RETRY_MS; ; pauseMs = nextPause(pauseMs)) {
    let result: HeldLease | Busy | 'void'
    try {
      result = await attempt(runtime, call)
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
export function waitForLock(runtime: Runtime, call: Call): Promise<HeldLease | Busy> {
  const contest = runtime.contest(call.target)
  if (!contest.join(call)) return queueUp(runtime, call, contest)
  const sinceMs = call.startedMs
  // Before the attempt, not after: a hint that arrives meanwhile must not be lost.
  contest.due = false
  return attempt(runtime, call).then(
    (result) => {
      if (!(result instanceof HeldLease)) return lead({ runtime, call, contest, sinceMs }, { result })
      contest.granted(leaseMsOf(runtime, call))
      contest.leave(call)
      return result
    },
    (error: unknown) => lead({ runtime, call, contest, sinceMs }, { error }),
  )
}

async function queueUp(runtime: Runtime, call: Call, contest: Contest): Promise<HeldLease | Busy> {
  publishWait(call)
  if (await contest.turn(call)) return lead({ runtime, call, contest, sinceMs: 0 })
  contest.leave(call)
  return ended(call, contest)
}

function tryAsHead(runtime: Runtime, call: Call, contest: Contest): Promise<HeldLease | Busy | 'void'> {
  // Before the attempt, not after: a hint that arrives meanwhile must not be lost.
  contest.due = false
  return attempt(runtime, call).then((result) => {
    if (result instanceof HeldLease) contest.granted(leaseMsOf(runtime, call))
    return result
  })
}

interface Attempted {
  readonly runtime: Runtime
  readonly call: Call
  readonly contest: Contest
  readonly sinceMs: number
}

type Outcome = { readonly result: Busy | 'void' } | { readonly error: unknown }

/** The head of the queue: attempt, subscribe, attempt, sleep, and so on. `first` is an attempt that was made already. */
async function lead(attempted: Attempted, first?: Outcome): Promise<HeldLease | Busy> {
  const { call, contest } = attempted
  try {
    for (let outcome = first; ; outcome = undefined) {
      if (contest.due || outcome !== undefined) {
        const result = await judged(attempted, outcome)
        if (result instanceof HeldLease) return result
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
async function judged(
  attempted: Attempted,
  outcome: Outcome | undefined,
): Promise<HeldLease | 'goOn' | 'over'> {
  const { runtime, call, contest } = attempted
  const sinceMs = outcome === undefined ? runtime.clock.now() : attempted.sinceMs
  try {
    if (outcome !== undefined && 'error' in outcome) throw outcome.error
    const result = outcome === undefined ? await tryAsHead(runtime, call, contest) : outcome.result
    if (result instanceof HeldLease) return result
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
  contest.due = true
  contest.trouble = undefined
  contest.troubleSinceMs = undefined
  return (await contest.backOff(call)) === 'deadline' ? 'over' : 'goOn'
}

/** Notes that an attempt was not served. @throws if another one is of no use, or the time for trying is over */
function noteTrouble(attempted: Attempted, error: unknown): void {
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
  contest.busy(result.seen?.ttlMs ?? -1)
  // The hint may be younger than the answer.
  if (hinted) contest.due = true
}

/** The end of `waitTime` cut an attempt short before it could mean anything: what was seen before counts. */
function cutShort({ runtime, call, contest, sinceMs }: Attempted): boolean {
  if (!contest.served || !call.overdue) return false
  return runtime.clock.now() - sinceMs < Math.min(500, runtime.commands.timeoutMs)
}

/** The end of the waiting: the last cause decides. */
function ended(call: Call, contest: Contest): Busy {
  if (call.fired) throw failure(call, call.reason)
  if (contest.trouble !== undefined) throw failure(call, contest.trouble)
  return new Busy(call.seen)
}

function publishWait(call: Call, busy?: Busy): void {
  if (call.announced || !events.wait.hasSubscribers) return
  call.announced = true
  const { holder, ttlMs: holderTtl } = busy?.seen ?? { holder: undefined, ttlMs: undefined }
  events.wait.publish({ lock: call.target.title, holder, holderTtl })
}
