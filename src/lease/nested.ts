import { newPassage } from '../engine/engine.js'
import { LeaseLostError, SelfHeldError, WrongTypeError } from '../errors.js'
import { Busy, type Call } from './call.js'
import { unavailable } from './commands.js'
import { HeldLease } from './lease.js'
import { wrongType } from './look.js'
import type { Runtime } from './runtime.js'
import { acquireOperation } from './target.js'
import { wallOffset, type Tenure } from './tenure.js'

/** Enters a lease once more, in turn with its other nested holders; `closed`: the lease ended meanwhile. */
export async function enterNested(
  runtime: Runtime,
  call: Call,
  parent: HeldLease,
): Promise<HeldLease | Busy | 'closed'> {
  const { waitTimeMs } = call.options
  const { turnstile } = parent
  if (!turnstile.tryEnter()) {
    if (turnstile.closed) return closed(call, parent)
    if (waitTimeMs === 0) return new Busy(undefined)
    const waitMs = Math.min(call.deadlineMs - runtime.clock.now(), runtime.settings.lockWatchdogTimeout)
    const limited = waitTimeMs !== Infinity
    const turn = await turnstile.enter({
      clock: runtime.clock,
      waitMs: limited ? call.deadlineMs - runtime.clock.now() : waitMs,
      interrupt: call,
    })
    if (turn === 'interrupted') throw call.reason
    if (turn === 'closed') return closed(call, parent)
    if (turn === 'timeout' && limited) return new Busy(undefined)
    if (turn === 'timeout')
      throw new SelfHeldError(call.target.title, 'another use inside the same lease does not end')
  }
  try {
    return await enter(runtime, call, parent)
  } catch (error) {
    turnstile.leave()
    throw error
  }
}

/** An explicitly named lease must be there; a scope that ended is left for the next one outside. */
function closed(call: Call, parent: HeldLease): 'closed' {
  if (call.options.within !== undefined) parent.assertLive()
  return 'closed'
}

async function enter(runtime: Runtime, call: Call, parent: HeldLease): Promise<HeldLease> {
  const { tenure } = parent
  const { options, target } = call
  await tenure.serially(() => raiseCount(runtime, call, tenure))
  parent.assertLive()
  return new HeldLease(runtime, {
    target,
    tenure,
    watched: options.leaseMs === undefined,
    minHoldMs: options.minHoldMs,
    maxHoldMs: options.maxHoldMs,
    onEnd: () => {
      parent.turnstile.leave()
    },
  })
}

async function raiseCount(runtime: Runtime, call: Call, tenure: Tenure): Promise<void> {
  const { clock, commands } = runtime
  const { target, options } = call
  if (tenure.frozen && options.leaseMs === undefined) return
  const ttlMs = options.leaseMs ?? runtime.settings.lockWatchdogTimeout
  const count = tenure.frozen ? tenure.count : tenure.count + 1
  const passage = newPassage()
  const wallOffsetMs = wallOffset(clock)
  try {
    const deadlineMs = call.attemptDeadline(commands.timeoutMs)
    const operation = acquireOperation(target, tenure.owner, { count, leaseMs: ttlMs })
    const reply = await commands.send(operation, passage, {
      deadlineMs,
      keepAlive: true,
      interrupt: call,
    })
    if (reply.outcome === 'granted') {
      tenure.count = count
      tenure.confirm({ sentAtMs: passage.firstSentAtMs, wallOffsetMs, ttlMs })
      return
    }
    tenure.lose(clock.now() < tenure.deadlineMs ? 'stolen' : 'expired')
    if (reply.outcome === 'foreign') throw wrongType(target)
    throw new LeaseLostError(target.title, tenure.lossReason ?? 'unknown')
  } catch (error) {
    if (error instanceof LeaseLostError || error instanceof WrongTypeError) throw error
    if (passage.sends > 0) tenure.frozen = true
    if (call.fired) throw call.reason
    // The lock is ours with or without the count; only a lease time of its own needs the server's word.
    if (options.leaseMs !== undefined || !tenure.held) throw unavailable(error, target.title)
  }
}
