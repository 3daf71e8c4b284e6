import type { Timer } from '../clock.js'
import { diagnose, events, type WakeupEvent } from '../diagnostics.js'
import { EngineError, newPassage, type Hint, type Subscription, type Topic } from '../engine/engine.js'
import type { CountReply } from '../engine/operations.js'
import { Wait } from '../lease/call.js'
import { nextPause, worthRetrying } from '../lease/commands.js'
import { Interrupt } from '../lease/interrupt.js'
import type { Runtime } from '../lease/runtime.js'
import type { ResolvedWaitOptions } from '../options.js'
import { PollPlan } from './poll-plan.js'
import { failure, trouble, wrongType, type Send, type Subject } from './request.js'

const TROUBLE_MS = 50

type Cause = WakeupEvent['cause']
/** How waiting ended: the latch is open, time is over or the caller interrupted it, or it failed. */
type End = 'open' | 'over' | Error

/** One caller before the gate. */
export class LatchWait extends Wait<ResolvedWaitOptions> {
  /** What the last look saw that was begun after this call. */
  count: number | undefined = undefined
  settle: ((end: End) => void) | undefined = undefined
}

/** What a gate works with. */
export interface LatchGateSetting {
  readonly subject: Subject
  readonly topic: Topic
  readonly read: Send<CountReply>
  /** The last caller has left. */
  readonly onEmpty: () => void
}

/**
 * The callers of one process that wait for one latch: they share a subscription and every look. Each message,
 * whatever it says, and some time without one lead to a look; at zero all go through that it was made for.
 */
export class LatchGate {
  /** What the last look failed with. */
  trouble: EngineError | undefined = undefined
  readonly #runtime: Runtime
  readonly #setting: LatchGateSetting
  readonly #polls = new PollPlan()
  readonly #waiting = new Set<LatchWait>()
  #due: Cause | 'new' | undefined
  #look: Interrupt | undefined
  #troubleSinceMs: number | undefined
  #troublePauseMs = TROUBLE_MS
  #quietUntilMs = 0
  #subscription: Subscription | undefined
  #timer: Timer | undefined

  constructor(runtime: Runtime, setting: LatchGateSetting) {
    this.#runtime = runtime
    this.#setting = setting
  }

  /** Waits. */
  async pass(waiter: LatchWait): Promise<'open' | 'over'> {
    const { clock, commands } = this.#runtime
    const end = await new Promise<End>((resolve) => {
      const untilMs = Math.max(waiter.deadlineMs, waiter.attemptDeadline(commands.timeoutMs))
      const over = (): void => {
        this.#end(waiter, 'over')
      }
      const timer = untilMs === Infinity ? undefined : clock.setTimer(over, untilMs - clock.now(), true)
      waiter.settle = (result) => {
        timer?.cancel()
        waiter.listen(undefined)
        resolve(result)
      }
      this.#waiting.add(waiter)
      this.#due ??= 'new'
      waiter.listen(over)
      this.#dispatch()
    })
    if (end instanceof Error) throw end
    return end
  }

  #end(waiter: LatchWait, end: End): void {
    if (!this.#waiting.delete(waiter)) return
    waiter.settle?.(end)
    if (this.#waiting.size > 0) return
    // Nobody needs the answer any more.
    this.#look?.fire(undefined)
    this.#timer?.cancel()
    this.#subscription?.close()
    this.#subscription = undefined
    this.#setting.onEmpty()
  }

  #dispatch(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#look !== undefined || this.#waiting.size === 0) return
    const nowMs = this.#runtime.clock.now()
    if (this.#due !== undefined && nowMs >= this.#quietUntilMs) this.#read(this.#due)
    else this.#plan(nowMs)
  }

  #plan(nowMs: number): void {
    const quietMs = this.#quietUntilMs - nowMs
    const delayMs = quietMs > 0 ? quietMs : this.#polls.plan(nowMs, this.#waiting)
    this.#timer = this.#runtime.clock.setTimer(
      () => {
        if (quietMs <= 0 && this.#polls.restMs(this.#runtime.clock.now()) <= 0) this.#due ??= 'poll'
        this.#dispatch()
      },
      delayMs,
      true,
    )
  }

