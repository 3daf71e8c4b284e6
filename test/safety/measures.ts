/** Figures of a run, fault by fault: the time from a fault's beginning to that of the next one belongs to it. */
import { writesOf } from './canary.js'
import { percentile, type Span } from './intervals.js'
import { latenesses, type Lateness } from './lateness.js'
import { regrants } from './liveness.js'
import { overlaps, type Overlap } from './ownership.js'
import type { Hold, Story } from './story.js'

/** One line of the table. */
export interface Measures {
  readonly fault: string
  /** A name, or `all`. */
  readonly lock: string
  readonly times: number
  readonly sections: number
  readonly overlapMs: number
  /** Overlap that force explains. */
  readonly excusedMs: number
  readonly lateWrites: number
  readonly losses: number
  /** The latest loss signal, before (negative) or after the earliest possible grant to another. */
  readonly latestSignalMs: number | undefined
  /** The longest time that nobody had the lock after the fault was over. */
  readonly idleMs: number | undefined
}

interface Period extends Span {
  readonly fault: string
}

/** Fault by fault for all locks, and lock by lock for all faults. */
export function measures(story: Story): Measures[] {
  const periods = periodsOf(story)
  const gathered = {
    overlaps: overlaps(story),
    latenesses: latenesses(story),
    regrants: regrants(story),
  }
  const faults = [...new Set(periods.map(({ fault }) => fault))]
  const all = story.terms.locks.map(({ name }) => name)
  return [
    ...faults.map((fault) => {
      const own = periods.filter((period) => period.fault === fault)
      return row(story, gathered, { fault, lock: 'all', locks: all, periods: own })
    }),
    ...all.map((lock) => row(story, gathered, { fault: 'all', lock, locks: [lock], periods })),
  ]
}

/** Fault by fault, each for every lock by itself. */
export function crossed(story: Story): Measures[] {
  const periods = periodsOf(story)
  const gathered = {
    overlaps: overlaps(story),
    latenesses: latenesses(story),
    regrants: regrants(story),
  }
  return [...new Set(periods.map(({ fault }) => fault))].sort().flatMap((fault) => {
    const own = periods.filter((period) => period.fault === fault)
    return story.terms.locks.map(({ name }) =>
      row(story, gathered, { fault, lock: name, locks: [name], periods: own }),
    )
  })
}

interface Gathered {
  readonly overlaps: readonly Overlap[]
  readonly latenesses: readonly Lateness[]
  readonly regrants: ReturnType<typeof regrants>
}

interface Cell {
  readonly fault: string
  readonly lock: string
  readonly locks: readonly string[]
  readonly periods: readonly Period[]
}

function row(story: Story, gathered: Gathered, { fault, lock, locks, periods }: Cell): Measures {
  const named = new Set(periods.map((period) => period.fault))
  const inside = (at: number): boolean => periods.some(({ from, to }) => from <= at && at < to)
  const holds = locks.flatMap((name) => story.of(name)).filter(({ grantedAt }) => inside(grantedAt))
  const met = gathered.overlaps.filter(
    ({ holds: [first], from }) => locks.includes(first?.lock ?? '') && inside(from),
  )
  const late = gathered.latenesses.filter(({ hold, at }) => locks.includes(hold.lock) && inside(at))
  const again = gathered.regrants.filter(
    (regrant) => locks.includes(regrant.lock) && named.has(regrant.fault.fault),
  )
  return {
    fault,
    lock,
    times: periods.length,
    sections: holds.filter(({ attempt }) => attempt.parent === undefined).length,
    overlapMs: sum(met.map(({ ms }) => ms)),
    excusedMs: sum(met.map(({ excusedMs }) => excusedMs)),
    lateWrites: writesOf(story, holds).late,
    losses: late.length,
    latestSignalMs: largest(late.map(({ ms }) => ms)),
    idleMs: largest(again.map(({ idleMs }) => idleMs)),
  }
}

function periodsOf({ faults, end }: Story): Period[] {
  return faults.map(({ fault, from }, i) => ({ fault, from, to: faults[i + 1]?.from ?? end }))
}

/** The lateness of all losses by time. */
export interface Signals {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly max: number
  /** The same without the time in which the process could not run. */
  readonly runningMax: number
}

export function signals(story: Story): Signals | undefined {
  const all = latenesses(story)
  if (all.length === 0) return undefined
  const values = all.map(({ ms }) => ms)
  return {
    count: all.length,
    p50: percentile(values, 0.5),
    p99: percentile(values, 0.99),
    max: Math.max(...values),
    runningMax: Math.max(...all.map(({ runningMs }) => runningMs)),
  }
}

/** What the whole run amounts to. */
export interface Totals {
  readonly sections: number
  readonly nested: number
  readonly faults: number
  readonly processes: number
  readonly refusals: ReadonlyMap<string, number>
  readonly losses: ReadonlyMap<string, number>
  readonly writes: ReturnType<typeof writesOf>
}

export function totals(story: Story): Totals {
  const attempts = [...story.attempts.values()]
  const whole = story.holds.filter(({ attempt }) => attempt.whole === undefined)
  const sections = whole.filter(({ attempt }) => attempt.parent === undefined).length
  return {
    sections,
    nested: whole.length - sections,
    faults: story.faults.length,
    processes: story.beginnings.size,
    refusals: tally(attempts.map(({ refusal }) => refusal)),
    losses: tally(story.holds.map(({ lost }: Hold) => lost?.reason)),
    writes: writesOf(story, story.holds),
  }
}

function tally(words: readonly (string | undefined)[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const word of words) if (word !== undefined) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0)
}

function largest(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.max(...values)
}
