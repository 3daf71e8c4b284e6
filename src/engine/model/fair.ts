/**
 * The fair lock as a pure state machine: the re-entrant lock, and beside it the queue of those who wait for it, as
 * Redisson keeps it. Deadlines are wall-clock time; each one counts from that of the owner before it:
 *
 *     first: when the holder's TTL ends + its own wait        others: deadline of the one before + their own wait
 *
 * Only the head is ever found dead, when its deadline is over. Who leaves takes its wait out of all deadlines behind.
 */
import type {
  FairAbandon,
  FairAbandonReply,
  FairAcquire,
  FairAcquireReply,
  Force,
  ForceReply,
  Release,
  ReleaseReply,
} from '../operations.js'
import * as lock from './lock.js'
import { entombed, ttlOf, unchanged, at, type FairQueue, type KeyState, type Step } from './state.js'

/** What the clocks say: the store's for TTLs, the client's wall clock for deadlines, and the server's wall clock. */
export interface FairClocks {
  readonly nowMs: number
  readonly wallMs: number
  readonly serverMs: number
}

/** A head's deadline may be so far behind before it is moved on. */
const SLACK_MS = 100
const NOBODY: FairQueue = { owners: [], deadlines: new Map() }
const FREE_TTL = -2

/** Takes the lock for a new owner, puts it into the queue, or repeats either. */
export function acquire(
  before: KeyState,
  operation: FairAcquire,
  clocks: FairClocks,
): Step<FairAcquireReply> {
  const { owner, leaseMs, join, lookMs } = operation
  const state = at(before, clocks.nowMs)
  // Whatever does not depend on the queue is as with the re-entrant lock.
  const taken = lock.acquire(state, { ...operation, op: 'lock.acquire', count: 1 }, clocks.nowMs)
  const { outcome } = taken.reply
  const mine = lock.countsOf(state).has(owner)
  if (mine || (outcome !== 'granted' && outcome !== 'busy')) return taken
  const { queue, changed } = purged(queueOf(state), clocks, owner)
  const [head] = queue.owners
  if (outcome === 'granted' && (head === undefined || head === owner)) {
    const left = without(queue, operation)
    return {
      ...taken,
      state: withQueue(taken.state, left),
      wake: promoted(left, leaseMs, { ...clocks, lookMs }),
    }
  }
  const seen = outcome === 'busy' ? taken.reply : { ttlMs: FREE_TTL, holder: '' }
  const { next, untilMs } = join
    ? enqueued(queue, { ...operation, ttlMs: seen.ttlMs }, clocks)
    : { next: queue }
  const news = changed && head !== owner && promoted(queue, seen.ttlMs, { wallMs: earlier(clocks), lookMs })
  const stood = { state: withQueue(state, next), wake: news }
  if (untilMs === undefined)
    return { ...stood, reply: { outcome: 'busy', ttlMs: seen.ttlMs, holder: seen.holder } }
  const headMs = head === undefined ? 0 : Math.max(0, leftOf(queue, head, earlier(clocks)))
  return {
    ...stood,
    reply: {
      outcome: 'queued',
      untilMs,
      ttlMs: seen.ttlMs,
      holder: seen.holder,
      head: head ?? owner,
      headMs,
    },
  }
}

/** Ends an owner, and tells the head of the queue; also when the lock had expired, of which nobody was told. */
export function release(
  before: KeyState,
  operation: Release<string>,
  clocks: FairClocks,
): Step<ReleaseReply> {
  const step = lock.release(before, operation, clocks.nowMs)
  return step.wake !== false || step.reply.outcome === 'gone' ? headTold(step, clocks) : step
}

/** Takes the lock from the owners that were seen, and tells the head of the queue. */
export function force(before: KeyState, operation: Force<string>, clocks: FairClocks): Step<ForceReply> {
  const step = lock.force(before, operation, clocks.nowMs)
  return step.wake !== false ? headTold(step, clocks) : step
}

/** Ends an owner that was handed to nobody: out of the lock and out of the queue. */
export function abandon(
  before: KeyState,
  operation: FairAbandon,
  clocks: FairClocks,
): Step<FairAbandonReply> {
  const { owner, lookMs } = operation
  const state = entombed(at(before, clocks.nowMs), operation, clocks.nowMs)
  const freed = lock.countsOf(state).has(owner)
  const queue = mended(queueOf(state))
  const led = queue.owners[0] === owner
  const rest = withQueue(freed ? lock.without(state, [owner]) : state, without(queue, operation))
  if (!freed && !stands(queue, owner)) return unchanged(rest, { outcome: 'none' })
  if (!led && !freed) return unchanged(rest, { outcome: 'left' })
  const living = purged(queueOf(rest), clocks).queue
  const ttlMs = rest.value === undefined ? FREE_TTL : ttlOf(rest, clocks.nowMs)
  const wake = promoted(living, ttlMs, { wallMs: earlier(clocks), lookMs })
  return { state: withQueue(rest, living), reply: { outcome: 'left' }, wake }
}

