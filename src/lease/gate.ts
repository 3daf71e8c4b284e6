import type { Clock, Timer } from '../clock.js'
import type { Call } from './call.js'
import type { Tenure } from './tenure.js'

/** A local writer that has waited for so long holds back new local readers. */
const PATIENCE_MS = 50
/** While other processes hold the lock, holding back is of no use: then the next time comes later and later. */
const LONGEST_PATIENCE_MS = 5_000
/** When the last local reader has left, a writer gets the lock within this time, or somebody else has it. */
const GRACE_MS = 50
/** For so long a local writer lets waiting local readers go first after a local write. */
const YIELD_MS = 50

/** What a gate works with. */
export interface GateSetting {
  readonly clock: Clock
  /** The longest time for which new readers are held back at a stretch. */
  readonly longestMs: number
  /** Makes the local waiters of that side try again. */
  poke(side: 'read' | 'write'): void
  /** Nobody holds the lock or waits for it. */
  onIdle(): void
}

/**
 * Who of one process goes first at one read/write lock, so that neither side starves the other: a writer that has
 * waited for a while holds back new readers, until those inside have left and it had its chance; after a write,
 * the readers that wait go before the next writer.
 *
 *     open ──a writer has waited 50 ms──▶ holding ──granted, gave up, drained and in vain, or too long──▶ open
 */
export class Gate {
  readonly #setting: GateSetting
  #readers = 0
  #writers = 0
  readonly #waitingReaders = new Set<Call>()
  readonly #waitingWriters = new Set<Call>()
  /** The last that was done here is a write, and no waiting reader has had its chance since. */
  #readersTurn = false
  /** When new readers are held back next. */
  #holdFromMs = Infinity
  #patienceMs = PATIENCE_MS
  #holding: Timer | undefined
  readonly #held = new Set<() => void>()
  readonly #yielding = new Set<() => void>()

  constructor(setting: GateSetting) {
    this.#setting = setting
  }

  /** Somebody of this process has got the lock. */
  entered(side: 'read' | 'write', tenure: Tenure): void {
    if (side === 'read') this.#readers += 1
    else this.#writers += 1
    if (side === 'read') this.readerAnswered()
    tenure.onceOver(() => {
      if (side === 'read') this.#readerLeft()
      else this.#writerLeft()
    })
  }

  /** A reader stands in line from now on. */
  readerWaits(call: Call): void {
    this.#waitingReaders.add(call)
  }

  /** It does no longer. */
  readerGone(call: Call): void {
    this.#waitingReaders.delete(call)
    this.#rest()
  }

  /** A reader has had its chance. */
  readerAnswered(): void {
    this.#readersTurn = false
    letGo(this.#yielding)
  }

  /** A writer has found the lock busy and waits, until its call is over. */
  writerWaits(call: Call): void {
    if (this.#waitingWriters.has(call)) return
    if (this.#waitingWriters.size === 0) this.#holdFromMs = this.#now() + this.#patienceMs
    this.#waitingWriters.add(call)
    call.onEnd = () => {
      this.#waitingWriters.delete(call)
      if (this.#waitingWriters.size === 0) this.#writersServed()
      this.#rest()
    }
  }

  /** Whether new readers have to wait for a writer of this process. */
  holdsBack(): boolean {
    if (this.#waitingWriters.size === 0 || this.#readersTurn) return false
    if (this.#holding !== undefined) return true
    if (this.#now() < this.#holdFromMs) return false
    this.#hold(this.#readers === 0 ? GRACE_MS : this.#setting.longestMs)
    return true
  }

  /** Waits until readers are not held back any more, or the call's own waiting is over. */
  async admission(call: Call): Promise<void> {
    while (this.holdsBack() && !call.fired && !call.overdue)
      await rest(call, { clock: this.#setting.clock, ms: Infinity, waiting: this.#held })
  }

  /** Waits until the readers that stand in line after a write have had their chance, but not for long. */
  async yieldToReaders(call: Call): Promise<void> {
    if (!this.#readersTurn || this.#writers > 0 || this.#waitingReaders.size === 0) return
    await rest(call, { clock: this.#setting.clock, ms: YIELD_MS, waiting: this.#yielding })
    this.#readersTurn = false
  }

  #now(): number {
    return this.#setting.clock.now()
  }

  #readerLeft(): void {
    this.#readers -= 1
    if (this.#readers === 0 && this.#waitingWriters.size > 0) {
      if (this.#holding !== undefined) this.#hold(GRACE_MS)
      this.#pokeSoon('write')
    }
    this.#rest()
  }

  #writerLeft(): void {
    this.#writers -= 1
    this.#readersTurn = this.#waitingReaders.size > 0
    if (this.#readersTurn) this.#pokeSoon('read')
    this.#rest()
  }

  // Not before the release is on its way, which is sent in this turn.
  #pokeSoon(side: 'read' | 'write'): void {
    queueMicrotask(() => {
      this.#setting.poke(side)
    })
  }

  #hold(ms: number): void {
    this.#holding?.cancel()
    this.#holding = this.#setting.clock.setTimer(
      () => {
        // In vain: somebody else has the lock, or readers of this process that take their time.
        this.#patienceMs = Math.min(this.#patienceMs * 2, LONGEST_PATIENCE_MS)
        this.#openUp()
        this.#rest()
      },
      ms,
      true,
    )
  }

  #writersServed(): void {
    this.#patienceMs = PATIENCE_MS
    this.#openUp()
    this.#holdFromMs = Infinity
  }

  #openUp(): void {
    this.#holding?.cancel()
    this.#holding = undefined
    this.#holdFromMs = this.#now() + this.#patienceMs
    letGo(this.#held)
  }

  #rest(): void {
    const inside = this.#readers + this.#writers
    const waiting =
      this.#waitingReaders.size + this.#waitingWriters.size + this.#held.size + this.#yielding.size
    if (inside + waiting === 0) this.#setting.onIdle()
  }
}

function letGo(waiting: Set<() => void>): void {
  for (const settle of [...waiting]) settle()
}

/** A pause of a call: it ends after a time, when it is told to, or when the call's own waiting is over. */
export function rest(
  call: Call,
  terms: { readonly clock: Clock; readonly ms: number; readonly waiting?: Set<() => void> },
): Promise<void> {
  const { clock, ms, waiting } = terms
  return new Promise((resolve) => {
    let timer: Timer | undefined = undefined
    const settle = (): void => {
      timer?.cancel()
      call.listen(undefined)
      waiting?.delete(settle)
      resolve()
    }
    waiting?.add(settle)
    const restMs = Math.min(ms, call.deadlineMs - clock.now())
    if (restMs !== Infinity) timer = clock.setTimer(settle, Math.max(0, restMs), true)
    call.listen(settle)
  })
}
