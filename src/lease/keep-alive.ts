import type { Clock, Timer } from '../clock.js'
import type { MemberLease } from './member.js'

const ignore = (): void => undefined

/** Keeps leases with a lease time alive while the rest of the members is being waited for. */
export class KeepAlive {
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #leases: Iterable<MemberLease>
  #timer: Timer | undefined

  constructor(clock: Clock, leaseMs: number, leases: Iterable<MemberLease>) {
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.#leases = leases
    this.#arm()
  }

  /** Ends it. */
  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    this.#timer = this.#clock.setTimer(
      () => {
        // Whether they are still held is looked at in the end.
        for (const lease of this.#leases) lease.extend(this.#leaseMs).catch(ignore)
        this.#arm()
      },
      this.#leaseMs / 3,
      false,
    )
  }
}
