/** The result of a full run as a page for users. */
import type { Finding } from './findings.js'
import { CHECKS, type Check } from './findings.js'
import { crossed, signals, totals, type Measures } from './measures.js'
import type { Story } from './story.js'

/** What the page says about the run. */
export interface Facts {
  readonly command: string
  /** The day, as `2026-01-31`. */
  readonly date: string
  readonly server: string
  readonly mutants: readonly { readonly name: string; readonly what: string; readonly caught: boolean }[]
}

const INTRODUCTION = `Written by \`npm run test:safety -- --report docs/safety-report.md\`. Worker processes take turns on every object while
faults are made; what they write down, all on one clock, is judged afterwards. One server; a red lock has two more, which
bear no faults, so that a majority is always there.`

const COLUMNS = `- **sections**: how often it was held, beginning in the time from this fault to the next.
- **overlap**: for how long two holders believed in it together (for permits: in more than there are) that no force explains.
- **by force**: the same after the key was removed under the holder: it is told at its next renewal. Expected, and what fencing is for.
- **late writes**: sent while the lease was held, answered later. Expected of a holder that was stopped in between; see [Fencing](guarantees.md#fencing).
- **signal**: the latest loss signal, before (−) or after (+) the earliest moment at which somebody else could be granted. Above 0 only where the process could not run.
- **idle**: the longest time in which nobody had it after the fault was over.`

/** The page, in Markdown. */
export function pageOf(story: Story, findings: readonly Finding[], facts: Facts): string {
  const { sections, nested, faults, processes, writes } = totals(story)
  const signal = signals(story)
  const lines = [
    '# Safety report',
    '',
    INTRODUCTION,
    '',
    `- **Command**: \`${facts.command}\``,
    `- **Date**: ${facts.date}; ${facts.server}, Node ${process.versions.node}`,
    `- **Amount**: ${String(sections)} sections and ${String(nested)} nested ones by ${String(processes)} processes, ${String(faults)} faults`,
    `- **Writes**: ${String(writes.inTime)} in time, ${String(writes.late)} late or unanswered, ${String(writes.refused)} refused by a fence`,
    ...(signal === undefined
      ? []
      : [
          `- **Loss signals**: ${String(signal.count)}; p50 ${ms(signal.p50)}, p99 ${ms(signal.p99)}, and at most ${ms(signal.runningMax)} where the process could run`,
        ]),
    '',
    '## Checks',
    '',
    ...(Object.keys(CHECKS) as Check[]).map((check) => {
      const count = findings.filter((finding) => finding.check === check).length
      return `- ${count === 0 ? 'held' : `**broken ${String(count)} times**`}: ${CHECKS[check]}`
    }),
    '',
    '## Locks that are broken on purpose',
    '',
    'A run that does not find them is worth nothing.',
    '',
    ...facts.mutants.map(
      ({ name, what, caught }) => `- ${caught ? 'found' : '**not found**'}: ${name} (${what})`,
    ),
    '',
    '## Fault by fault',
    '',
    COLUMNS,
    '',
    ...tables(crossed(story)),
  ]
  return `${lines.join('\n').trimEnd()}\n`
}

function tables(rows: readonly Measures[]): string[] {
  return [...new Set(rows.map(({ fault }) => fault))].flatMap((fault) => {
    const own = rows.filter((row) => row.fault === fault)
    return [
      `### ${fault} (${String(own[0]?.times ?? 0)} times)`,
      '',
      '| object | sections | overlap | by force | late writes | losses | signal | idle |',
      '| --- | --: | --: | --: | --: | --: | --: | --: |',
      ...own.map(
        (row) =>
          `| ${[row.lock, row.sections, ms(row.overlapMs), ms(row.excusedMs), row.lateWrites, row.losses, maybe(row.latestSignalMs), maybe(row.idleMs)].join(' | ')} |`,
      ),
      '',
    ]
  })
}

function maybe(value: number | undefined): string {
  return value === undefined ? '' : ms(value)
}

function ms(value: number): string {
  return `${value.toFixed(value === 0 || Math.abs(value) >= 100 ? 0 : 1)} ms`
}
