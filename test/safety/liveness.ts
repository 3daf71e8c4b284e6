/** Whether things go on. All bounds are generous: they find what hangs, not what is slow. */
import type { Finding } from './findings.js'
import { lengthInside, lengthOutside, type Span } from './intervals.js'
import { belief, type Attempt, type FaultSpan, type Hold, type Story } from './story.js'

const SLACK_MS = 5_000
/** A wait without end must be over after so much time in which nothing was broken. */
const PATIENCE_MS = 40_000

/** How long nobody had a lock after a fault was over. */
export interface Regrant {
  readonly fault: FaultSpan
  readonly lock: string
  /** When it was granted next; undefined: never. */
  readonly at: number | undefined
  /** Until then, without the time in which somebody believed in it. */
  readonly idleMs: number
  /** The same without the time in which something else was broken, or we could not look. */
  readonly unexplainedMs: number
}

export function regrants(story: Story): Regrant[] {
  const healed = story.faults.filter((fault) => fault.healed)
  return story.terms.locks.flatMap(({ name: lock }) => {
    const holds = story.of(lock)
    return healed.map((fault) => regrant(story, holds, { fault, lock }))
  })
}

function regrant(
  story: Story,
  holds: readonly Hold[],
  { fault, lock }: { readonly fault: FaultSpan; readonly lock: string },
): Regrant {
  const at = holds.find(({ grantedAt }) => grantedAt >= fault.to)?.grantedAt
  const since = { from: fault.to, to: at ?? story.end }
  const held = holds.filter(({ grantedAt }) => grantedAt < since.to).map(belief)
  const idleMs = lengthOutside(since, held)
  const unexplainedMs = lengthOutside(since, [...held, ...story.faults, ...story.stalls('world')])
  return { fault, lock, at, idleMs, unexplainedMs }
}

export function checkRegrant(story: Story): Finding[] {
  const bound = story.terms.longestTtlMs + SLACK_MS
  return regrants(story)
    .filter(({ unexplainedMs }) => unexplainedMs > bound)
    .map(({ fault, lock, at = story.end, unexplainedMs: ms }) => ({
      check: 'regrant',
      lock,
      at,
      ms,
      calls: [],
      what: `nobody had it for ${ms.toFixed(0)} ms after '${fault.fault}' was over`,
    }))
}

/** Every call comes to an end: in its own time, however broken the link is, and one without a limit when things work. */
export function checkWaiting(story: Story): Finding[] {
  return [...story.attempts.values()].flatMap((attempt) => {
    const ending = story.endings.get(attempt.process)
    const unanswered = attempt.endedAt === undefined
    if (unanswered && ending?.killed === true) return []
    const span = { from: attempt.invokedAt, to: attempt.endedAt ?? ending?.at ?? story.end }
    const waited = runningTime(story, attempt, span)
    const bound = boundOf(story, attempt)
    const neverAnswered = unanswered && ending !== undefined
    if (waited <= bound && !neverAnswered) return []
    const what = unanswered
      ? `call ${attempt.call} has no answer after ${waited.toFixed(0)} ms`
      : `call ${attempt.call} was answered after ${waited.toFixed(0)} ms, and ${bound.toFixed(0)} ms were allowed`
    return [{ check: 'waiting', lock: attempt.lock, at: span.to, what, calls: [attempt.call] }]
  })
}

function boundOf({ terms }: Story, { waitMs }: Attempt): number {
  return waitMs === Infinity ? PATIENCE_MS : Math.max(waitMs, terms.commandTimeoutMs) + SLACK_MS
}

function runningTime(story: Story, { process, waitMs }: Attempt, span: Span): number {
  const stalls = story.stalls(process)
  const others = waitMs === Infinity ? story.faultsOn(process) : []
  return span.to - span.from - lengthInside(span, [...stalls, ...others])
}

export function checkFinal(story: Story): Finding[] {
  const { drain, attempts, terms } = story
  if (drain === undefined) return []
  const final = [...attempts.values()].filter((attempt) => attempt.final)
  const got = new Set(final.map(({ process, lock }) => `${process} ${lock}`))
  const refused = final.filter(({ hold }) => hold === undefined)
  const missed = drain.who.flatMap((process) =>
    terms.locks
      .filter(({ name }) => !got.has(`${process} ${name}`))
      .map(({ name: lock }) => ({ process, lock, call: undefined })),
  )
  return [...refused, ...missed].map(({ process, lock, call }) => ({
    check: 'final',
    lock,
    at: story.end,
    calls: call === undefined ? [] : [call],
    what: `worker ${process} did not get it once more`,
  }))
}
