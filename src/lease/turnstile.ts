import type { Clock, Timer } from '../clock.js'
import type { Interrupt } from './interrupt.js'

/** How waiting for a turn ended. */
export type Turn = 'entered' | 'closed' | 'timeout' | 'interrupted'

/**
 * Lets one at a time of a lease's nested holders in, in the order of their coming: siblings under
 * `Promise.all` take turns although they share an owner.
 */
export class Turnstile {
  #busy = false
  #closed: boolean
  readonly #waiting = new Set<(turn: Turn) => void>()

  /** A turnstile that is not open lets nobody in. */
  constructor(open: boolean) {
    this.#closed = !open
  }

  /** Enters if nobody is inside and nobody waits. */
  tryEnter(): boolean {
    if (this.#busy || this.#closed) return false
    this.#busy = true
    return true
  }

  /** Whether it was closed: there is nothing to enter any more. */
  get closed(): boolean {
    return this.#closed
  }

  /** Waits for a turn. */
  enter(terms: {
    readonly clock: Clock
    readonly waitMs: number
    readonly interrupt: Interrupt
  }): Promise<Turn> {
    if (this.#closed) return Promise.resolve('closed')
    if (this.tryEnter()) return Promise.resolve('entered')
    return new Promise((resolve) => {
      let timer: Timer | undefined = undefined
      const settle = (turn: Turn): void => {
        timer?.cancel()
        terms.interrupt.listen(undefined)
        this.#waiting.delete(settle)
        resolve(turn)
      }
      this.#waiting.add(settle)
      if (terms.waitMs !== Infinity)
        timer = terms.clock.setTimer(
          () => {
            settle('timeout')
          },
          terms.waitMs,
          true,
        )
      terms.interrupt.listen(() => {
        settle('interrupted')
      })
    })
  }

  /** Lets the next one in. */
  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#busy = false
    else next('entered')
  }

  /** The lease is over: whoever waits must look elsewhere. */
  close(): void {
    this.#closed = true
    for (const settle of [...this.#waiting]) settle('closed')
  }
}
