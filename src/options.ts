import { systemClock, type Clock } from './clock.js'

/** What acquiring uses where the call says nothing. */
export interface AcquireDefaults {
  /** For `acquire` and `using`. @defaultValue `Infinity` */
  readonly waitTime?: number | undefined
  /** @defaultValue none: the watchdog keeps locks alive */
  readonly leaseTime?: number | undefined
}

/** Settings of a `Holdfast`. All times are milliseconds. */
export interface HoldfastOptions {
  /** Put before every name. @defaultValue `''` */
  readonly keyPrefix?: string | undefined
  /** Maps every name, before the prefix is put before it. @defaultValue the name itself */
  readonly nameMapper?: ((name: string) => string) | undefined
  /** The TTL of leases without `leaseTime`; they are renewed every third of it. 30…2^53−1. @defaultValue 30 000 */
  readonly lockWatchdogTimeout?: number | undefined
  /** How long a fair lock keeps the place of a waiter without `waitTime` that died; Redisson's default. 1…2^53−1. @defaultValue 300 000 */
  readonly fairLockWaitTimeout?: number | undefined
  /** Bounds every single command to the server. 1…2^53−1. @defaultValue 3 000 */
  readonly commandTimeout?: number | undefined
  /** How long a call without `waitTime` tries to reach the server before it fails, at most one `commandTimeout` longer. 0…∞. @defaultValue 10 000 */
  readonly unavailableAfter?: number | undefined
  /** After this time a lease counts as lost (`max-hold`): its signal aborts and renewal ends; the key stays until its release or the end of its TTL. 1…∞. @defaultValue `Infinity` */
  readonly maxHold?: number | undefined
  /** How much the clocks of client and server may drift apart during a lease, as a part of it; 2 ms are added. 0…0.5. @defaultValue 0.01 */
  readonly clockDrift?: number | undefined
  /** How waiters hear of releases: a connection of our own, opened with the first waiter; none (they poll); or a client of yours that only subscribes. @defaultValue `'auto'` */
  readonly subscriber?: 'auto' | 'off' | object | undefined
  /** What acquiring uses where the call says nothing; `waitTime` is for `acquire` and `using` only. */
  readonly defaults?: AcquireDefaults | undefined
  /** For tests: where time comes from. @defaultValue the machine's clocks */
  readonly clock?: Clock | undefined
}

/** A lease, as far as options need it. */
export interface AnyLease {
  /** The name of its lock. */
  readonly lock: string
  /** Its owner. */
  readonly owner: string
}

/** How to acquire. All times are milliseconds; fractions are rounded up. */
export interface AcquireOptions {
  /** How long to wait: 0 one attempt, `Infinity` until `signal` aborts. @defaultValue `Infinity` for `acquire` and `using`, 0 for `tryAcquire` and `tryUsing` */
  readonly waitTime?: number | undefined
  /** After this time the server frees the lock by itself. 1…2^53−1. @defaultValue none: the watchdog keeps the lock alive */
  readonly leaseTime?: number | undefined
  /** Ends the waiting, never the hold. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Enters this lease of the same lock once more. */
  readonly within?: AnyLease | undefined
  /** A release before this time has passed since the grant leaves the lock closed for the rest of it. 0…2^53−1. @defaultValue 0 */
  readonly minHold?: number | undefined
  /** After this time the lease counts as lost (`max-hold`): its signal aborts and renewal ends; the key stays until its release or the end of its TTL. 1…∞. @defaultValue that of the `Holdfast` */
  readonly maxHold?: number | undefined
  /** The longest pause between two attempts of a waiter. 1…2^53−1. @defaultValue 5 000; 500 for a mutex */
  readonly pollInterval?: number | undefined
}

/** How to wait, for what has no lease. All times are milliseconds; fractions are rounded up. */
export interface WaitOptions {
  /** How long to wait: 0 one attempt, `Infinity` until `signal` aborts. @defaultValue `Infinity`; 0 for what begins with `try` */
  readonly waitTime?: number | undefined
  /** Ends the waiting. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** The longest pause between two looks of a waiter. 1…2^53−1. @defaultValue 5 000 */
  readonly pollInterval?: number | undefined
}

