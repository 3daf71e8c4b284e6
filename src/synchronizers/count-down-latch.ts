import { diagnose, events } from '../diagnostics.js'
import { EngineError } from '../engine/engine.js'
import { ClosedError, WaitTimeoutError } from '../errors.js'
import type { Runtime } from '../lease/runtime.js'
import { wholeNumber } from '../option-checks.js'
import { resolveWaitOptions, type WaitOptions } from '../options.js'
import { LatchGate, LatchWait, lookFailed } from './latch-gate.js'
import { ask, change, REQUEST_MS, type Send, type Subject } from './request.js'

/**
 * A count that opens at zero for everybody who waits, on the same key as Redisson's `RCountDownLatch`. A latch whose
 * count was never set, was set to zero, was counted down to zero, or was deleted is open, and can be set: they are the
 * same in Redis.
 */
export interface CountDownLatch {
  /** The name, as it was given. */
  readonly name: string
  /**
   * Sets the count of a latch that is open; resolves to whether it did. With 0 the latch stays open. With
   * `outcome: 'unknown'` it may have: others may count on it already, so it stays. Do it again; false means that there
   * is a count, too. @throws UnavailableError, WrongTypeError, ClosedError; RangeError outside 0…2^53−1
   */
  trySetCount(count: number): Promise<boolean>
  /**
   * Counts down by one and resolves to what is left; an open latch stays open. Counted at most once: a call that
   * rejects with `outcome: 'unknown'` is undone in the background, unless it opened the latch or the next round began.
   * @throws UnavailableError, WrongTypeError, ClosedError
   */
  countDown(): Promise<number>
  /** How often it has still to be counted down; 0: it is open. @throws UnavailableError, WrongTypeError, ClosedError */
  getCount(): Promise<number>
  /**
   * Waits until the latch is open, by default until `signal` aborts.
   * @throws WaitTimeoutError when `waitTime` is over, UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  wait(options?: WaitOptions): Promise<void>
  /**
   * Whether the latch is open, or opens within `waitTime`.
   * @throws UnavailableError, WrongTypeError, ClosedError, or the signal's reason
   */
  tryWait(options?: WaitOptions): Promise<boolean>
  /**
   * Removes the latch and lets everybody go who waits, here and in Java; resolves to whether there was one. With
   * `outcome: 'unknown'` it may have: do it again. @throws UnavailableError, WrongTypeError, ClosedError
   */
  delete(): Promise<boolean>
}

/** What every change carries. */
interface Noted {
  readonly name: string
  readonly request: string
  readonly requestMs: number
}

/** The object behind the interface. Cheap: no I/O and no registration until used. */
export class CountedLatch implements CountDownLatch {
  readonly #runtime: Runtime
  readonly #subject: Subject

  constructor(runtime: Runtime, target: { readonly name: string; readonly title: string }) {
    this.#runtime = runtime
    this.#subject = { what: 'Latch', ...target }
  }

  get name(): string {
    return this.#subject.title
  }

