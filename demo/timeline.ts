/** Lines with a time and a worker, in the order in which things happened. */
import type { Page } from './page.js'

export interface Entry {
  /** Milliseconds since the epoch, with fractions. */
  readonly at: number
  readonly who: string
  /** Sent to the server, rather than told by the worker. */
  readonly sent?: boolean
  readonly what: string
  /** Asked for when the line is printed; undefined: no line. */
  readonly detail: () => string | undefined
  /** What the server held just after it. */
  readonly state?: string | undefined
}

// What two processes and the server tell does not arrive in the order in which it happened.
const HOLD_BACK_MS = 60
const WHAT_WIDTH = 11
export const ROW_WIDTH = 42

/** This process's time on the scale of {@link Entry.at}, which all processes of a machine share. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}

export class Timeline implements Disposable {
  readonly #page: Page
  readonly #timer: NodeJS.Timeout
  #waiting: Entry[] = []
  #startedAt: number | undefined

  constructor(page: Page) {
    this.#page = page
    this.#timer = setInterval(() => {
      this.#print(now() - HOLD_BACK_MS)
    }, HOLD_BACK_MS / 2)
  }

  add(entry: Entry): void {
    this.#waiting.push(entry)
  }

  /** Prints what is left. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#print(Infinity)
  }

  #print(until: number): void {
    const due = this.#waiting.filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)
    this.#waiting = this.#waiting.filter(({ at }) => at > until)
    for (const entry of due) this.#printOne(entry)
  }

  #printOne({ at, who, sent = false, what, detail, state = '' }: Entry): void {
    const text = detail()
    if (text === undefined) return
    this.#startedAt ??= at
    const page = this.#page
    const words = `${sent ? '→' : ' '} ${what.padEnd(WHAT_WIDTH)}  ${text}`
    const row = state === '' ? words : `${words.padEnd(ROW_WIDTH)}  ${state}`
    const time = Math.round(at - this.#startedAt).toString()
    page.line(`${time.padStart(7)}  ${page.worker(who)}  ${sent ? page.paint('dim', row) : row}`)
  }
}
