import { HeldLease } from '../lease/lease.js'
import type { Runtime } from '../lease/runtime.js'
import type { Target } from '../lease/target.js'
import { wallOffset, type Tenure } from '../lease/tenure.js'

/**
 * The leases of this process that some permits belong to, while these are given back or changed by their ids: a lease
 * must not be believed in when one of its permits is not out any more.
 */
export class PermitHolders {
  readonly #runtime: Runtime
  readonly #tenures: readonly Tenure[]
  readonly #sentAtMs: number
  readonly #wallOffsetMs: number

  constructor(runtime: Runtime, target: Target, ids: readonly string[]) {
    const wanted = new Set(ids)
    this.#runtime = runtime
    this.#sentAtMs = runtime.clock.now()
    this.#wallOffsetMs = wallOffset(runtime.clock)
    this.#tenures = runtime.watchdog
      .tenures()
      .filter(
        (tenure) =>
          tenure.target.family === 'permits' &&
          tenure.target.name === target.name &&
          tenure.owner.split(',').some((id) => wanted.has(id)),
      )
  }

  /** The engine is about to be asked to give the permits back: whether they are held can't be told until it has answered. */
  doubt(): void {
    for (const tenure of this.#tenures) tenure.suspect()
  }

  /** It may have left them alone: it is asked for each lease. */
  askAgain(): void {
    for (const tenure of this.#tenures) this.#runtime.watchdog.confirmSoon(tenure)
  }

  /** None of the permits is out any more. */
  lose(): void {
    const { clock } = this.#runtime
    for (const tenure of this.#tenures) {
      // Whoever gave them back knows of it: no warning that nobody looked.
      for (const lease of leasesOf(tenure)) lease.reported = true
      tenure.lose(clock.now() < tenure.deadlineMs ? 'stolen' : 'expired')
    }
  }

  /** The engine is about to be asked to let a permit expire in `ms`: a lease that would last longer gives up by then. */
  shorten(ms: number): void {
    const { watchdog } = this.#runtime
    for (const tenure of this.#tenures) {
      if (tenure.watched > 0 && ms >= watchdog.timeoutMs) continue
      letExpire(tenure)
      tenure.cut(ms)
      watchdog.watch(tenure)
    }
  }

  /** The permit expires in `ms`, counted from the asking; that is all that is to know of a lease of this permit alone. */
  updated(ttlMs: number): void {
    for (const tenure of this.#tenures) {
      if (tenure.owner.includes(',')) continue
      tenure.confirm({ sentAtMs: this.#sentAtMs, wallOffsetMs: this.#wallOffsetMs, ttlMs })
      letExpire(tenure)
      this.#runtime.watchdog.watch(tenure)
    }
  }
}

function letExpire(tenure: Tenure): void {
  for (const lease of leasesOf(tenure)) lease.letExpire()
}

function leasesOf({ members }: Tenure): readonly HeldLease[] {
  return members.filter((member) => member instanceof HeldLease)
}
