/** What the demo prints: lines in columns, coloured on a terminal, plain otherwise. */

const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const

type Style = keyof typeof STYLES

const WORKER_STYLES: readonly Style[] = ['cyan', 'yellow', 'magenta', 'green', 'blue', 'red']
const BAR_WIDTH = 16

export class Page {
  readonly terminal: boolean
  readonly #out: NodeJS.WriteStream
  readonly #coloured: boolean
  #open = false

  constructor(out: NodeJS.WriteStream) {
    this.#out = out
    this.terminal = out.isTTY
    // Knows NO_COLOR and dumb terminals.
    this.#coloured = out.isTTY && out.hasColors()
  }

  line(text = ''): void {
    this.#write(`${text}\n`)
  }

  heading(text: string): void {
    this.line()
    this.line(this.paint('bold', text))
    this.line()
  }

  /** A verdict: green for what went well, red for what did not. */
  verdict(well: boolean, text: string): void {
    this.line(`  ${well ? this.paint('green', `✓ ${text}`) : this.paint('red', `✗ ${text}`)}`)
  }

  /** A line that the next one takes the place of, where that is possible. */
  passing(text: string): void {
    this.#write(this.terminal ? text : `${text}\n`)
    this.#open = this.terminal
  }

  /** Leaves what is there, and the cursor below it. */
  close(): void {
    if (this.#open) this.#out.write('\n')
    this.#open = false
  }

  bar(part: number): string {
    const full = Math.round(Math.min(1, part) * BAR_WIDTH)
    return '█'.repeat(full) + this.paint('dim', '░'.repeat(BAR_WIDTH - full))
  }

  /** In the colour of that worker. */
  worker(label: string, text = label): string {
    const index = label.charCodeAt(0) - 'A'.charCodeAt(0)
    return this.paint(WORKER_STYLES[index % WORKER_STYLES.length] ?? 'bold', text)
  }

  paint(style: Style, text: string): string {
    if (!this.#coloured) return text
    const [on, off] = STYLES[style]
    return `\u001B[${on}m${text}\u001B[${off}m`
  }

  #write(text: string): void {
    this.#out.write(this.#open ? `\r\u001B[K${text}` : text)
    this.#open = false
  }
}

/** An owner in few characters. */
export function shortOwner(owner: string): string {
  return `${owner.slice(0, 4)}…${owner.slice(-4)}`
}

export function count(number: number): string {
  return Math.round(number).toLocaleString('en')
}

export function seconds(ms: number): string {
  return `${ms / 1_000} s`
}
