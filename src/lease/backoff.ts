import { describe, duration, refuseUnknown } from '../option-checks.js'

/** How the waiter of a spin lock paces its attempts. Make one object and give it to as many locks as you like. */
export interface BackoffPolicy {
  /** A fresh sequence of pauses; asked for by each call whose first attempt found the lock taken. */
  sequence(): BackoffSequence
}

/** The pauses of one call. */
export interface BackoffSequence {
  /** Milliseconds to sleep after one more attempt that found the lock taken. 1…2^53−1; fractions are rounded up. */
  next(): number
}

/** How pauses grow. */
export interface ExponentialBackoffOptions {
  /** The first pause in milliseconds. 1…`max`. @defaultValue 1 */
  readonly initial?: number | undefined
  /** What a pause is multiplied by for the next one. 1…2^53−1. @defaultValue 2 */
  readonly factor?: number | undefined
  /** The longest pause in milliseconds. 1…2^53−1. @defaultValue 128 */
  readonly max?: number | undefined
}

const RANGE = { min: 1, max: Number.MAX_SAFE_INTEGER }
const EXPONENTIAL_KEYS: ReadonlySet<string> = new Set<keyof ExponentialBackoffOptions>([
  'initial',
  'factor',
  'max',
])

/**
 * Pauses that grow, and drift apart among those who wait: the next one is the one before, times `factor`, and a
 * random number of milliseconds below the count of pauses so far, but at most `max`. As Redisson's default.
 * @throws TypeError or RangeError naming the option
 */
export function exponentialBackoff(options: ExponentialBackoffOptions = {}): BackoffPolicy {
  refuseUnknown(options, EXPONENTIAL_KEYS, 'back-off options')
  const max = duration(options.max, 'max', RANGE) ?? 128
  const initial = duration(options.initial, 'initial', RANGE) ?? 1
  const factor = factorOption(options.factor)
  if (initial > max)
    throw new RangeError(`initial must not exceed max (${String(max)}), but is ${String(initial)}`)
  return { sequence: () => growing(initial, factor, max) }
}

/** The same pause every time. @defaultValue 64, as Redisson's. @throws TypeError or RangeError */
export function constantBackoff(ms = 64): BackoffPolicy {
  const pause = duration(ms, 'ms', RANGE) ?? 64
  const sequence = { next: () => pause }
  return { sequence: () => sequence }
}

function growing(initial: number, factor: number, max: number): BackoffSequence {
  let pauses = 0
  let upcoming = initial
  return {
    next: () => {
      const pause = upcoming
      pauses += 1
      upcoming = Math.min(max, Math.ceil(pause * factor) + Math.floor(Math.random() * pauses))
      return pause
    },
  }
}

function factorOption(factor: unknown = 2): number {
  if (typeof factor !== 'number' || Number.isNaN(factor))
    throw new TypeError(`factor must be a number, but is ${describe(factor)}`)
  if (factor < RANGE.min || factor > RANGE.max)
    throw new RangeError(`factor must be from 1 to 2^53−1, but is ${String(factor)}`)
  return factor
}

/** Checks a policy of the caller's. @throws TypeError */
export function checkPolicy(policy: unknown): BackoffPolicy {
  if (hasMethod(policy, 'sequence')) return policy as BackoffPolicy
  throw new TypeError(`backoff must be an object with a method sequence, but is ${describe(policy)}`)
}

/** The pauses of one call by a policy, whatever that answers. Asks the policy when the first one is needed. */
export class Pauses {
  readonly #policy: BackoffPolicy
  #sequence: BackoffSequence | undefined

  constructor(policy: BackoffPolicy) {
    this.#policy = policy
  }

  /** The next pause in milliseconds. @throws TypeError or RangeError for an answer that is none, and what the policy throws */
  next(): number {
    this.#sequence ??= this.#begin()
    const ms: unknown = this.#sequence.next()
    if (typeof ms !== 'number') throw new TypeError(`A back-off must be a number, but is ${describe(ms)}`)
    return duration(ms, 'A back-off', RANGE) ?? ms
  }

  #begin(): BackoffSequence {
    const sequence: unknown = this.#policy.sequence()
    if (hasMethod(sequence, 'next')) return sequence as BackoffSequence
    throw new TypeError(`sequence() must give an object with a method next, but gave ${describe(sequence)}`)
  }
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, name) === 'function'
}
