import { attempt, failure } from '../lease/attempt.js'
import { Busy, type Call } from '../lease/call.js'
import type { HeldLease } from '../lease/lease.js'
import type { Runtime } from '../lease/runtime.js'
import { attemptOnce, publishWait } from '../lease/wait.js'
import { permitLine, standInLine, type Tried } from './permit-standing.js'

/** Takes permits with leases: once, or in line with the other calls of this process. @throws as `acquire` */
export async function takePermits(runtime: Runtime, call: Call): Promise<HeldLease | Busy> {
  if (call.options.waitTimeMs === 0) return attemptOnce(runtime, call, { attempt: tryPermits })
  const lease = await standInLine<HeldLease>({
    runtime,
    line: permitLine(runtime, 'permits', call.target),
    call,
    attempt: () => tried(runtime, call),
    waits: () => {
      publishWait(call)
    },
    failed: (error) => failure(call, error),
  })
  return lease ?? new Busy(undefined)
}

async function tried(runtime: Runtime, call: Call): Promise<Tried<HeldLease>> {
  const result = await tryPermits(runtime, call)
  const { free = 0, nextMs } = call.room ?? {}
  return { grant: result instanceof Busy ? undefined : result, free, nextMs }
}

async function tryPermits(runtime: Runtime, call: Call): Promise<HeldLease | Busy | 'void'> {
  const result = await attempt(runtime, call)
  if (result instanceof Busy) refuseHopeless(call)
  return result
}

/** Whoever has said how many there are, and wants more than there are, would wait without end. */
function refuseHopeless({ permits, room, target }: Call): void {
  const { total: own = Infinity } = target
  const total = room?.total ?? Infinity
  if (permits <= own || permits <= total) return
  throw new RangeError(
    `permits must not be more than semaphore '${target.title}' has in all (${String(total)}), but is ${String(permits)}`,
  )
}
