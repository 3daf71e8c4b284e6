import { diagnose, type ReleaseOutcome } from '../diagnostics.js'
import { newPassage, type Passage } from '../engine/engine.js'
import type { LeaveReply, ReleaseReply } from '../engine/operations.js'
import { nextPause, worthRetrying, type CommandTerms } from './commands.js'
import { ENTOMB_MS, endOperation } from './compensation.js'
import type { Runtime } from './runtime.js'
import { kindOf } from './target.js'
import type { Tenure } from './tenure.js'

const RETRY_MS = 50

/** Leaves one hold of several. Never rejects. */
export function leaveTenure(runtime: Runtime, tenure: Tenure): Promise<ReleaseOutcome> {
  const lost = lossOutcome(tenure)
  if (lost !== undefined) return Promise.resolve(lost)
  return tenure.serially(() => leave(runtime, tenure))
}

/** Ends an owner after its last lease. Never rejects. */
export function endTenure(runtime: Runtime, tenure: Tenure): Promise<ReleaseOutcome> {
  const lost = lossOutcome(tenure)
  if (lost !== undefined) {
    // The key may outlive our belief in it by the drift allowance and by a machine's sleep; others need not wait for that.
    // So may those of several permits that are not gone.
    const left = tenure.lossReason === 'expired' || kindOf(tenure.target).shared !== undefined
    if (left) void tenure.lastly(() => finish(runtime, tenure, false))
    return Promise.resolve(lost)
  }
  return tenure.lastly(() => finish(runtime, tenure, true))
}

function lossOutcome(tenure: Tenure): ReleaseOutcome | undefined {
  switch (tenure.lossReason) {
    case 'expired':
    case 'stolen':
    case 'unknown':
      return tenure.lossReason
    default:
      // After `max-hold` and `closed` the key is still ours until its TTL, and can be freed.
      return undefined
  }
}

async function leave(runtime: Runtime, tenure: Tenure): Promise<ReleaseOutcome> {
  const { commands, clock } = runtime
  const count = tenure.count - 1
  const operation = kindOf(tenure.target).leave(tenure.target, tenure.owner, count)
  if (tenure.frozen || operation === undefined) return 'still-held'
  try {
    const deadlineMs = clock.now() + commands.timeoutMs
    const reply: LeaveReply = await commands.send(operation, newPassage(), { deadlineMs, keepAlive: true })
    if (reply.outcome === 'kept') {
      tenure.count = count
      return 'still-held'
    }
    tenure.lose(clock.now() < tenure.deadlineMs ? 'stolen' : 'expired')
    return lossOutcome(tenure) ?? 'unknown'
  } catch {
    // The count in the engine is unknown now; the final release removes the owner whatever its count.
    tenure.frozen = true
    return 'still-held'
  }
}

function finish(runtime: Runtime, tenure: Tenure, keepAlive: boolean): Promise<ReleaseOutcome> {
  const { commands, clock } = runtime
  const entombMs = tenure.once && !tenure.frozen ? 0 : ENTOMB_MS
  const passage = newPassage()
  const ending = { runtime, tenure, entombMs, passage }
  const send = { deadlineMs: clock.now() + commands.timeoutMs, keepAlive }
  return commands.send(endOperation(tenure, entombMs), passage, send).then(
    (reply) => judge(tenure, reply, { passage, nowMs: clock.now() }),
    (error: unknown) => persist(ending, send, error),
  )
}

/** A final release that is under way. */
export interface Ending {
  readonly runtime: Runtime
  readonly tenure: Tenure
  readonly entombMs: number
  readonly passage: Passage
}

/** Tries again until the command's time is over, since a repeated release does no harm; then goes on in the background. */
export async function persist(ending: Ending, send: CommandTerms, first: unknown): Promise<ReleaseOutcome> {
  const { runtime, tenure, entombMs, passage } = ending
  const { commands, clock } = runtime
  let error = first
  for (let pauseMs = RETRY_MS; ; pauseMs = nextPause(pauseMs)) {
    if (!worthRetrying(error) || clock.now() + pauseMs >= send.deadlineMs) {
      runtime.compensations.release(tenure, entombMs)
      return 'unknown'
    }
    await commands.pause(pauseMs, send.keepAlive)
    try {
      const reply = await commands.send(endOperation(tenure, entombMs), passage, send)
      return judge(tenure, reply, { passage, nowMs: clock.now() })
    } catch (again) {
      error = again
    }
  }
}

/** What the engine's answer to a final release means to its caller. */
export function judge(
  tenure: Tenure,
  reply: ReleaseReply,
  { passage, nowMs }: { readonly passage: Passage; readonly nowMs: number },
): ReleaseOutcome {
  if (reply.outcome === 'released') return 'released'
  if (reply.outcome === 'unannounced') {
    diagnose(
      tenure.target.title,
      'unannounced',
      'The server refused to publish the release; waiters find out by polling',
    )
    return 'released'
  }
  const inTime = passage.firstSentAtMs < tenure.deadlineMs
  // The first of several copies may have been the one that removed our field.
  if (!passage.once) return inTime ? 'released' : 'unknown'
  // Sent in time, but answered later, it may have been on its way when the lease ran out.
  return nowMs < tenure.deadlineMs ? 'stolen' : 'expired'
}
