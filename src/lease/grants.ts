/** Something taken without an owner, until it is given back. */
export interface Grant {
  /** Whether a callback works under it. */
  readonly running: boolean
  /** Gives it back. Never rejects. */
  release(): Promise<unknown>
}

/** What one `Holdfast` has taken and has to give back by itself: nothing in the server does that for it. */
export class Grants {
  readonly #open = new Set<Grant>()
  #onEmpty: (() => void) | undefined

  /** How many there are. */
  get size(): number {
    return this.#open.size
  }

  /** Registers one. */
  add(grant: Grant): void {
    this.#open.add(grant)
  }

  /** It was given back. */
  remove(grant: Grant): void {
    this.#open.delete(grant)
    if (this.#open.size === 0) this.#onEmpty?.()
  }

  /** Resolves when there are none. */
  empty(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#open.size === 0) resolve()
      else this.#onEmpty = resolve
    })
  }

  /** Gives back all that no callback works under. */
  async evict(): Promise<void> {
    const idle = [...this.#open].filter(({ running }) => !running)
    await Promise.all(idle.map((grant) => grant.release()))
  }
}
