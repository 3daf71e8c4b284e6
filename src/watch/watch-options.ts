import { globMistake } from '../glob.js'
import type { ExclusiveLock } from '../locks/holder-lock.js'
import { abortSignal, describe, duration, refuseUnknown } from '../option-checks.js'
import type { WatchCallback, WatchErrorCallback } from './change.js'

/** What to watch: a key, several, or all that fit a pattern in Redis' glob syntax. */
export type WatchKeys = string | readonly string[] | WatchPattern

/** All keys that fit. */
export interface WatchPattern {
  /** In Redis' glob syntax: `*`, `?`, `[abc]`, `\` before a character that is meant itself. */
  readonly pattern: string
}

/** How to watch. All times are milliseconds. */
export interface WatchOptions {
  /** Called when a value has changed or a key was made. Several at once are started in order. */
  readonly onChange?: WatchCallback | readonly WatchCallback[] | undefined
  /** Called when a key was removed. */
  readonly onDelete?: WatchCallback | readonly WatchCallback[] | undefined
  /** Called when a key's time was over. */
  readonly onExpire?: WatchCallback | readonly WatchCallback[] | undefined
  /** Called when a callback failed, and once for each time of trouble in which the watch cannot look. @defaultValue one process warning for each watch */
  readonly onError?: WatchErrorCallback | readonly WatchErrorCallback[] | undefined
  /** Between two looks while polling; ten of it between two checks while the server tells of writes. 10…2^53−1. @defaultValue 1 000 */
  readonly interval?: number | undefined
  /** `off`: poll even if the server tells of writes. @defaultValue `'auto'` */
  readonly notifications?: 'auto' | 'off' | undefined
  /** Values up to so many bytes are compared whole, larger ones by a sample. 0…2^53−1. @defaultValue 65 536 */
  readonly exactUpTo?: number | undefined
  /** How many changes may wait for busy callbacks, or in an iterator; then those of one key are merged. 1…2^53−1. @defaultValue 1 000 */
  readonly buffer?: number | undefined
  /** Ends the watch. An iteration rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Whether a watch with callbacks keeps the process alive. An iteration that waits always does. @defaultValue true */
  readonly keepAlive?: boolean | undefined
  /** Callbacks run in one process only: that which holds this lock. A watch needs one of its own. @defaultValue none: in every process */
  readonly under?: ExclusiveLock | undefined
}

/** Watch options, checked. */
export interface ResolvedWatchOptions {
  readonly onChange: readonly WatchCallback[]
  readonly onDelete: readonly WatchCallback[]
  readonly onExpire: readonly WatchCallback[]
  readonly onError: readonly WatchErrorCallback[]
  readonly intervalMs: number
  readonly notifications: 'auto' | 'off'
  readonly exactBytes: number
  readonly buffer: number
  readonly signal: AbortSignal | undefined
  readonly keepAlive: boolean
  readonly under: ExclusiveLock | undefined
}

const LONGEST = Number.MAX_SAFE_INTEGER
const KNOWN: ReadonlySet<string> = new Set<keyof WatchOptions>([
  'onChange',
  'onDelete',
  'onExpire',
  'onError',
  'interval',
  'notifications',
  'exactUpTo',
  'buffer',
  'signal',
  'keepAlive',
  'under',
])

/** Checks the options of a watch and fills in the defaults. @throws TypeError or RangeError naming the option */
export function resolveWatchOptions(options: WatchOptions = {}): ResolvedWatchOptions {
  refuseUnknown(options, KNOWN, 'watch options')
  return {
    onChange: callbacks(options.onChange, 'onChange'),
    onDelete: callbacks(options.onDelete, 'onDelete'),
    onExpire: callbacks(options.onExpire, 'onExpire'),
    onError: callbacks(options.onError, 'onError'),
    intervalMs: options.interval === undefined ? 1_000 : checkInterval(options.interval),
    notifications: notificationsOption(options.notifications),
    exactBytes: duration(options.exactUpTo, 'exactUpTo', { min: 0, max: LONGEST }) ?? 65_536,
    buffer: duration(options.buffer, 'buffer', { min: 1, max: LONGEST }) ?? 1_000,
    signal: options.signal === undefined ? undefined : abortSignal(options.signal),
    keepAlive: keepAliveOption(options.keepAlive),
    under: options.under === undefined ? undefined : lockOption(options.under),
  }
}

/** Checks an interval. @throws TypeError or RangeError */
export function checkInterval(value: number): number {
  // Not undefined here, so that there is a result.
  return duration(value, 'interval', { min: 10, max: LONGEST }) ?? value
}

/** Checks what to watch: the pattern, or the keys without doubles. @throws TypeError or RangeError */
export function resolveWatchKeys(keys: WatchKeys): string | readonly string[] {
  if (typeof keys === 'string') return [checkKey(keys)]
  if (isList(keys)) {
    if (keys.length === 0) throw new RangeError('There must be at least one key to watch')
    return [...new Set(keys.map(checkKey))]
  }
  if (typeof keys !== 'object' || (keys as object | null) === null)
    throw new TypeError(`What is watched must be a key, keys or { pattern }, but is ${describe(keys)}`)
  refuseUnknown(keys, new Set(['pattern']), 'what is watched')
  const pattern = checkKey(keys.pattern, 'A pattern')
  const mistake = globMistake(pattern)
  if (mistake !== undefined) throw new RangeError(`The pattern ${JSON.stringify(pattern)} is bad: ${mistake}`)
  return pattern
}

/** Checks the callback of `on`. @throws TypeError */
export function checkCallback<F>(value: F, what: string): F {
  if (typeof value === 'function') return value
  throw new TypeError(`${what} must be a function, but is ${describe(value)}`)
}

function isList(keys: WatchKeys): keys is readonly string[] {
  return Array.isArray(keys)
}

function checkKey(value: unknown, what: unknown = 'A key'): string {
  const name = typeof what === 'string' ? what : 'A key'
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string, but is ${describe(value)}`)
  if (value.length === 0) throw new RangeError(`${name} must not be empty`)
  if (!value.isWellFormed())
    throw new RangeError(`${name} must be valid Unicode, but ${JSON.stringify(value)} has a lone surrogate`)
  return value
}

function callbacks<F>(value: F | readonly F[] | undefined, option: string): readonly F[] {
  if (value === undefined) return []
  const list: readonly F[] = Array.isArray(value) ? (value as readonly F[]) : [value as F]
  return list.map((callback) => checkCallback(callback, option))
}

function notificationsOption(value: unknown): 'auto' | 'off' {
  if (value === undefined || value === 'auto') return 'auto'
  if (value === 'off') return 'off'
  throw new TypeError(`notifications must be 'auto' or 'off', but is ${describe(value)}`)
}

function keepAliveOption(value: unknown): boolean {
  if (value === undefined) return true
  if (typeof value === 'boolean') return value
  throw new TypeError(`keepAlive must be a boolean, but is ${describe(value)}`)
}

function lockOption(value: unknown): ExclusiveLock {
  const shape = value as Partial<ExclusiveLock> | null
  if (
    typeof shape === 'object' &&
    typeof shape?.acquire === 'function' &&
    typeof shape.tryAcquire === 'function'
  )
    return value as ExclusiveLock
  throw new TypeError(`under must be a lock, but is ${describe(value)}`)
}