/** Settings with everything filled in. */
export interface ResolvedHoldfastOptions {
  readonly keyPrefix: string
  readonly nameMapper: (name: string) => string
  readonly lockWatchdogTimeout: number
  readonly fairLockWaitTimeout: number
  readonly commandTimeout: number
  readonly unavailableAfter: number
  readonly maxHold: number
  readonly clockDrift: number
  readonly subscriber: 'auto' | 'off' | object
  readonly waitTime: number | undefined
  readonly leaseTime: number | undefined
  readonly clock: Clock
}

/** Acquire options, checked. */
export interface ResolvedAcquireOptions {
  readonly waitTimeMs: number
  /** Undefined: kept alive by the watchdog. */
  readonly leaseMs: number | undefined
  readonly signal: AbortSignal | undefined
  readonly within: object | undefined
  readonly minHoldMs: number
  readonly maxHoldMs: number
  readonly pollMs: number | undefined
}

/** Wait options, checked. */
export interface ResolvedWaitOptions {
  readonly waitTimeMs: number
  readonly signal: AbortSignal | undefined
  readonly pollMs: number | undefined
}

interface Range {
  readonly min: number
  readonly max: number
}

const LONGEST = Number.MAX_SAFE_INTEGER
const FROM_ONE: Range = { min: 1, max: LONGEST }
const TO_INFINITY: Range = { min: 0, max: Infinity }

const HOLDFAST_KEYS: ReadonlySet<string> = new Set<keyof HoldfastOptions>([
  'keyPrefix',
  'nameMapper',
  'lockWatchdogTimeout',
  'fairLockWaitTimeout',
  'commandTimeout',
  'unavailableAfter',
  'maxHold',
  'clockDrift',
  'subscriber',
  'defaults',
  'clock',
])

const ACQUIRE_KEYS: ReadonlySet<string> = new Set<keyof AcquireOptions>([
  'waitTime',
  'leaseTime',
  'signal',
  'within',
  'minHold',
  'maxHold',
  'pollInterval',
])

const WAIT_KEYS: ReadonlySet<string> = new Set<keyof WaitOptions>(['waitTime', 'signal', 'pollInterval'])

const DEFAULTS_KEYS: ReadonlySet<string> = new Set(['waitTime', 'leaseTime'])

/** Checks the settings of a `Holdfast` and fills in the defaults. @throws TypeError or RangeError naming the option */
export function resolveHoldfastOptions(options: HoldfastOptions = {}): ResolvedHoldfastOptions {
  refuseUnknown(options, HOLDFAST_KEYS, 'Holdfast options')
  const defaults = options.defaults === undefined ? {} : options.defaults
  refuseUnknown(defaults, DEFAULTS_KEYS, 'defaults')
  return Object.freeze({
    keyPrefix: options.keyPrefix === undefined ? '' : text(options.keyPrefix, 'keyPrefix'),
    nameMapper: options.nameMapper === undefined ? identity : callable(options.nameMapper, 'nameMapper'),
    lockWatchdogTimeout:
      duration(options.lockWatchdogTimeout, 'lockWatchdogTimeout', { min: 30, max: LONGEST }) ?? 30_000,
    fairLockWaitTimeout: duration(options.fairLockWaitTimeout, 'fairLockWaitTimeout', FROM_ONE) ?? 300_000,
    commandTimeout: duration(options.commandTimeout, 'commandTimeout', FROM_ONE) ?? 3_000,
    unavailableAfter: duration(options.unavailableAfter, 'unavailableAfter', TO_INFINITY) ?? 10_000,
    maxHold: duration(options.maxHold, 'maxHold', { min: 1, max: Infinity }) ?? Infinity,
    clockDrift:
      options.clockDrift === undefined
        ? 0.01
        : inRange(options.clockDrift, 'clockDrift', { min: 0, max: 0.5 }),
    subscriber: subscriberOption(options.subscriber),
    waitTime: duration(defaults.waitTime, 'defaults.waitTime', TO_INFINITY),
    leaseTime: duration(defaults.leaseTime, 'defaults.leaseTime', FROM_ONE),
    clock: options.clock === undefined ? systemClock : clockOption(options.clock),
  } satisfies ResolvedHoldfastOptions)
}

