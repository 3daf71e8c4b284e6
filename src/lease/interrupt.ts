/** Ends the waiting of one call, once: its caller aborts, or the `Holdfast` is closed. */
export class Interrupt {
  #fired = false
  #reason: unknown = undefined
  #listener: ((reason: unknown) => void) | undefined = undefined

  /** Whether the call was ended. */
  get fired(): boolean {
    return this.#fired
  }

  /** What the call rejects with. */
  get reason(): unknown {
    return this.#reason
  }

  /** Ends the call; only the first reason counts. */
  fire(reason: unknown): void {
    if (this.#fired) return
    this.#fired = true
    this.#reason = reason
    const listener = this.#listener
    this.#listener = undefined
    listener?.(reason)
  }

  /** Sets what the call is waiting for right now; undefined: nothing. A listener set too late is called at once. */
  listen(listener: ((reason: unknown) => void) | undefined): void {
    if (this.#fired) listener?.(this.#reason)
    else this.#listener = listener
  }
}