  #read(cause: Cause | 'new'): void {
    const { clock, commands } = this.#runtime
    this.#due = undefined
    if (cause !== 'new' && events.wakeup.hasSubscribers)
      events.wakeup.publish({ lock: this.#setting.subject.title, cause } satisfies WakeupEvent)
    const asked = [...this.#waiting]
    const interrupt = new Interrupt()
    const sinceMs = clock.now()
    this.#look = interrupt
    const terms = { deadlineMs: sinceMs + commands.timeoutMs, keepAlive: true, interrupt }
    this.#setting.read(newPassage(), terms).then(
      (reply) => {
        this.#look = undefined
        this.#answered(reply, asked)
      },
      (error: unknown) => {
        this.#look = undefined
        if (!interrupt.fired) this.#failed(trouble(error), { asked, sinceMs })
        else this.#dispatch()
      },
    )
  }

  /** Only those that the look was made for may go by it: a later caller may know of a later count. */
  #answered(reply: CountReply, asked: readonly LatchWait[]): void {
    this.trouble = undefined
    this.#troubleSinceMs = undefined
    this.#troublePauseMs = TROUBLE_MS
    this.#polls.restart()
    const count = reply.outcome === 'counted' ? reply.count : 0
    for (const waiter of asked) {
      if (reply.outcome === 'foreign') this.#end(waiter, wrongType(this.#setting.subject))
      else if (count <= 0) this.#end(waiter, 'open')
      else this.#shut(waiter, count)
    }
    if (this.#waiting.size > 0 && count > 0) this.#listen()
    this.#dispatch()
  }

  #shut(waiter: LatchWait, count: number): void {
    waiter.count = count
    if (waiter.overdue) this.#end(waiter, 'over')
    else publishWait(waiter)
  }

  #failed(
    error: EngineError,
    { asked, sinceMs }: { readonly asked: readonly LatchWait[]; readonly sinceMs: number },
  ): void {
    const { clock, settings } = this.#runtime
    const nowMs = clock.now()
    this.trouble = error
    this.#troubleSinceMs ??= sinceMs
    this.#quietUntilMs = nowMs + this.#troublePauseMs * (0.75 + Math.random() / 2)
    this.#troublePauseMs = nextPause(this.#troublePauseMs)
    this.#due ??= 'new'
    for (const waiter of worthRetrying(error) ? [...this.#waiting] : asked) {
      const forMs = nowMs - Math.max(this.#troubleSinceMs, waiter.startedMs)
      const hopeless = waiter.options.waitTimeMs === Infinity && forMs >= settings.unavailableAfter
      if (hopeless || !worthRetrying(error)) this.#end(waiter, lookFailed(this.#setting.subject, error))
    }
    this.#dispatch()
  }

  #listen(): void {
    if (this.#subscription !== undefined) return
    const { topic, subject } = this.#setting
    const subscription = this.#runtime.commands.engine.subscribe(topic, (hint) => {
      this.#hear(hint)
    })
    this.#subscription = subscription
    void subscription.live.then((live) => {
      if (this.#subscription !== subscription) return
      if (live) this.#hear('resync')
      else diagnose(subject.title, 'subscribe-failed', 'No messages about the count: waiting by polling')
    })
  }

  #hear(hint: Hint): void {
    this.#polls.live(hint !== 'down')
    if (hint !== 'down') this.#due = hint === 'resync' ? 'resync' : 'message'
    this.#dispatch()
  }
}

/** A look that failed has changed nothing. */
export function lookFailed(subject: Subject, { message, kind, cause }: EngineError): Error {
  return failure(subject, new EngineError(message, { kind, outcome: 'not-applied', cause }), false)
}

function publishWait(waiter: LatchWait): void {
  if (waiter.announced || !events.wait.hasSubscribers) return
  waiter.announced = true
  events.wait.publish({ lock: waiter.title, holder: undefined, holderTtl: undefined })
}
