/** Small tools for things that happen at the same time. */

/** A promise to be opened by hand. */
export class Door {
  readonly opened: Promise<void>
  #open: () => void = () => undefined

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#open()
  }
}

/** Whether, and how, a promise has settled by now. */
export class Watched<T> {
  readonly promise: Promise<T>
  state: 'pending' | 'fulfilled' | 'rejected' = 'pending'

  constructor(promise: Promise<T>) {
    this.promise = promise
    promise.then(
      () => (this.state = 'fulfilled'),
      () => (this.state = 'rejected'),
    )
  }
}

/** How many were inside at once, at most, and how many came through. */
export class Gauge {
  most = 0
  total = 0
  #inside = 0

  async through(work: () => Promise<unknown>): Promise<void> {
    this.#inside += 1
    this.most = Math.max(this.most, this.#inside)
    await work()
    this.#inside -= 1
    this.total += 1
  }
}

/** Some turns of the event loop: promises that need nothing but turns have settled then. */
export async function turns(count = 3): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}
