/** Bounds of a number, both inclusive. */
export interface Range {
  readonly min: number
  readonly max: number
}

/** The largest number of milliseconds that there may be. */
export const LONGEST: number = Number.MAX_SAFE_INTEGER

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

/** Checks a number. @throws TypeError or RangeError naming the option, its bounds and the value */
export function inRange(value: unknown, option: string, { min, max }: Range): number {
  if (typeof value !== 'number' || Number.isNaN(value))
    throw new TypeError(`${option} must be a number, but is ${describe(value)}`)
  if (value < min || value > max)
    throw new RangeError(`${option} must be from ${String(min)} to ${String(max)}, but is ${String(value)}`)
  return value
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
