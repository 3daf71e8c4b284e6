/** What the safety run is asked to do. */
import { parseArgs } from 'node:util'
import { MUTANTS } from './mutants.js'
import type { ClientName } from './messages.js'
import { KINDS, type Kind } from './things.js'

export interface RunOptions {
  readonly short: boolean
  /** How long faults are made; undefined in the short form: each fault once. */
  readonly seconds: number | undefined
  readonly seed: string
  readonly workers: number
  readonly objects: readonly Kind[]
  readonly client: ClientName | undefined
  readonly mutant: string | undefined
  /** Where to write the page with the results. */
  readonly report: string | undefined
}

export const HELP = `usage: npm run test:safety -- [options]
  --short              each fault once, and a few locks that are broken on purpose: some two minutes
  --seconds N          how long faults are made (150)
  --seed S             what chance begins with; the same seed draws the same faults and plans (drawn, and printed)
  --workers N          worker processes (5)
  --object NAME        only this one of ${KINDS.join(', ')}
  --client NAME        ioredis or node-redis only
  --mutant NAME        only this lock that is broken on purpose, which must be found:
                       ${MUTANTS.map(({ name }) => name).join(', ')};
                       none: only the locks as they are
  --report FILE        writes the results as a page in Markdown`

const USUAL_SECONDS = 150
const SHORT_SEED = 'holdfast'

/** Undefined: the help is asked for. @throws TypeError with one line that says what is wrong */
export function parseArguments(args: readonly string[]): RunOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h' },
      short: { type: 'boolean' },
      seconds: { type: 'string' },
      seed: { type: 'string' },
      workers: { type: 'string' },
      object: { type: 'string' },
      client: { type: 'string' },
      mutant: { type: 'string' },
      report: { type: 'string' },
    },
  })
  if (values.help === true) return undefined
  const short = values.short === true
  const object = oneOf('object', values.object, KINDS)
  return {
    short,
    seconds: count('seconds', values.seconds, 1) ?? (short ? undefined : USUAL_SECONDS),
    seed: values.seed ?? (short ? SHORT_SEED : String(Math.floor(Math.random() * 2 ** 32))),
    workers: count('workers', values.workers, 2) ?? 5,
    objects: object === undefined ? KINDS : [object],
    client: oneOf('client', values.client, ['ioredis', 'node-redis'] as const),
    report: values.report,
    mutant: oneOf('mutant', values.mutant, [...MUTANTS.map(({ name }) => name), 'none']),
  }
}

function count(option: string, value: string | undefined, least: number): number | undefined {
  if (value === undefined) return undefined
  const number = Number(value)
  if (Number.isInteger(number) && number >= least) return number
  throw new TypeError(`--${option} must be a whole number, at least ${String(least)}, but is '${value}'`)
}

function oneOf<T extends string>(
  option: string,
  value: string | undefined,
  allowed: readonly T[],
): T | undefined {
  if (value === undefined) return undefined
  const found = allowed.find((name) => name === value)
  if (found !== undefined) return found
  throw new TypeError(`--${option} must be one of ${allowed.join(', ')}, but is '${value}'`)
}