  async trySetCount(count: number): Promise<boolean> {
    const whole = wholeNumber(count, 'count', 0)
    const on = this.#request()
    const { outcome } = await this.#change(on, (passage, terms) =>
      this.#runtime.commands.send({ op: 'latch.set', ...on, count: whole }, passage, terms),
    )
    this.#told(outcome)
    return outcome !== 'kept'
  }

  async countDown(): Promise<number> {
    const on = this.#request()
    const reply = await this.#change(on, (passage, terms) =>
      this.#runtime.commands.send({ op: 'latch.countDown', ...on }, passage, terms),
    )
    this.#told(reply.outcome)
    return reply.outcome === 'counted' ? reply.left : 0
  }

  async getCount(): Promise<number> {
    const { commands } = this.#runtime
    const { name } = this.#subject
    const reply = await ask(this.#runtime, this.#subject, (passage, terms) =>
      commands.send({ op: 'latch.inspect', name }, passage, terms),
    )
    return reply.outcome === 'counted' ? Math.max(reply.count, 0) : 0
  }

  async wait(options?: WaitOptions): Promise<void> {
    const waiter = this.#waiter(options, false)
    if (await this.#wait(waiter)) return
    const { waitTimeMs } = waiter.options
    const left = waiter.count === undefined ? '' : `: ${String(waiter.count)} to go,`
    throw new WaitTimeoutError(this.name, waitTimeMs, `Latch '${this.name}' is still shut${left}`)
  }

  async tryWait(options?: WaitOptions): Promise<boolean> {
    return this.#wait(this.#waiter(options, true))
  }

  async delete(): Promise<boolean> {
    const on = this.#request()
    const { outcome } = await this.#change(on, (passage, terms) =>
      this.#runtime.commands.send({ op: 'latch.delete', ...on }, passage, terms),
    )
    this.#told(outcome)
    return outcome !== 'missing'
  }

  #waiter(options: WaitOptions | undefined, trying: boolean): LatchWait {
    const { settings, clock } = this.#runtime
    const resolved = resolveWaitOptions(options, settings, trying)
    if (resolved.signal?.aborted === true) throw resolved.signal.reason
    if (this.#runtime.closing) throw new ClosedError(this.name)
    return new LatchWait(this.name, resolved, clock)
  }

  async #wait(waiter: LatchWait): Promise<boolean> {
    const runtime = this.#runtime
    const { title: lock, options } = waiter
    if (events.start.hasSubscribers) events.start.publish({ lock, waitTime: options.waitTimeMs })
    runtime.begin(waiter)
    const gate = this.#gate()
    try {
      const end = await gate.pass(waiter)
      return publishEnd(waiter, this.#judged(waiter, gate, end))
    } catch (error) {
      publishFailure(waiter, error)
      throw error
    } finally {
      runtime.finish(waiter)
    }
  }

  /** The end of the waiting: the last cause decides. */
  #judged(waiter: LatchWait, gate: LatchGate, end: 'open' | 'over'): boolean {
    if (waiter.fired) throw waiter.reason
    if (end === 'open') return true
    if (gate.trouble !== undefined) throw lookFailed(this.#subject, gate.trouble)
    if (waiter.count === undefined)
      throw lookFailed(this.#subject, new EngineError('No answer in time', UNSERVED))
    return false
  }

  #gate(): LatchGate {
    const runtime = this.#runtime
    const { name } = this.#subject
    return runtime.gathering(`latch ${name}`, (onEmpty) => {
      const topic = { family: 'latch', name } as const
      const read: Look = (passage, terms) =>
        runtime.commands.send({ op: 'latch.inspect', name }, passage, terms)
      return new LatchGate(runtime, { subject: this.#subject, topic, read, onEmpty })
    })
  }

  #request(): Noted {
    return { name: this.#subject.name, request: this.#runtime.newOwner(), requestMs: REQUEST_MS }
  }

  #change<R extends { readonly outcome: string }>(
    on: Noted,
    send: Send<R>,
  ): Promise<Exclude<R, { readonly outcome: 'foreign' | 'dead' }>> {
    return change(this.#runtime, this.#subject, {
      send,
      undo: (passage, terms) => this.#runtime.commands.send({ op: 'latch.cancel', ...on }, passage, terms),
    })
  }

  #told(outcome: string): void {
    if (outcome === 'unannounced')
      diagnose(
        this.name,
        'unannounced',
        'The server refused to publish the count; waiters find out by polling',
      )
  }
}

type Look = ConstructorParameters<typeof LatchGate>[1]['read']

const UNSERVED = { kind: 'unavailable', outcome: 'not-applied' } as const

function publishEnd(waiter: LatchWait, open: boolean): boolean {
  const { title: lock, waitedMs: waited } = waiter
  if (open && events.granted.hasSubscribers) events.granted.publish({ lock, owner: '', waited, holdCount: 0 })
  if (!open && events.timeout.hasSubscribers) events.timeout.publish({ lock, waited })
  return open
}

function publishFailure(waiter: LatchWait, error: unknown): void {
  const { title: lock, waitedMs: waited } = waiter
  if (waiter.fired) {
    if (events.aborted.hasSubscribers) events.aborted.publish({ lock, waited, reason: error })
  } else if (events.failed.hasSubscribers) events.failed.publish({ lock, waited, error })
}
