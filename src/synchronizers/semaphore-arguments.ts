import { describe, wholeNumber } from '../option-checks.js'
import { type WaitOptions } from '../options.js'

/** What a call takes. */
export interface Wanted {
  readonly permits: number
  readonly options: WaitOptions | undefined
}

/** What a call takes, and what then runs under it. */
export interface Work<F> extends Wanted {
  readonly callback: F
}

/** The arguments of an acquire: a number, options, both in this order, or none. @throws TypeError or RangeError */
export function wantedOf(given: readonly unknown[]): Wanted {
  const [first, second, ...rest] = given
  const optionsFirst = typeof first === 'object' && first !== null && !Array.isArray(first)
  if (rest.length > 0 || (optionsFirst && second !== undefined))
    throw new TypeError(
      `A number of permits and options are taken, in this order, but here are ${listed(given)}`,
    )
  return {
    permits: optionsFirst || first === undefined ? 1 : wholeNumber(first, 'permits'),
    options: (optionsFirst ? first : second) as WaitOptions | undefined,
  }
}

/** The arguments of `using`: those of an acquire, and the callback behind them. @throws TypeError or RangeError */
export function workOf<F>(given: readonly unknown[]): Work<F> {
  const callback = given.at(-1)
  if (typeof callback !== 'function')
    throw new TypeError(`The callback must be a function and come last, but there is ${describe(callback)}`)
  return { ...wantedOf(given.slice(0, -1)), callback: callback as F }
}

function listed(given: readonly unknown[]): string {
  return given.map(describe).join(', ')
}
