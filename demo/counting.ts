/** The second part: several processes add one to a counter, without the lock and with it. */
import { setInterval as every } from 'node:timers/promises'
import type { DemoArguments } from './arguments.js'
import { count, type Page } from './page.js'
import { Team } from './team.js'
import type { Part } from './turns.js'

const LOCK = 'counter_lock'
const COUNTER = 'counter'
const TITLE_WIDTH = 18
const REDRAW_MS = 100
/** Where lines cannot be taken back. */
const PRINT_MS = 1_000

export function introduceCounting(page: Page, settings: DemoArguments, who: string): void {
  const { increments, pauseMs } = settings
  page.heading('2  The point of it all')
  page.line(`  ${who} add one to a counter, ${count(increments)} times each:`)
  page.line(`  read it, pause ${pauseMs} ms, write what was read plus one.`)
  page.line()
}

/** True: no update was lost with the lock. */
export async function countTogether(part: Part): Promise<boolean> {
  const { page, stage, settings } = part
  introduceCounting(page, settings, `${settings.processes} processes`)
  try {
    return await bothRounds(part)
  } finally {
    await stage.remove(COUNTER, LOCK)
  }
}

async function bothRounds({ page, stage, settings, stop }: Part): Promise<boolean> {
  const { processes, increments, pauseMs, watchdogMs } = settings
  const counter = stage.keyPrefix + COUNTER
  const done = new Map<string, number>()
  await using team = await Team.start({
    size: processes,
    settings: { url: stage.url, keyPrefix: stage.keyPrefix, watchdogMs },
    stop,
    onReport(label, report) {
      if (report.report === 'counted') done.set(label, report.times)
    },
  })

  async function round(title: string, lock: string | undefined): Promise<number> {
    done.clear()
    await stage.redis.set(counter, 0)
    const progress = new Progress(page, title, processes * increments)
    const order = team.order({ order: 'count', counter, lock, times: increments, pauseMs })
    await progress.follow(order, () => [...done.values()].reduce((sum, times) => sum + times, 0))
    const got = Number(await stage.redis.get(counter))
    return judge(page, { expected: processes * increments, got, locked: lock !== undefined })
  }

  await round('without the lock', undefined)
  return (await round('with the lock', LOCK)) === 0
}

/** How far a round is, and how fast. */
export class Progress {
  readonly #page: Page
  readonly #title: string
  readonly #total: number
  readonly #startedAt = performance.now()

  constructor(page: Page, title: string, total: number) {
    this.#page = page
    this.#title = title
    this.#total = total
  }

  /** Shows it until the work is done; then the whole of it. */
  async follow(work: Promise<unknown>, done: () => number): Promise<void> {
    const over = new AbortController()
    const shown = this.#show(over.signal, done)
    try {
      await work
    } finally {
      over.abort()
      await shown
    }
    this.#page.line(this.#row(this.#total))
  }

  async #show(signal: AbortSignal, done: () => number): Promise<void> {
    const page = this.#page
    try {
      const ticks = every(page.terminal ? REDRAW_MS : PRINT_MS, done, { signal })
      for await (const doneNow of ticks) page.passing(this.#row(doneNow()))
    } catch {
      // It is over.
    }
  }

  #row(done: number): string {
    const rate = (done / (performance.now() - this.#startedAt)) * 1_000
    const bar = this.#page.terminal ? `${this.#page.bar(done / this.#total)}  ` : ''
    const numbers = `${count(done).padStart(7)} of ${count(this.#total)}`
    return `  ${this.#title.padEnd(TITLE_WIDTH)}${bar}${numbers}  ${count(rate).padStart(7)} increments/s`
  }
}

interface Outcome {
  readonly expected: number
  readonly got: number
  readonly locked: boolean
}

/** Prints how many updates were lost, and returns it. */
export function judge(page: Page, { expected, got, locked }: Outcome): number {
  const lost = expected - got
  const text = `expected ${count(expected)}, got ${count(got)}: `
  if (lost === 0) page.verdict(true, `${text}none lost${locked ? '' : ', by luck'}`)
  else page.verdict(false, `${text}${count(lost)} updates lost`)
  page.line()
  return lost
}