function headTold<R>(step: Step<R>, clocks: FairClocks): Step<R> {
  const { queue } = purged(queueOf(step.state), clocks)
  const [head] = queue.owners
  const wake = head === undefined ? false : ({ hint: 'one', owner: head } as const)
  return { ...step, state: withQueue(step.state, queue), wake }
}

/** The message to a new head, unless it looks by itself early enough; a TTL of -2: the lock is free. */
function promoted(
  queue: FairQueue,
  ttlMs: number,
  { wallMs, lookMs }: { readonly wallMs: number; readonly lookMs: number },
): Step<unknown>['wake'] {
  const [head] = queue.owners
  if (head === undefined) return false
  const due = (ttlMs !== -1 && ttlMs <= lookMs) || leftOf(queue, head, wallMs) <= lookMs
  return due && { hint: 'one', owner: head }
}

/** Drops dead heads, but never the caller. A client whose clock is ahead must not drop others before their time. */
function purged(
  before: FairQueue,
  clocks: FairClocks,
  caller?: string,
): { readonly queue: FairQueue; readonly changed: boolean } {
  const queue = mended(before)
  const nowMs = earlier(clocks)
  const first = queue.owners.findIndex((owner) => owner === caller || leftOf(queue, owner, nowMs) > 0)
  const dead = first === -1 ? queue.owners.length : first
  if (dead === 0) return { queue, changed: false }
  const deadlines = new Map(queue.deadlines)
  for (const owner of queue.owners.slice(0, dead)) deadlines.delete(owner)
  return { queue: { owners: queue.owners.slice(dead), deadlines }, changed: true }
}

/** List and deadlines agree again after somebody has touched one of them. */
function mended(queue: FairQueue): FairQueue {
  const { owners, deadlines } = queue
  if (owners.length === deadlines.size) return queue
  const placed = new Set(owners.filter((owner) => deadlines.has(owner)))
  return {
    owners: [...placed],
    deadlines: new Map([...deadlines].filter(([owner]) => placed.has(owner))),
  }
}

/** Puts an owner into the queue, or keeps its place there; and when it might come to the lock. */
function enqueued(
  queue: FairQueue,
  { owner, waitMs, ttlMs }: { readonly owner: string; readonly waitMs: number; readonly ttlMs: number },
  { wallMs }: FairClocks,
): { readonly next: FairQueue; readonly untilMs: number } {
  const { owners, deadlines } = queue
  const deadline = deadlines.get(owner)
  if (deadline === undefined) {
    const last = owners.at(-1)
    const untilMs = last === undefined ? ttlMs : Math.max(0, leftOf(queue, last, wallMs))
    const next = {
      owners: [...owners, owner],
      deadlines: new Map(deadlines).set(owner, untilMs + waitMs + wallMs),
    }
    return { next, untilMs }
  }
  const untilMs = Math.max(0, ttlMs)
  const lateMs = wallMs + untilMs + waitMs - deadline
  // The holder holds on longer than was known: that is true for all who stand behind the head, too.
  const moved = owners[0] === owner && lateMs > SLACK_MS
  return { next: moved ? shifted(queue, owners, lateMs) : queue, untilMs }
}

/** Takes an owner out; those behind it do not count with its wait any more. */
function without(
  queue: FairQueue,
  { owner, waitMs }: { readonly owner: string; readonly waitMs: number },
): FairQueue {
  if (!stands(queue, owner)) return queue
  const place = queue.owners.indexOf(owner)
  const behind = place === -1 ? [] : queue.owners.slice(place + 1).filter((other) => other !== owner)
  const deadlines = new Map(shifted(queue, behind, -waitMs).deadlines)
  deadlines.delete(owner)
  return { owners: queue.owners.filter((other) => other !== owner), deadlines }
}

function stands({ owners, deadlines }: FairQueue, owner: string): boolean {
  return deadlines.has(owner) || owners.includes(owner)
}

function shifted(queue: FairQueue, owners: readonly string[], byMs: number): FairQueue {
  const deadlines = new Map(queue.deadlines)
  for (const owner of owners) deadlines.set(owner, (deadlines.get(owner) ?? 0) + byMs)
  return { ...queue, deadlines }
}

function leftOf({ deadlines }: FairQueue, owner: string, nowMs: number): number {
  return (deadlines.get(owner) ?? nowMs) - nowMs
}

function earlier({ wallMs, serverMs }: FairClocks): number {
  return Math.min(wallMs, serverMs)
}

function queueOf(state: KeyState): FairQueue {
  return state.fair ?? NOBODY
}

function withQueue(state: KeyState, queue: FairQueue): KeyState {
  if (queue.owners.length > 0 || queue.deadlines.size > 0) return { ...state, fair: queue }
  const rest = { ...state }
  delete rest.fair
  return rest
}
