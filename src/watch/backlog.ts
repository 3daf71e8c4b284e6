import type { Change } from './change.js'

/** A change on its way to those who hear it. */
export interface Parcel {
  readonly change: Change
  /** Called when all have dealt with it. */
  readonly handled?: (() => Promise<void>) | undefined
}

/**
 * Changes that wait, in order. None is dropped: when it is full, a new change takes the place of the last one of
 * its key that waits, so that it never holds more than its limit and one for each key.
 */
export class Backlog {
  readonly #limit: number
  readonly #waiting: Parcel[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#waiting.length
  }

  push(parcel: Parcel): void {
    const { change } = parcel
    const at = this.#waiting.length < this.#limit ? -1 : this.#lastOf(change.key)
    const older = this.#waiting[at]
    if (older === undefined) {
      this.#waiting.push(parcel)
      return
    }
    const merged = older.change.merged + 1
    this.#waiting.splice(at, 1)
    this.#waiting.push({ ...parcel, change: { ...change, merged } })
  }

  /** The next one, or the next one of a key. */
  take(key?: string): Parcel | undefined {
    if (key === undefined) return this.#waiting.shift()
    const at = this.#waiting.findIndex(({ change }) => change.key === key)
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0]
  }

  clear(): void {
    this.#waiting.length = 0
  }

  #lastOf(key: string): number {
    let at = this.#waiting.length - 1
    while (at >= 0 && this.#waiting[at]?.change.key !== key) at -= 1
    return at
  }
}