/** Checks the options of one call and fills in the defaults. @throws TypeError or RangeError naming the option */
export function resolveAcquireOptions(
  options: AcquireOptions | undefined,
  settings: ResolvedHoldfastOptions,
  trying: boolean,
): ResolvedAcquireOptions {
  if (options === undefined && settings.waitTime === undefined && settings.leaseTime === undefined)
    return trying ? plainTry(settings) : plainAcquire(settings)
  const given = options === undefined ? {} : options
  refuseUnknown(given, ACQUIRE_KEYS, 'acquire options')
  const leaseMs = duration(given.leaseTime, 'leaseTime', FROM_ONE) ?? settings.leaseTime
  const minHoldMs = duration(given.minHold, 'minHold', { min: 0, max: LONGEST }) ?? 0
  if (leaseMs !== undefined && minHoldMs > leaseMs)
    throw new RangeError(
      `minHold must not exceed leaseTime (${String(leaseMs)}), but is ${String(minHoldMs)}`,
    )
  return {
    waitTimeMs:
      duration(given.waitTime, 'waitTime', TO_INFINITY) ?? (trying ? 0 : (settings.waitTime ?? Infinity)),
    leaseMs,
    signal: given.signal === undefined ? undefined : abortSignal(given.signal),
    within: given.within,
    minHoldMs,
    maxHoldMs: duration(given.maxHold, 'maxHold', { min: 1, max: Infinity }) ?? settings.maxHold,
    pollMs: duration(given.pollInterval, 'pollInterval', FROM_ONE),
  }
}

const plain = new WeakMap<
  ResolvedHoldfastOptions,
  { readonly once: ResolvedAcquireOptions; readonly long: ResolvedAcquireOptions }
>()

function plainOptions(settings: ResolvedHoldfastOptions): {
  readonly once: ResolvedAcquireOptions
  readonly long: ResolvedAcquireOptions
} {
  const known = plain.get(settings)
  if (known !== undefined) return known
  const rest = {
    leaseMs: undefined,
    signal: undefined,
    within: undefined,
    minHoldMs: 0,
    maxHoldMs: settings.maxHold,
    pollMs: undefined,
  }
  const made = { once: { ...rest, waitTimeMs: 0 }, long: { ...rest, waitTimeMs: Infinity } }
  plain.set(settings, made)
  return made
}

function plainTry(settings: ResolvedHoldfastOptions): ResolvedAcquireOptions {
  return plainOptions(settings).once
}

function plainAcquire(settings: ResolvedHoldfastOptions): ResolvedAcquireOptions {
  return plainOptions(settings).long
}

/** Checks the options of a call that waits, and fills in the defaults. @throws TypeError or RangeError naming the option */
export function resolveWaitOptions(
  given: WaitOptions | undefined,
  settings: ResolvedHoldfastOptions,
  trying: boolean,
): ResolvedWaitOptions {
  const options = given ?? {}
  refuseUnknown(options, WAIT_KEYS, 'wait options')
  const { waitTime, signal, pollInterval } = options
  return {
    waitTimeMs: duration(waitTime, 'waitTime', TO_INFINITY) ?? (trying ? 0 : (settings.waitTime ?? Infinity)),
    signal: signal === undefined ? undefined : abortSignal(signal),
    pollMs: duration(pollInterval, 'pollInterval', FROM_ONE),
  }
}

/** Checks a number of things. @throws TypeError or RangeError naming the option, the bounds and the value */
export function wholeNumber(value: unknown, option: string, min = 1): number {
  if (typeof value !== 'number' || Number.isNaN(value))
    throw new TypeError(`${option} must be a number, but is ${describe(value)}`)
  if (Number.isSafeInteger(value) && value >= min) return value
  throw new RangeError(
    `${option} must be a whole number from ${String(min)} to ${String(LONGEST)}, but is ${String(value)}`,
  )
}

