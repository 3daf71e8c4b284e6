/** Starts listening to a client for changes of its state; returns how to stop. */
export type Attach = (changed: () => void) => () => void

/**
 * Calls back those who wait for a client to leave the state `waiting`. However many wait, the client
 * gets one listener per event, and none while nobody waits.
 */
export class ReadyWatch {
  readonly #isOver: () => boolean
  readonly #attach: Attach
  readonly #waiting = new Set<{ readonly listener: () => void }>()
  #detach: (() => void) | undefined

  /** `isOver` says whether the state has left `waiting`. */
  constructor(isOver: () => boolean, attach: Attach) {
    this.#isOver = isOver
    this.#attach = attach
  }

  /** Calls back once; returns a function that withdraws the listener. */
  add(listener: () => void): () => void {
    const entry = { listener }
    this.#waiting.add(entry)
    this.#detach ??= this.#attach(this.check)
    // The state may have changed before anybody listened.
    queueMicrotask(this.check)
    return () => {
      this.#waiting.delete(entry)
      this.#stopIfIdle()
    }
  }

  /** Looks at the state now. */
  readonly check = (): void => {
    if (!this.#isOver()) return
    const all = [...this.#waiting]
    this.#waiting.clear()
    this.#stopIfIdle()
    for (const { listener } of all) listener()
  }

  #stopIfIdle(): void {
    if (this.#waiting.size > 0) return
    this.#detach?.()
    this.#detach = undefined
  }
}
