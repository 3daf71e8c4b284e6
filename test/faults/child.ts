/** Programs of their own process, for faults that take the process along. */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { eventually } from '../support/eventually.js'

/** How a program ended. */
export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

// The program dies with the process of the test, also when that one is killed.
const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path))

/** A running program of `programs/`. It is killed with its scope. */
export class Child implements AsyncDisposable {
  /** What it printed, line by line. */
  readonly lines: string[] = []
  /** What it printed to stderr. */
  errors = ''
  readonly ended: Promise<Ending>
  readonly #process: ChildProcessByStdio<null, Readable, Readable>

  constructor(program: string, args: readonly string[], nodeArgs: readonly string[] = []) {
    const file = fileURLToPath(new URL(`programs/${program}.ts`, import.meta.url))
    const words = [process.execPath, ...nodeArgs, '--import', 'tsx', file, ...args]
    const [command = '', ...rest] =
      SETPRIV === undefined ? words : [SETPRIV, '--pdeathsig', 'KILL', '--', ...words]
    this.#process = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
    createInterface(this.#process.stdout).on('line', (line) => this.lines.push(line))
    this.#process.stderr.on('data', (chunk: Buffer) => {
      this.errors += chunk.toString()
    })
    // 'close', not 'exit': everything that was printed has arrived.
    this.ended = once(this.#process, 'close').then(
      ([code, signal]: (number | NodeJS.Signals | null)[]) => ({ code, signal }) as Ending,
    )
  }

  /** Resolves when it has printed this line. */
  async printed(line: string): Promise<void> {
    await eventually(
      () => this.lines.includes(line) || this.#process.exitCode !== null,
      `the program prints '${line}', not only:\n${this.lines.join('\n')}\n${this.errors}`,
    )
    if (!this.lines.includes(line)) throw new Error(`the program ended before '${line}':\n${this.errors}`)
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.ended
  }
}
