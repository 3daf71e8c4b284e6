import { systemClock, type Clock } from './clock.js'
import {
  abortSignal,
  describe,
  duration,
  inRange,
  LONGEST,
  refuseUnknown,
  type Range,
} from './option-checks.js'
import {
  resolveReplication,
  type ReplicationOptions,
  type ResolvedReplication,
} from './replication-options.js'

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
  /** In a cluster: whether messages go only to the node that has the slot of their name (`SPUBLISH`). All sides must do the same; Redisson's rule by default: yes, if the servers can. @defaultValue `'auto'` */
  readonly shardedPubSub?: 'auto' | 'on' | 'off' | undefined
  /** What a grant waits for where the server has replicas. @defaultValue at least one of them, within a second */
  readonly replication?: ReplicationOptions | undefined
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
  readonly shardedPubSub: 'auto' | 'on' | 'off'
  readonly replication: ResolvedReplication
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
  'shardedPubSub',
  'replication',
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
  const commandTimeout = duration(options.commandTimeout, 'commandTimeout', FROM_ONE) ?? 3_000
  return Object.freeze({
    keyPrefix: options.keyPrefix === undefined ? '' : text(options.keyPrefix, 'keyPrefix'),
    nameMapper: options.nameMapper === undefined ? identity : callable(options.nameMapper, 'nameMapper'),
    lockWatchdogTimeout:
      duration(options.lockWatchdogTimeout, 'lockWatchdogTimeout', { min: 30, max: LONGEST }) ?? 30_000,
    fairLockWaitTimeout: duration(options.fairLockWaitTimeout, 'fairLockWaitTimeout', FROM_ONE) ?? 300_000,
    commandTimeout,
    unavailableAfter: duration(options.unavailableAfter, 'unavailableAfter', TO_INFINITY) ?? 10_000,
    maxHold: duration(options.maxHold, 'maxHold', { min: 1, max: Infinity }) ?? Infinity,
    clockDrift:
      options.clockDrift === undefined
        ? 0.01
        : inRange(options.clockDrift, 'clockDrift', { min: 0, max: 0.5 }),
    subscriber: subscriberOption(options.subscriber),
    shardedPubSub: shardedOption(options.shardedPubSub),
    replication: resolveReplication(options.replication, commandTimeout),
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
  const options = given === undefined ? {} : given
  refuseUnknown(options, WAIT_KEYS, 'wait options')
  const { waitTime, signal, pollInterval } = options
  return {
    waitTimeMs: duration(waitTime, 'waitTime', TO_INFINITY) ?? (trying ? 0 : (settings.waitTime ?? Infinity)),
    signal: signal === undefined ? undefined : abortSignal(signal),
    pollMs: duration(pollInterval, 'pollInterval', FROM_ONE),
  }
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

function shardedOption(value: unknown): 'auto' | 'on' | 'off' {
  if (value === undefined) return 'auto'
  if (value === 'auto' || value === 'on' || value === 'off') return value
  throw new TypeError(`shardedPubSub must be 'auto', 'on' or 'off', but is ${describe(value)}`)
}

function clockOption(value: unknown): Clock {
  const shape = value as Partial<Clock> | null
  const parts = [shape?.now, shape?.wall, shape?.uptime, shape?.setTimer]
  if (parts.every((part) => typeof part === 'function')) return value as Clock
  throw new TypeError(`clock must be a Clock, but is ${describe(value)}`)
}

function identity(name: string): string {
  return name
}
