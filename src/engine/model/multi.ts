/**
 * Several re-entrant locks at once as a pure state machine: all or nothing, and each of them as the re-entrant
 * lock alone would do it.
 */
import type { MultiAcquire, MultiAcquireReply, MultiRelease, MultiReleaseReply } from '../operations.js'
import * as lock from './lock.js'
import type { KeyState, Step } from './state.js'

/** The outcome of one operation on several keys, in the order of the names. */
export interface MultiStep<Reply> {
  readonly states: readonly KeyState[]
  readonly reply: Reply
  readonly wakes: readonly Step<unknown>['wake'][]
}

/** Takes all of the locks, or none; repeats an attempt. */
export function acquire(
  before: readonly KeyState[],
  { owner, leaseMs }: MultiAcquire,
  nowMs: number,
): MultiStep<MultiAcquireReply> {
  const steps = before.map((state) =>
    lock.acquire(state, { op: 'lock.acquire', name: '', owner, count: 1, leaseMs }, nowMs),
  )
  const wakes = steps.map(() => false)
  for (const [index, { reply }] of steps.entries()) {
    const refused = refusal(reply, index)
    if (refused !== undefined) return { states: before, reply: refused, wakes }
  }
  return { states: steps.map(({ state }) => state), reply: { outcome: 'granted' }, wakes }
}

function refusal(
  reply: ReturnType<typeof lock.acquire>['reply'],
  index: number,
): MultiAcquireReply | undefined {
  switch (reply.outcome) {
    case 'granted':
      return undefined
    case 'busy':
      return { ...reply, index }
    case 'foreign':
      return { outcome: 'foreign', index }
    default:
      // A first hold is never lost.
      return { outcome: 'dead', index }
  }
}

/** Ends one owner of all of the locks. */
export function release(
  before: readonly KeyState[],
  { owner, entombMs }: MultiRelease,
  nowMs: number,
): MultiStep<MultiReleaseReply> {
  const steps = before.map((state) =>
    lock.release(state, { op: 'lock.release', name: '', owner, keepMs: 0, entombMs }, nowMs),
  )
  return {
    states: steps.map(({ state }) => state),
    reply: { results: steps.map(({ reply }) => reply.outcome) },
    wakes: steps.map(({ wake }) => wake),
  }
}
