/** What the demo was asked for on its command line. */
import { parseArgs } from 'node:util'

export interface DemoArguments {
  readonly what: 'demo' | 'story' | 'help'
  /** The user's own server; undefined: a private one. */
  readonly url: string | undefined
  readonly memory: boolean
  readonly monitor: boolean
  readonly workMs: number
  readonly watchdogMs: number
  readonly processes: number
  readonly increments: number
  readonly pauseMs: number
}

/** Something on the command line is wrong. The message is one line. */
export class UsageError extends Error {}

export const HELP = `usage: npm run demo [-- [story] [options]]

  (nothing)   two processes take turns on one lock; then several count together,
              first without the lock and then with it
  story       why each part of a lock exists: every step fails first, and is then mended

The demo starts a private Redis of its own and uses database 13 there.

  --url URL          your server instead: redis://… or rediss://… (or set REDIS_URL). The keys
                     get a prefix of their own, and are removed at the end
  --monitor          on your server, also show the commands that MONITOR reports. MONITOR slows a
                     busy server down. A private server always shows them
  --memory           no Redis: everything in one process, in memory. Not for the story
  --work-ms N        how long each of the two works with the lock         (3000)
  --watchdog-ms N    the watchdog's time-out of the two                   (6000)
  --processes N      how many processes count together, 2 to 26           (4)
  --increments N     how often each of them adds one                      (250)
  --pause-ms N       the pause between reading and writing                (1)
  --help             this text

Exit codes: 0 all well, 1 the lock failed or the demo broke off, 64 wrong arguments,
69 no server, 130 and 143 interrupted.`

const OPTIONS = {
  url: { type: 'string' },
  monitor: { type: 'boolean', default: false },
  memory: { type: 'boolean', default: false },
  'work-ms': { type: 'string', default: '3000' },
  'watchdog-ms': { type: 'string', default: '6000' },
  processes: { type: 'string', default: '4' },
  increments: { type: 'string', default: '250' },
  'pause-ms': { type: 'string', default: '1' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

type Values = ReturnType<typeof parse>['values']

/** Reads the command line. Throws a {@link UsageError}. */
export function readArguments(args: readonly string[], env: NodeJS.ProcessEnv): DemoArguments {
  const { values, positionals } = parse(args)
  const what = whatOf(values, positionals)
  const { memory, monitor } = values
  if (memory && values.url !== undefined) throw new UsageError('--memory and --url exclude each other')
  if (memory && monitor) throw new UsageError('--memory has no server to --monitor')
  if (memory && what === 'story') throw new UsageError('the story needs a server: leave --memory out')
  const url = memory ? undefined : urlOf(values.url, env)
  return { what, url, memory, monitor, ...numbersOf(values) }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    // What follows the first sentence explains command lines in general.
    const [sentence = ''] = (error instanceof Error ? error.message : String(error)).split(/\.\s|\n/)
    throw new UsageError(sentence)
  }
}

function whatOf({ help }: Values, positionals: readonly string[]): DemoArguments['what'] {
  const [first, ...rest] = positionals
  const unknown = first === undefined || first === 'story' || first === 'help' ? rest[0] : first
  if (unknown !== undefined) throw new UsageError(`unknown argument '${unknown}'`)
  if (help || first === 'help') return 'help'
  return first === 'story' ? 'story' : 'demo'
}

function urlOf(given: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const fromEnvironment = env['REDIS_URL'] === '' ? undefined : env['REDIS_URL']
  const url = given ?? fromEnvironment
  if (url === undefined) return undefined
  if (/^rediss?:\/\//.test(url) && URL.canParse(url)) return url
  const source = given === undefined ? 'REDIS_URL' : '--url'
  throw new UsageError(`${source} must be an address like redis://localhost:6379`)
}

function numbersOf(values: Values) {
  return {
    workMs: numberOf(values, 'work-ms', [1, 600_000]),
    watchdogMs: numberOf(values, 'watchdog-ms', [300, 600_000]),
    processes: numberOf(values, 'processes', [2, 26]),
    increments: numberOf(values, 'increments', [1, 100_000]),
    pauseMs: numberOf(values, 'pause-ms', [0, 10_000]),
  }
}

function numberOf(
  values: Values,
  name: 'work-ms' | 'watchdog-ms' | 'processes' | 'increments' | 'pause-ms',
  [least, most]: readonly [number, number],
): number {
  const value = values[name]
  const number = /^\d+$/.test(value) ? Number(value) : NaN
  if (number >= least && number <= most) return number
  throw new UsageError(`--${name} must be a whole number from ${least} to ${most}, but is '${value}'`)
}
