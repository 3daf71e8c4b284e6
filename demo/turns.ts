/** The first part: two processes take turns on one lock. */
import type { DemoArguments } from './arguments.js'
import type { Report, WorkerEvent } from './messages.js'
import { Monitor } from './monitor.js'
import { seconds, shortOwner, type Page } from './page.js'
import type { Stage } from './stage.js'
import { Team } from './team.js'
import { ROW_WIDTH, Timeline } from './timeline.js'

export interface Part {
  readonly stage: Stage
  readonly page: Page
  readonly settings: DemoArguments
  readonly stop: AbortSignal
}

const LOCK = 'redis_lock'

export function introduceTurns(page: Page, { workMs, watchdogMs }: DemoArguments, who: string): void {
  page.heading('1  Two workers take turns')
  page.line(`  ${who} want the lock ${LOCK} and work ${seconds(workMs)} each with it.`)
  page.line(
    `  Whoever has it sets its time to live to ${seconds(watchdogMs)}, and renews that every ${seconds(watchdogMs / 3)}.`,
  )
  page.line()
}

export function printTableHead(page: Page, left: string, right: string): void {
  page.line(page.paint('dim', `     ms     ${left.padEnd(ROW_WIDTH)}  ${right}`))
}

/** True: they took turns. */
export async function takeTurns(part: Part): Promise<boolean> {
  const { page, stage, settings } = part
  introduceTurns(page, settings, 'Two processes, A and B,')
  printTableHead(page, stage.monitored ? '→ sent: the commands that its script ran' : '', 'hash and its PTTL')
  const log = new TurnLog()
  const key = stage.keyPrefix + LOCK
  let inServerMs: number | undefined
  try {
    using timeline = new Timeline(page)
    using monitor = stage.monitored ? await Monitor.start(timeline, stage.redis) : undefined
    const looks: Promise<void>[] = []
    await using team = await startTeam(part, (label, report) => {
      if (report.report === 'event') log.note(label, report)
      looks.push(show({ timeline, log, stage, key }, label, report))
    })
    await team.order({ order: 'turn', lock: LOCK, workMs: settings.workMs })
    await Promise.all(looks)
    inServerMs = monitor?.handOverMs
  } finally {
    await stage.remove(LOCK)
  }
  return conclude(page, log, inServerMs)
}

function startTeam(
  { stage, settings, stop }: Part,
  onReport: (label: string, report: Report) => void,
): Promise<Team> {
  const { url, keyPrefix } = stage
  return Team.start({
    size: 2,
    settings: { url, keyPrefix, watchdogMs: settings.watchdogMs },
    stop,
    onReport,
  })
}

interface Showing {
  readonly timeline: Timeline
  readonly log: TurnLog
  readonly stage: Stage
  readonly key: string
}

async function show(showing: Showing, label: string, report: Report): Promise<void> {
  const { timeline, log } = showing
  if (report.report === 'ready') {
    const { at, pid } = report
    timeline.add({ at, who: label, what: 'ready', detail: () => `process ${pid}` })
  }
  if (report.report !== 'event') return
  const { at, what, detail } = report
  // After a release, the next one may have the lock before one can look; after the last one, nobody.
  const telling = what === 'has it' || what === 'renewed' || (what === 'released' && log.over)
  const state = telling ? await look(showing).catch(() => undefined) : undefined
  timeline.add({ at, who: label, what, detail: () => detail, state })
}

async function look({ stage, key }: Showing): Promise<string> {
  const [hash, ttl] = (await stage.redis.multi().hgetall(key).pttl(key).exec()) ?? []
  const holders = Object.entries(hash?.[1] as Record<string, string>)
  if (holders.length === 0) return 'gone'
  const fields = holders.map(([owner, holds]) => `${shortOwner(owner)}: ${holds}`)
  return `{${fields.join(', ')}}  ${String(ttl?.[1])} ms`
}

/** Who did what, for the verdict. */
export class TurnLog {
  readonly #steps: { readonly who: string; readonly what: string; readonly at: number }[] = []

  note(who: string, { at, what }: Pick<WorkerEvent, 'at' | 'what'>): void {
    if (['has it', 'done', 'released', 'lost'].includes(what)) this.#steps.push({ who, what, at })
  }

  /** Whether both have released the lock. */
  get over(): boolean {
    return this.#steps.filter(({ what }) => what === 'released').length === 2
  }

  /** From the end of the first one's work to the grant of the second one; undefined unless they took turns. */
  get handOver(): { readonly from: string; readonly to: string; readonly ms: number } | undefined {
    const done = this.#steps.filter(({ what }) => what === 'done')
    const granted = this.#steps.filter(({ what }) => what === 'has it')
    const [first, second] = granted.sort((one, other) => one.at - other.at)
    const end = done.find(({ who }) => who === first?.who)
    if (first === undefined || second === undefined || end === undefined) return undefined
    const ms = second.at - end.at
    const lost = this.#steps.some(({ what }) => what === 'lost')
    const orderly = first.who !== second.who && done.length === 2 && ms >= 0 && !lost
    return orderly ? { from: first.who, to: second.who, ms } : undefined
  }
}

export function conclude(page: Page, log: TurnLog, inServerMs?: number): boolean {
  const { handOver } = log
  page.line()
  if (handOver === undefined) {
    page.verdict(false, 'they did not take turns')
    return false
  }
  const { from, to, ms } = handOver
  page.verdict(true, `${to} had the lock ${ms.toFixed(1)} ms after ${from}'s work was done`)
  if (inServerMs !== undefined)
    page.line(`    in the server, ${inServerMs.toFixed(1)} ms from the release to the acquire`)
  return true
}
