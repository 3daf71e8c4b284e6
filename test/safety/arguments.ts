/** What the safety run is asked to do. */
import { parseArgs } from 'node:util'
import { MUTANTS } from './mutants.js'
import type { ClientName, Thing } from './messages.js'

export interface RunOptions {
  readonly short: boolean
  /** How long faults are made; undefined in the short form: each fault once. */
  readonly seconds: number | undefined
  readonly seed: string
  readonly workers: number
  readonly objects: readonly Thing['kind'][]
  readonly client: ClientName | undefined
  readonly mutant: string | undefined
}

export const HELP = `usage: npm run test:safety -- [options]
  --short              each fault once, and one lock that is broken on purpose: about a minute
  --seconds N          how long faults are made (150)
  --seed S             what chance begins with; the same seed draws the same faults and plans (drawn, and printed)
  --workers N          worker processes (5)
  --object NAME        lock or mutex only
  --client NAME        ioredis or node-redis only
  --mutant NAME        only this lock that is broken on purpose, which must be found:
                       ${MUTANTS.map(({ name }) => name).join(', ')};
                       none: only the locks as they are`

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
    },
  })
  if (values.help === true) return undefined
  const short = values.short === true
  const object = oneOf('object', values.object, ['lock', 'mutex'] as const)
  return {
    short,
    seconds: count('seconds', values.seconds, 1) ?? (short ? undefined : USUAL_SECONDS),
    seed: values.seed ?? (short ? SHORT_SEED : String(Math.floor(Math.random() * 2 ** 32))),
    workers: count('workers', values.workers, 2) ?? 5,
    objects: object === undefined ? ['lock', 'mutex'] : [object],
    client: oneOf('client', values.client, ['ioredis', 'node-redis'] as const),
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
