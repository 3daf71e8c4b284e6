import { EngineError, newPassage } from '../engine/engine.js'
import { LeaseLostError, SelfHeldError, WrongTypeError } from '../errors.js'
import { Busy, type Call } from './call.js'
import { unavailable } from './commands.js'
import { tokenOf } from './attempt.js'
import { makeLease } from './fenced-lease.js'
import type { HeldLease } from './lease.js'
import { wrongToken, wrongType } from './look.js'
import { leaveTenure } from './release.js'
import type { Runtime } from './runtime.js'
import { kindOf } from './target.js'
import { wallOffset, type Tenure } from './tenure.js'

const TOO_LATE = new EngineError('Other commands of the same owner are not answered', {
  kind: 'unavailable',
  outcome: 'not-applied',
})

/** Enters a lease once more, in turn with its other nested holders; `closed`: the lease ended meanwhile. */
export async function enterNested(
  runtime: Runtime,
  call: Call,
  parent: HeldLease,
): Promise<HeldLease | Busy | 'closed'> {
  // What many may have at once, siblings may.
  if (kindOf(call.target).reading === true)
    return parent.live ? enter(runtime, call, parent) : closed(call, parent)
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
  if (parent.released) return closed(call, parent)
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

async function enter(runtime: Runtime, call: Call, parent: HeldLease): Promise<HeldLease | 'closed'> {
  const { tenure } = parent
  const { options, target } = call
  await raiseInTurn(runtime, call, tenure)
  if (parent.released) {
    // Others of the same owner may go on: what was counted up for nobody is counted down.
    if (tenure.state === 'held') void leaveTenure(runtime, tenure)
    return closed(call, parent)
  }
  parent.assertLive()
  return makeLease(runtime, {
    target,
    tenure,
    watched: options.leaseMs === undefined,
    maxHoldMs: options.maxHoldMs,
    onEnd:
      kindOf(target).reading === true
        ? undefined
        : () => {
            parent.turnstile.leave()
          },
  })
}

/** Raises the count after the owner's commands before it; waiting for that ends with the call's patience, too. */
function raiseInTurn(runtime: Runtime, call: Call, tenure: Tenure): Promise<void> {
  const { clock, commands } = runtime
  const turn = { begun: false, late: false }
  const raising = tenure.serially(async () => {
    turn.begun = true
    if (!turn.late) await raiseCount(runtime, call, tenure)
  })
  if (turn.begun) return raising
  return new Promise((resolve) => {
    const giveUp = (): void => {
      if (turn.begun || turn.late) return
      turn.late = true
      timer.cancel()
      call.listen(undefined)
      resolve(Promise.resolve().then(() => goOn(call, tenure, { error: TOO_LATE, sent: false })))
    }
    const timer = clock.setTimer(giveUp, call.attemptDeadline(commands.timeoutMs) - clock.now(), true)
    call.listen(giveUp)
    const settle = (): void => {
      timer.cancel()
      resolve(raising)
    }
    raising.then(settle, settle)
  })
}

async function raiseCount(runtime: Runtime, call: Call, tenure: Tenure): Promise<void> {
  const { clock, commands } = runtime
  const { target, options } = call
  if (tenure.frozen && !needsAnswer(call, tenure)) return
  const ttlMs = tenure.wantedTtl(options.leaseMs ?? runtime.settings.lockWatchdogTimeout)
  // A count of 1 would create the key anew if it is lost.
  const count = tenure.frozen ? Math.max(2, tenure.count) : tenure.count + 1
  const passage = newPassage()
  const wallOffsetMs = wallOffset(clock)
  try {
    const deadlineMs = call.attemptDeadline(commands.timeoutMs)
    const operation = kindOf(target).acquire(target, tenure.owner, { count, leaseMs: ttlMs })
    const reply = await commands.send(operation, passage, {
      deadlineMs,
      keepAlive: true,
      interrupt: call,
    })
    if (reply.outcome === 'granted') {
      tenure.count = count
      tenure.token = Math.max(tenure.token, tokenOf(reply))
      tenure.confirm({ sentAtMs: passage.firstSentAtMs, wallOffsetMs, ttlMs })
      return
    }
    if (reply.outcome === 'badToken') throw wrongToken(target, reply.key)
    tenure.lose(clock.now() < tenure.deadlineMs ? 'stolen' : 'expired')
    if (reply.outcome === 'foreign') throw wrongType(target)
    throw new LeaseLostError(target.title, tenure.lossReason ?? 'unknown')
  } catch (error) {
    if (error instanceof LeaseLostError || error instanceof WrongTypeError) throw error
    goOn(call, tenure, { error, sent: passage.sends > 0 })
  }
}

/** Only a lease time of its own, or the owner's first token, needs the server's word. */
function needsAnswer({ options, target }: Call, tenure: Tenure): boolean {
  return options.leaseMs !== undefined || (kindOf(target).tokens === true && tenure.token === 0)
}

/** The lock is ours with or without the count. @throws if the server's word is needed and missing */
function goOn(
  call: Call,
  tenure: Tenure,
  { error, sent }: { readonly error: unknown; readonly sent: boolean },
): void {
  const uncounted = !call.fired && !needsAnswer(call, tenure) && tenure.held
  if (uncounted || sent) tenure.frozen = true
  if (call.fired) throw call.reason
  if (!uncounted) throw unavailable(error, call.target.title)
}