/** Checks a lock's name. @throws TypeError or RangeError */
export function checkName(name: unknown): string {
  if (typeof name !== 'string')
    throw new TypeError(`A lock's name must be a string, but is ${describe(name)}`)
  if (name.length === 0) throw new RangeError(`A lock's name must not be empty`)
  if (!name.isWellFormed())
    throw new RangeError(
      `A lock's name must be valid Unicode, but ${JSON.stringify(name)} has a lone surrogate`,
    )
  const bytes = Buffer.byteLength(name)
  if (bytes > 1_024)
    throw new RangeError(`A lock's name must not exceed 1024 bytes in UTF-8, but has ${String(bytes)}`)
  return name
}

/** Checks a duration in milliseconds and rounds fractions up; undefined stays undefined. @throws TypeError or RangeError */
export function duration(value: number | undefined, option: string, range: Range): number | undefined {
  return value === undefined ? undefined : Math.ceil(inRange(value, option, range))
}

/** Refuses keys that no option has: a mistyped `leaseTime` would be dangerous. @throws TypeError */
export function refuseUnknown(options: object, known: ReadonlySet<string>, what: string): void {
  if (typeof options !== 'object' || (options as object | null) === null || Array.isArray(options))
    throw new TypeError(`${what} must be an object, but are ${describe(options)}`)
  for (const key of Object.keys(options)) {
    if (!known.has(key))
      throw new TypeError(`Unknown key '${key}' in ${what}; known are ${[...known].join(', ')}`)
  }
}

/** A value for a message: its kind and, where short, itself. */
export function describe(value: unknown): string {
  if (value === null) return 'null'
  switch (typeof value) {
    case 'string':
      return `the string ${JSON.stringify(value)}`
    case 'number':
    case 'boolean':
    case 'bigint':
    case 'undefined':
      return String(value)
    case 'object':
      return Array.isArray(value) ? 'an array' : 'an object'
    default:
      return `a ${typeof value}`
  }
}

function inRange(value: unknown, option: string, { min, max }: Range): number {
  if (typeof value !== 'number' || Number.isNaN(value))
    throw new TypeError(`${option} must be a number, but is ${describe(value)}`)
  if (value < min || value > max)
    throw new RangeError(`${option} must be from ${String(min)} to ${String(max)}, but is ${String(value)}`)
  return value
}

function text(value: unknown, option: string): string {
  if (typeof value !== 'string' || !value.isWellFormed())
    throw new TypeError(`${option} must be a valid string, but is ${describe(value)}`)
  return value
}

function callable(value: unknown, option: string): (name: string) => string {
  if (typeof value !== 'function')
    throw new TypeError(`${option} must be a function, but is ${describe(value)}`)
  return value as (name: string) => string
}

function subscriberOption(value: unknown): 'auto' | 'off' | object {
  if (value === undefined || value === 'auto') return 'auto'
  if (value === 'off') return 'off'
  if (typeof value === 'object' && value !== null) return value
  throw new TypeError(`subscriber must be 'auto', 'off' or a client, but is ${describe(value)}`)
}

function clockOption(value: unknown): Clock {
  const shape = value as Partial<Clock> | null
  const parts = [shape?.now, shape?.wall, shape?.uptime, shape?.setTimer]
  if (parts.every((part) => typeof part === 'function')) return value as Clock
  throw new TypeError(`clock must be a Clock, but is ${describe(value)}`)
}

/** Checks a signal. @throws TypeError */
export function abortSignal(value: unknown): AbortSignal {
  // By shape: test environments bring classes of their own.
  const shape = value as Partial<AbortSignal> | null
  if (
    typeof shape === 'object' &&
    typeof shape?.aborted === 'boolean' &&
    typeof shape.addEventListener === 'function' &&
    typeof shape.removeEventListener === 'function'
  )
    return value as AbortSignal
  throw new TypeError(`signal must be an AbortSignal, but is ${describe(value)}`)
}

function identity(name: string): string {
  return name
}
