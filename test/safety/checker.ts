/** Judges a history. Pure: nothing but what the processes wrote down comes in. */
import { checkCanary, checkUpdates } from './canary.js'
import type { Check, Finding } from './findings.js'
import { checkFence, checkTokens } from './fencing.js'
import type { Entry, Holder } from './history.js'
import { checkLateness } from './lateness.js'
import { checkFinal, checkRegrant, checkWaiting } from './liveness.js'
import { checkOverlap, checkRevival, checkServer, checkTheft } from './ownership.js'
import { checkOrder } from './queue.js'
import type { Story } from './story.js'
import { checkCounts, checkExits, checkGhosts, checkRemains } from './tidiness.js'

/** A run in which hardly anything happened proves nothing. */
const LEAST_SECTIONS = 20
/** How much of the history is shown around a finding. */
const BEFORE_MS = 1_500
const AFTER_MS = 100
const SHOWN_MOVES = 40

/** What can be judged while the run is going on. */
const AT_ANY_TIME: Readonly<Partial<Record<Check, (story: Story) => Finding[]>>> = {
  overlap: checkOverlap,
  server: checkServer,
  theft: checkTheft,
  revival: checkRevival,
  canary: checkCanary,
  update: checkUpdates,
  token: checkTokens,
  fence: checkFence,
  order: checkOrder,
  ghost: checkGhosts,
  count: checkCounts,
}

const AT_THE_END: Readonly<Record<Check, (story: Story) => Finding[]>> = {
  overlap: checkOverlap,
  server: checkServer,
  theft: checkTheft,
  revival: checkRevival,
  canary: checkCanary,
  update: checkUpdates,
  token: checkTokens,
  fence: checkFence,
  order: checkOrder,
  lateness: checkLateness,
  regrant: checkRegrant,
  waiting: checkWaiting,
  final: checkFinal,
  ghost: checkGhosts,
  count: checkCounts,
  exit: checkExits,
  remains: checkRemains,
  coverage: checkCoverage,
}

/** Every finding of a history that is not complete yet. */
export function judgeSoFar(story: Story): Finding[] {
  return Object.values(AT_ANY_TIME).flatMap((check) => check(story))
}

/** Every finding of a complete history. */
export function judge(story: Story): Finding[] {
  return Object.values(AT_THE_END).flatMap((check) => check(story))
}

function checkCoverage(story: Story): Finding[] {
  return story.terms.locks
    .map(({ name }) => name)
    .filter((lock) => story.of(lock).length < LEAST_SECTIONS)
    .map((lock) => ({
      check: 'coverage',
      lock,
      at: story.end,
      calls: [],
      what: `it was held ${String(story.of(lock).length)} times only`,
    }))
}

/** What happened to everybody, and to the lock by the hand of others. */
const EVENTS: ReadonlySet<Entry['is']> = new Set(['fault', 'heal', 'gone', 'forced'])
const MOVES: ReadonlySet<Entry['is']> = new Set(['granted', 'lost', 'release', 'released', 'seen'])

/** All that the calls of a finding did, and what happened meanwhile; what is told again without news is left out. */
export function excerpt(story: Story, { lock, at, calls }: Finding): Entry[] {
  const news = story.entries.filter(newsFilter())
  const own = news.filter((entry) => 'call' in entry && calls.includes(entry.call))
  const from = Math.min(own[0]?.t ?? at, at - BEFORE_MS)
  const around = news.filter(({ t }) => t >= from && t <= at + AFTER_MS)
  const moves = around.filter(
    (entry) => MOVES.has(entry.is) && [lock, undefined].includes(lockOf(story, entry)),
  )
  const shown = new Set([...own, ...around.filter(({ is }) => EVENTS.has(is)), ...moves.slice(-SHOWN_MOVES)])
  return news.filter((entry) => shown.has(entry))
}

/** Passes looks with another owner than before, and deadlines that have moved. */
function newsFilter(): (entry: Entry) => boolean {
  const shown = new Map<string, string>()
  const deadlines = new Map<string, number>()
  return (entry) => {
    if (entry.is === 'seen') {
      const before = shown.get(entry.lock)
      const after = fieldsOf(entry)
      shown.set(entry.lock, after)
      return before !== after
    }
    if (entry.is !== 'until' && entry.is !== 'granted') return true
    const before = deadlines.get(entry.call) ?? 0
    deadlines.set(entry.call, Math.max(before, entry.until))
    return entry.until - before > 1
  }
}

function fieldsOf({
  holders,
  queue = [],
}: {
  readonly holders: readonly Holder[]
  readonly queue?: readonly string[] | undefined
}): string {
  return [...holders.map(({ field }) => field), ...queue].join(' ')
}

function lockOf(story: Story, entry: Entry): string | undefined {
  if ('lock' in entry) return entry.lock
  return 'call' in entry ? story.attempts.get(entry.call)?.lock : undefined
}
