import { diagnose } from '../diagnostics.js'
import type { QueuedReply } from '../engine/operations.js'
import { Busy, type Call } from './call.js'
import { ENTOMB_MS } from './compensation.js'
import { BEHIND_MS } from './kinds.js'
import type { Runtime } from './runtime.js'
import { kindOf } from './target.js'

/** The head of a queue in the engine looks by itself after this time at the latest. */
const HEAD_MS = 5_000
const FLOOR_MS = 50

/** How long the engine keeps the call's place in a queue. The same for all its attempts, since leaving takes it back. */
export function placeMs(runtime: Runtime, call: Call): number {
  const { waitTimeMs } = call.options
  return waitTimeMs > 0 && waitTimeMs !== Infinity ? waitTimeMs : runtime.settings.fairLockWaitTimeout
}

/** What a place in the queue means for the waiting: only the head can get the lock, so the others sleep until it may be gone. */
export function busyInLine({ ttlMs, holder, head, headMs }: QueuedReply, call: Call, waitMs: number): Busy {
  const seen = holder === '' ? undefined : { holder, ttlMs }
  if (head !== call.owner)
    return new Busy(seen, { untilMs: headMs, floorMs: FLOOR_MS, capMs: BEHIND_MS, strict: true })
  // Often enough to keep the place, which ends so long after the holder's TTL.
  const capMs = Math.max(FLOOR_MS, Math.min(HEAD_MS, Math.max(0, ttlMs) + waitMs / 3))
  return new Busy(seen, { untilMs: ttlMs, floorMs: 5, capMs, strict: true })
}

/**
 * Undoes, in the background, whatever the attempts of a call's owner have left in the engine. `sure`: all of them were
 * answered, so that no late copy has to be refused.
 */
export function undo(
  runtime: Runtime,
  call: Call,
  { leaseMs, sure }: { readonly leaseMs: number; readonly sure: boolean },
): void {
  const { target, owner } = call
  const waitMs = placeMs(runtime, call)
  const entombMs = sure ? 0 : ENTOMB_MS
  const operation = kindOf(target).abandon?.(target, owner, { waitMs, entombMs })
  if (operation === undefined) {
    runtime.compensations.acquire(target, owner, leaseMs)
    return
  }
  if (call.unsure)
    diagnose(target.title, 'compensating', `The acquire of ${owner} has an unknown outcome and is undone`)
  runtime.compensations.abandon(operation, leaseMs + waitMs + ENTOMB_MS)
}
