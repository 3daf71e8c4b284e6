/** What the safety run prints. */
import { excerpt } from './checker.js'
import { CHECKS, type Check, type Finding } from './findings.js'
import type { Entry } from './history.js'
import { measures, signals, totals, type Measures } from './measures.js'
import type { Story } from './story.js'

const SHOWN_FINDINGS = 3

/** A line a check, and what there is to see where one failed. Gives how many passed and failed. */
export function printChecks(story: Story, findings: readonly Finding[]): { passed: number; failed: number } {
  const counts = { passed: 0, failed: 0 }
  for (const check of Object.keys(CHECKS) as Check[]) {
    const found = findings.filter((finding) => finding.check === check)
    counts[found.length === 0 ? 'passed' : 'failed'] += 1
    console.log(`${found.length === 0 ? '  ok  ' : 'FAILED'}  ${CHECKS[check]}`)
    for (const finding of found.slice(0, SHOWN_FINDINGS)) printFinding(story, finding)
    if (found.length > SHOWN_FINDINGS)
      console.log(`        and ${String(found.length - SHOWN_FINDINGS)} more of this kind`)
  }
  return counts
}

/** The finding and the history around it. Times are milliseconds from the finding on. */
function printFinding(story: Story, finding: Finding): void {
  console.log(`        ${finding.lock === undefined ? '' : `lock '${finding.lock}': `}${finding.what}`)
  for (const entry of excerpt(story, finding)) console.log(`        ${lineOf(entry, finding.at)}`)
}

function lineOf({ t, process, ...rest }: Entry, zero: number): string {
  const facts = Object.entries(rest).filter(([name, value]) => name !== 'is' && value !== undefined)
  const words = facts.map(([name, value]) => `${name}=${valueOf(name, value, zero)}`)
  return `${(t - zero).toFixed(3).padStart(10)}  ${process.padEnd(6)} ${rest.is} ${words.join(' ')}`
}

/** Points in time are told like the time of the line. */
function valueOf(name: string, value: unknown, zero: number): string {
  if ((name === 'until' || name === 'from') && typeof value === 'number') return (value - zero).toFixed(3)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The sums and the signals of a run. */
export function printTotals(story: Story): void {
  const { sections, nested, faults, processes, refusals, losses, writes } = totals(story)
  console.log(
    `${String(sections)} sections (and ${String(nested)} nested ones) by ${String(processes)} processes under ${String(faults)} faults`,
  )
  console.log(`  not granted: ${listed(refusals)}; lost: ${listed(losses)}`)
  console.log(
    `  writes to the resources: ${String(writes.inTime)} in time, ${String(writes.late)} late or unanswered` +
      ` (${String(writes.coveredByLate)} updates covered by such: what fencing tokens are for),` +
      ` ${String(writes.refused)} refused by a fence`,
  )
  const signal = signals(story)
  if (signal === undefined) return
  const { count, p50, p99, max, runningMax } = signal
  console.log(
    `  loss signal against the earliest possible grant to another, ${String(count)} losses:` +
      ` p50 ${ms(p50)}, p99 ${ms(p99)}, max ${ms(max)}; max while the process could run ${ms(runningMax)}`,
  )
}

/** Fault by fault. */
export function printTable(story: Story): void {
  const heads = ['fault', 'lock', 'times', 'sections', 'overlap', 'by force', 'late writes', 'losses']
  const rows = [[...heads, 'latest signal', 'longest idle'], ...measures(story).map(cells)]
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const row of rows) {
    const padded = row.map((cell, column) =>
      column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    console.log(padded.join('  '))
  }
}

function cells(row: Measures): string[] {
  return [
    row.fault,
    row.lock,
    ...[row.times, row.sections].map(String),
    ...[row.overlapMs, row.excusedMs].map(ms),
    ...[row.lateWrites, row.losses].map(String),
    row.latestSignalMs === undefined ? '-' : ms(row.latestSignalMs),
    row.idleMs === undefined ? '-' : ms(row.idleMs),
  ]
}

function ms(value: number): string {
  return `${value.toFixed(value === 0 || Math.abs(value) >= 100 ? 0 : 1)} ms`
}

function listed(counts: ReadonlyMap<string, number>): string {
  const parts = [...counts].map(([word, count]) => `${word} ${String(count)}`)
  return parts.length === 0 ? 'none' : parts.join(', ')
}
