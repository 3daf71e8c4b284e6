/** Histories on disk: a file per process, a line per event. */
import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry, Line } from './history.js'

const ENDING = '.jsonl'

/** The machine's monotonic clock in milliseconds. */
export function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

/** Writes without a buffer of its own, so that `kill -9` loses nothing. */
export class Journal {
  readonly #file: number

  constructor(folder: string, process: string) {
    this.#file = openSync(join(folder, process + ENDING), 'a')
  }

  write(line: Line): void {
    writeSync(this.#file, JSON.stringify(line) + '\n')
  }
}

/** All that was written so far, in order of time. */
export function readJournals(folder: string): Entry[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(ENDING))
  return files.flatMap((file) => readJournal(folder, file)).sort((a, b) => a.t - b.t)
}

function readJournal(folder: string, file: string): Entry[] {
  const process = file.slice(0, -ENDING.length)
  const lines = readFileSync(join(folder, file), 'utf8').split('\n')
  // The last one is empty, or the torn line of a process that was killed while writing.
  return lines.slice(0, -1).map((line) => ({ ...(JSON.parse(line) as Line), process }))
}
