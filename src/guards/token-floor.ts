import { StaleTokenError } from '../errors.js'
import { describe } from '../option-checks.js'

/**
 * The idea of fencing in its smallest form, for whatever one process alone writes: a floor under the tokens, that
 * rises with each higher one. Ask it before every access, reads too. If only writes raised the floor, a holder whose
 * time is over could still write between the new holder's read and its write, and what it wrote would be lost.
 */
export class TokenFloor {
  /** What is protected, for messages. */
  readonly resource: string
  #floor = 0

  /** A floor at 0: every token passes. */
  constructor(resource: string) {
    this.resource = resource
  }

  /** The highest token that has passed; 0: none yet. */
  get floor(): number {
    return this.#floor
  }

  /** Lets a token pass that is not lower than any before, and remembers it. @throws StaleTokenError; TypeError or RangeError for what is no token */
  pass(token: number): void {
    if (checkToken(token) < this.#floor) throw new StaleTokenError(this.resource, token, this.#floor)
    this.#floor = token
  }
}

/** Checks a token: a whole number 1…2^53−1. @throws TypeError or RangeError */
export function checkToken(token: unknown): number {
  if (typeof token !== 'number') throw new TypeError(`A token must be a number, but is ${describe(token)}`)
  if (Number.isSafeInteger(token) && token > 0) return token
  throw new RangeError(`A token must be a whole number from 1 to 2^53−1, but is ${String(token)}`)
}

/** Checks the name of what is protected. @throws TypeError or RangeError */
export function checkResource(name: unknown): string {
  if (typeof name !== 'string')
    throw new TypeError(`The name of what is guarded must be a string, but is ${describe(name)}`)
  if (name !== '' && name.isWellFormed()) return name
  throw new RangeError(`The name of what is guarded must be valid Unicode and not empty`)
}
