/** Whether things go on. All bounds are generous: they find what hangs, not what is slow. */
import type { Finding } from './findings.js'
import { lengthInside, type Span } from './intervals.js'
import type { Attempt, FaultSpan, Story } from './story.js'

const SLACK_MS = 5_000
/** A wait without end must be over after so much time in which nothing was broken. */
const PATIENCE_MS = 20_000

/** The wait for the next grant of a lock after a fault. */
export interface Regrant {
  readonly fault: FaultSpan
  readonly lock: string
  /** Undefined: never. */
  readonly ms: number | undefined
}

export function regrants(story: Story): Regrant[] {
  const grants = new Map(
    story.terms.locks.map((lock) => [lock, story.of(lock).map(({ grantedAt }) => grantedAt)]),
  )
  return story.faults
    .filter(({ healed }) => healed)
    .flatMap((fault) =>
      story.terms.locks.map((lock) => {
        const next = grants.get(lock)?.find((at) => at >= fault.to)
        return { fault, lock, ms: next === undefined ? undefined : next - fault.to }
      }),
    )
}

export function checkRegrant(story: Story): Finding[] {
  const bound = story.terms.longestTtlMs + SLACK_MS
  return regrants(story).flatMap(({ fault, lock, ms }) => {
    const since = { from: fault.to, to: ms === undefined ? story.end : fault.to + ms }
    const broken = lengthInside(since, [...story.faults, ...story.stalls('world')])
    const waited = since.to - since.from - broken
    if (waited <= bound) return []
    const what = `nobody was granted it for ${waited.toFixed(0)} ms after '${fault.fault}' was over`
    return [{ check: 'regrant', lock, at: since.to, ms: waited, what }]
  })
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
    return [{ check: 'waiting', lock: attempt.lock, at: span.to, what }]
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
  const got = new Set(
    [...attempts.values()]
      .filter(({ final, hold }) => final && hold !== undefined)
      .map(({ process, lock }) => `${process} ${lock}`),
  )
  return drain.who.flatMap((process) =>
    terms.locks
      .filter((lock) => !got.has(`${process} ${lock}`))
      .map((lock) => ({
        check: 'final',
        lock,
        at: story.end,
        what: `worker ${process} did not get it once more`,
      })),
  )
}
