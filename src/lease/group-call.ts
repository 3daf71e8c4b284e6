import type { Clock } from '../clock.js'
import { events } from '../diagnostics.js'
import { failure } from './attempt.js'
import { Busy, type Call } from './call.js'
import type { GroupLease } from './group-lease.js'
import type { MemberLease } from './member.js'
import type { Runtime } from './runtime.js'

/** What giving back may take before the caller goes on without its answer. */
const GIVE_BACK_MS = 100

/** Tells that a call begins. */
export function tellStart({ title, options, whole }: Call): void {
  if (whole === undefined && events.start.hasSubscribers)
    events.start.publish({ lock: title, waitTime: options.waitTimeMs })
}

/** Hands the result over, unless the caller aborted in the same tick: then all is given back. */
export function settleGroup<L extends GroupLease>(call: Call, result: L | Busy): L | Busy {
  const { title: lock, waitedMs: waited, options } = call
  const tells = call.whole === undefined
  if (result instanceof Busy) {
    if (tells && events.timeout.hasSubscribers) events.timeout.publish({ lock, waited })
    return result
  }
  if (call.fired) {
    void result.release()
    throw failure(call, call.reason)
  }
  if (tells && events.granted.hasSubscribers) {
    const { owner, holdCount } = result
    events.granted.publish({ lock, owner, waited, holdCount })
  }
  result.keepFor(options.minHoldMs)
  return result
}

/** Tells why a call failed, and gives the reason on. */
export function tellFailure(call: Call, error: unknown): unknown {
  if (call.whole !== undefined) return error
  const { title: lock, waitedMs: waited } = call
  if (call.fired) {
    if (events.aborted.hasSubscribers) events.aborted.publish({ lock, waited, reason: error })
  } else if (events.failed.hasSubscribers) events.failed.publish({ lock, waited, error })
  return error
}

/** Gives back what was taken for nothing; resolves when that is done, or in a moment. */
export async function giveBack(runtime: Runtime, leases: Iterable<MemberLease>): Promise<void> {
  const releases = [...leases].map((lease) => lease.release())
  if (releases.length > 0) await within(runtime.clock, GIVE_BACK_MS, Promise.all(releases))
}

/** Resolves when the work is done, or after this time. */
function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(resolve, ms, true)
    const done = (): void => {
      timer.cancel()
      resolve()
    }
    work.then(done, done)
  })
}

/** Sleeps, but not longer than the call waits. @throws the reason why the call ended */
export function sleep(clock: Clock, call: Call, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(
      () => {
        call.listen(undefined)
        resolve()
      },
      Math.min(ms, Math.max(0, call.deadlineMs - clock.now())),
      true,
    )
    call.listen((reason) => {
      timer.cancel()
      reject(reason instanceof Error ? reason : new Error('interrupted', { cause: reason }))
    })
  })
}
