import { diagnose } from '../diagnostics.js'
import { Backlog, type Parcel } from './backlog.js'
import type { Change, WatchCallback, WatchErrorCallback, WatchEvent } from './change.js'
import type { ResolvedWatchOptions } from './watch-options.js'

type Run = (work: () => Promise<void>) => Promise<void>

/**
 * The callbacks of a watch. All for one change are started in order and awaited together; the next change of the
 * same key waits for them, those of other keys do not.
 */
export class Callbacks {
  readonly #title: string
  readonly #backlog: Backlog
  readonly #of: Readonly<Record<WatchEvent, WatchCallback[]>> = { change: [], delete: [], expire: [] }
  readonly #forErrors: WatchErrorCallback[] = []
  readonly #busy = new Set<string>()
  #onIdle: (() => void)[] = []
  #warned = false

  constructor(title: string, limit: number) {
    this.#title = title
    this.#backlog = new Backlog(limit)
  }

  /** How many there are, those for errors not counted. */
  get size(): number {
    return this.#of.change.length + this.#of.delete.length + this.#of.expire.length
  }

  add(event: WatchEvent | 'error', callback: WatchCallback | WatchErrorCallback): void {
    this.#listFor(event).push(callback)
  }

  remove(event: WatchEvent | 'error', callback: WatchCallback | WatchErrorCallback): void {
    const list = this.#listFor(event)
    const at = list.lastIndexOf(callback)
    if (at >= 0) list.splice(at, 1)
  }

  /** Calls those for this change now, or when the key's earlier ones are done. `run` calls them in a surrounding. */
  push(parcel: Parcel, run: Run): void {
    const { key } = parcel.change
    this.#backlog.push(parcel)
    if (this.#busy.has(key)) return
    this.#busy.add(key)
    void this.#work(key, run)
  }

  /** Forgets the changes for which no callback was called yet. */
  forget(): void {
    this.#backlog.clear()
  }

  /** Resolves when no callback runs. */
  idle(): Promise<void> {
    if (this.#busy.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  /** Tells of an error; never throws. */
  report(error: unknown, change: Change | undefined): void {
    const why = error instanceof Error ? error.message : String(error)
    const what = change === undefined ? 'cannot look' : `a callback for '${change.key}' failed`
    const message = `The watch of ${this.#title}: ${what}: ${why}`
    diagnose(this.#title, change === undefined ? 'watch-trouble' : 'watch-callback', message)
    if (this.#forErrors.length === 0) this.#warnOnce(message)
    for (const callback of [...this.#forErrors]) {
      Promise.resolve()
        .then(() => callback(error, change))
        .catch((second: unknown) => {
          this.#warnOnce(`The watch of ${this.#title}: onError itself failed: ${String(second)}`)
        })
    }
  }

  async #work(key: string, run: Run): Promise<void> {
    for (let parcel = this.#backlog.take(key); parcel !== undefined; parcel = this.#backlog.take(key)) {
      const { change, handled } = parcel
      try {
        await run(() => this.#call(change))
        await handled?.()
      } catch (error) {
        this.report(error, change)
      }
    }
    this.#busy.delete(key)
    if (this.#busy.size > 0) return
    const waiting = this.#onIdle
    this.#onIdle = []
    for (const resolve of waiting) resolve()
  }

  async #call(change: Change): Promise<void> {
    const isolated = async (callback: WatchCallback): Promise<void> => {
      try {
        await callback(change)
      } catch (error) {
        this.report(error, change)
      }
    }
    await Promise.all([...this.#of[change.event]].map(isolated))
  }

  #listFor(event: WatchEvent | 'error'): (WatchCallback | WatchErrorCallback)[] {
    // Callbacks are called with what belongs to their event; the lists differ by that only.
    return event === 'error' ? this.#forErrors : this.#of[event]
  }

  #warnOnce(message: string): void {
    if (this.#warned) return
    this.#warned = true
    process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_WATCH' })
  }
}

/** The callbacks that were given with the options. */
export function callbacksOf(title: string, options: ResolvedWatchOptions): Callbacks {
  const callbacks = new Callbacks(title, options.buffer)
  for (const callback of options.onChange) callbacks.add('change', callback)
  for (const callback of options.onDelete) callbacks.add('delete', callback)
  for (const callback of options.onExpire) callbacks.add('expire', callback)
  for (const callback of options.onError) callbacks.add('error', callback)
  return callbacks
}
