import { Backlog } from './backlog.js'
import type { Change } from './change.js'

interface Asking {
  resolve(result: IteratorResult<Change, undefined>): void
  reject(reason: Error): void
}

/** How an iteration is over: at its end, or with a reason to reject with. */
export type Over = { readonly reason: unknown } | 'done'

const DONE: IteratorResult<Change, undefined> = { done: true, value: undefined }

/** One iteration over the changes of a watch. It buffers from its start on. */
export class Changes implements AsyncIterableIterator<Change, undefined> {
  readonly #backlog: Backlog
  readonly #asking: Asking[] = []
  readonly #onWaiting: () => void
  readonly #onLeave: (changes: Changes) => void
  #over: Over | undefined

  /** `onWaiting` is told when somebody begins or ends to wait; `onLeave` when the loop was left. */
  constructor(limit: number, on: { onWaiting(): void; onLeave(changes: Changes): void }) {
    this.#backlog = new Backlog(limit)
    this.#onWaiting = () => {
      on.onWaiting()
    }
    this.#onLeave = (changes) => {
      on.onLeave(changes)
    }
  }

  /** Whether somebody waits for the next change. */
  get waiting(): boolean {
    return this.#asking.length > 0
  }

  push(change: Change): void {
    const asking = this.#asking.shift()
    if (asking === undefined) {
      this.#backlog.push({ change })
      return
    }
    asking.resolve({ done: false, value: change })
    this.#onWaiting()
  }

  /** Ends it for whoever waits or comes later; what was buffered is gone. */
  end(over: Over): void {
    this.#over ??= over
    this.#backlog.clear()
    const [first, ...rest] = this.#asking.splice(0)
    if (first !== undefined) this.#finish(first)
    for (const asking of rest) asking.resolve(DONE)
  }

  next(): Promise<IteratorResult<Change, undefined>> {
    const parcel = this.#backlog.take()
    if (parcel !== undefined) return Promise.resolve({ done: false, value: parcel.change })
    return new Promise((resolve, reject) => {
      const asking = { resolve, reject }
      if (this.#over !== undefined) {
        this.#finish(asking)
        return
      }
      this.#asking.push(asking)
      this.#onWaiting()
    })
  }

  return(): Promise<IteratorResult<Change, undefined>> {
    this.end('done')
    this.#onLeave(this)
    return Promise.resolve(DONE)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Rejects once; after that it is simply over. */
  #finish(asking: Asking): void {
    const over = this.#over
    this.#over = 'done'
    if (over === undefined || over === 'done') asking.resolve(DONE)
    // The caller's own reason, whatever it is.
    else asking.reject(over.reason as Error)
  }
}
