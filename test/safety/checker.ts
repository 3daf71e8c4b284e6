/** Judges a history. Pure: nothing but what the processes wrote down comes in. */
import { checkCanary, checkUpdates } from './canary.js'
import type { Check, Finding } from './findings.js'
import type { Entry } from './history.js'
import { checkLateness } from './lateness.js'
import { checkFinal, checkRegrant, checkWaiting } from './liveness.js'
import { checkOverlap, checkRevival, checkServer, checkTheft } from './ownership.js'
import type { Story } from './story.js'
import { checkCounts, checkExits, checkGhosts, checkRemains } from './tidiness.js'

/** A run in which hardly anything happened proves nothing. */
const LEAST_SECTIONS = 20

/** What can be judged while the run is going on. */
const AT_ANY_TIME: Readonly<Partial<Record<Check, (story: Story) => Finding[]>>> = {
  overlap: checkOverlap,
  server: checkServer,
  theft: checkTheft,
  revival: checkRevival,
  canary: checkCanary,
  update: checkUpdates,
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
    .filter((lock) => story.of(lock).length < LEAST_SECTIONS)
    .map((lock) => ({
      check: 'coverage',
      lock,
      at: story.end,
      what: `it was held ${String(story.of(lock).length)} times only`,
    }))
}

/** The part of a history around a finding, without other locks and without looks that show nothing new. */
export function excerpt(story: Story, finding: Finding, spanMs = 1_500): Entry[] {
  const { lock, at } = finding
  const owners = new Map<string, string | null>()
  return story.entries.filter((entry) => {
    if (entry.is === 'seen') {
      const before = owners.get(entry.lock)
      owners.set(entry.lock, entry.owner)
      if (before === entry.owner) return false
    }
    if (entry.t < at - spanMs || entry.t > at + spanMs / 5 || entry.is === 'stall') return false
    return lock === undefined || lockOf(story, entry) === undefined || lockOf(story, entry) === lock
  })
}

function lockOf(story: Story, entry: Entry): string | undefined {
  if ('lock' in entry) return entry.lock
  return 'call' in entry ? story.attempts.get(entry.call)?.lock : undefined
}
