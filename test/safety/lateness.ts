/** How long before, or after, somebody else could be granted the lock a holder was told of its loss. */
import type { Finding } from './findings.js'
import { lengthInside } from './intervals.js'
import type { Hold, Story } from './story.js'

/** One loss by time. Negative is good. */
export interface Lateness {
  readonly hold: Hold
  readonly at: number
  /** As it was. */
  readonly ms: number
  /** Without the time in which the process could not run. */
  readonly runningMs: number
}

/** What the holder takes off a TTL for drift: the server cannot free the lock earlier than so much after the deadline. */
function allowance(ttlMs: number): number {
  return Math.min(ttlMs * 0.01 + 2, ttlMs / 2)
}

export function latenesses(story: Story): Lateness[] {
  return story.holds.flatMap((hold) => {
    if (hold.lost?.reason !== 'expired') return []
    const { at } = hold.lost
    const earliestGrant = hold.tenure.until + Math.min(...hold.tenure.ttls.map(allowance))
    const ms = at - earliestGrant
    const stalledMs = lengthInside({ from: hold.tenure.until, to: at }, story.stalls(hold.process))
    return [{ hold, at, ms, runningMs: ms - stalledMs }]
  })
}

export function checkLateness(story: Story): Finding[] {
  return latenesses(story)
    .filter(({ runningMs }) => runningMs > 0)
    .map(({ hold, at, runningMs }) => ({
      check: 'lateness',
      lock: hold.lock,
      at,
      ms: runningMs,
      calls: [hold.call],
      what: `call ${hold.call} was told of its loss ${runningMs.toFixed(3)} ms too late, and its process was not blocked`,
    }))
}
