/** What a caller is going to do, drawn by chance. */
import type { Manners } from './messages.js'
import type { Random } from './random.js'
import type { Way } from './ways.js'

export interface Plan {
  readonly how: 'acquire' | 'try' | 'using'
  /** Undefined: without end. */
  readonly waitMs: number | undefined
  readonly abortMs: number | undefined
  /** Undefined: kept alive by the watchdog. */
  readonly leaseMs: number | undefined
  readonly minHoldMs: number | undefined
  readonly holdMs: number
  /** Asks for more time in the middle of the section. */
  readonly extendMs: number | undefined
  /** How many times something is taken inside. */
  readonly nested: number
  /** The last round, when every worker gets every lock once more. */
  readonly final?: true | undefined
}

/** The longest TTL that a plan may ask for. */
export const LONGEST_TTL_MS = 5_000

export function drawPlan(random: Random, way: Way, manners: Manners, watchdogMs: number): Plan {
  const { greed, haste, leased } = manners
  if (random.chance(haste)) return hasty(random)
  const how = random.pick(['acquire', 'using', 'using', 'try'] as const)
  const leaseMs = random.chance(leased) ? random.between(400, 2_000) : undefined
  const greedy = random.chance(greed)
  return {
    how,
    waitMs: how === 'try' ? random.pick([undefined, 60, 400]) : random.pick([undefined, 700, 2_500]),
    abortMs: random.chance(0.15) ? random.between(5, 1_200) : undefined,
    leaseMs,
    minHoldMs: way.permits === undefined && random.chance(0.05) ? random.between(1, 150) : undefined,
    holdMs: greedy
      ? (leaseMs ?? watchdogMs) * random.pick([0.7, 1.3, 2.5])
      : random.pick([0, 2, 5, 10, 25, 60, 150]),
    extendMs: !greedy && random.chance(0.1) ? random.between(300, 1_500) : undefined,
    nested: way.inner.length > 0 && random.chance(0.25) ? random.between(1, 2) : 0,
  }
}

/** One attempt, which shows when an unknown outcome is not undone. */
function hasty(random: Random): Plan {
  return {
    how: 'try',
    waitMs: undefined,
    abortMs: undefined,
    leaseMs: LONGEST_TTL_MS,
    minHoldMs: undefined,
    holdMs: random.between(0, 20),
    extendMs: undefined,
    nested: 0,
  }
}

/** A short stay, inside of another lease or at the end. */
export function briefPlan(how: Plan['how'], waitMs: number | undefined, holdMs: number): Plan {
  return {
    ...{ how, waitMs, holdMs, nested: 0 },
    abortMs: undefined,
    leaseMs: undefined,
    minHoldMs: undefined,
    extendMs: undefined,
  }
}
