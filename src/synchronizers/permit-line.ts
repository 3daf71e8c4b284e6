import type { Clock, Timer } from '../clock.js'
import { diagnose, events, type WakeupEvent } from '../diagnostics.js'
import type { Engine, Hint, Subscription, Topic } from '../engine/engine.js'
import type { Wait } from '../lease/call.js'
import { nextPause } from '../lease/commands.js'
import type { ResolvedWaitOptions } from '../options.js'
import { ExpiryPlan } from './expiry-plan.js'
import { passingAfter, type Passing } from './passing.js'
import { PollPlan } from './poll-plan.js'

const TROUBLE_MS = 50
/** So many may try at once while it is not known how many permits are free. */
const BLIND = 64

type Cause = WakeupEvent['cause']

/** One caller in the line. */
export interface Waiter extends Wait<ResolvedWaitOptions> {
  readonly permits: number
}

/** How many permits are free, by an answer of the engine. */
export interface Free {
  readonly free: number
  /** How long it is until the next one expires, `Infinity`: none does; undefined: that was not told. */
  readonly nextMs: number | undefined
}

/** What a line works with. */
export interface LineSetting {
  readonly title: string
  readonly topic: Topic
  readonly engine: Engine
  readonly clock: Clock
  /** The last caller has left. */
  readonly onEmpty: () => void
}

/**
 * The callers of one process that want permits of one semaphore, in the order of their coming. As long as nobody
 * has to wait, everybody tries at once. Then the first one looks after each hint, and from what the engine
 * answers it is known who else may try: all that fit, together.
 *
 *     comes ──▶ trying ──granted──▶ leaves
 *                 │ ▲
 *            busy ▼ │ looks, or fits
 *                asleep ──deadline, signal──▶ leaves
 */
export class PermitLine {
  /** When the engine stopped answering; undefined while it answers. */
  troubleSinceMs: number | undefined = undefined
  /** What the last attempt failed with. */
  trouble: unknown = undefined
  /** The engine has answered an attempt. */
  served = false
  readonly #setting: LineSetting
  readonly #clock: Clock
  readonly #polls = new PollPlan()
  readonly #expiry = new ExpiryPlan()
  /** Everybody, in the order of their coming. */
  readonly #callers = new Set<Waiter>()
  readonly #asleep = new Map<Waiter, (mine: boolean) => void>()
  /** Those who try, and have no answer yet. */
  readonly #trying = new Set<Waiter>()
  /** How many permits those want. */
  #wanted = 0
  /** How many permits are free by the last answer, less those that are being tried for. */
  #free = 0
  /** Why the first one must look. */
  #due: Cause | 'left' | undefined
  /** Since when others pass the first one by. */
  #passed: { readonly waiter: Waiter; readonly sinceMs: number } | undefined
  #quietUntilMs = 0
  #troublePauseMs = TROUBLE_MS
  #subscription: Subscription | undefined
  #timer: Timer | undefined

  constructor(setting: LineSetting) {
    this.#setting = setting
    this.#clock = setting.clock
  }

  /** Joins the tail. True: the caller may try at once. */
  join(waiter: Waiter): boolean {
    this.#callers.add(waiter)
    const calm = this.#asleep.size === 0 && this.#trying.size < BLIND && this.trouble === undefined
    if (calm) this.#start(waiter)
    return calm
  }

  /** Sleeps until the caller may try (true), or its waiting is over (false). */
  turn(waiter: Waiter): Promise<boolean> {
    const mine = new Promise<boolean>((resolve) => {
      let timer: Timer | undefined = undefined
      const settle = (may: boolean): void => {
        timer?.cancel()
        waiter.listen(undefined)
        this.#asleep.delete(waiter)
        resolve(may)
      }
      this.#asleep.set(waiter, settle)
      const waitMs = waiter.deadlineMs - this.#clock.now()
      if (waitMs !== Infinity)
        timer = this.#clock.setTimer(
          () => {
            settle(false)
          },
          waitMs,
          true,
        )
      waiter.listen(() => {
        settle(false)
      })
    })
    this.#listen()
    this.#dispatch()
    return mine
  }

  /** Leaves the line; the last one takes the subscription along. */
  leave(waiter: Waiter): void {
    this.#callers.delete(waiter)
    // An attempt without an answer leaves its hint to the next one.
    if (this.#stop(waiter)) this.#due ??= 'left'
    if (this.#callers.size > 0) {
      this.#dispatch()
      return
    }
    this.#timer?.cancel()
    this.#subscription?.close()
    this.#subscription = undefined
    this.#setting.onEmpty()
  }

  /** The engine answered; so many permits were free then. */
  answered(waiter: Waiter, { free, nextMs }: Free): void {
    this.#stop(waiter)
    this.#servedNow()
    this.#quietUntilMs = 0
    this.#troublePauseMs = TROUBLE_MS
    this.#polls.restart()
    // Those who still try were not served yet when this was counted.
    this.#free = free - this.#wanted
    if (nextMs !== undefined) this.#expiry.told(this.#clock.now(), nextMs)
    // Whoever does not fit into what is left has to learn when more is due.
    else if (this.#free > 0 && this.#asleep.size > 0) this.#due ??= 'left'
  }

  /** A grant was over before it arrived: at once, the next one would be too. */
  tooLate(waiter: Waiter): void {
    this.#stop(waiter)
    this.#servedNow()
    this.#due ??= 'left'
    this.#pauseAll()
  }

  /** The engine did not serve an attempt that was begun at `sinceMs`. */
  troubled(waiter: Waiter, error: unknown, sinceMs: number): void {
    this.#stop(waiter)
    this.trouble = error
    this.troubleSinceMs ??= sinceMs
    this.#due ??= 'left'
    this.#pauseAll()
  }

  /** Whether a call without a time limit has found no engine for so long. */
  hopeless(waiter: Waiter, afterMs: number): boolean {
    if (this.troubleSinceMs === undefined || waiter.options.waitTimeMs !== Infinity) return false
    return this.#clock.now() - Math.max(this.troubleSinceMs, waiter.startedMs) >= afterMs
  }

  /** Ends the waiting of calls that are hopeless: each look would cost them one more time-out. */
  dismissHopeless(afterMs: number): void {
    for (const [waiter, settle] of [...this.#asleep]) if (this.hopeless(waiter, afterMs)) settle(false)
  }

  #servedNow(): void {
    this.served = true
    this.trouble = undefined
    this.troubleSinceMs = undefined
  }

  /** Nobody tries for a time, a longer one each time. */
  #pauseAll(): void {
    const nowMs = this.#clock.now()
    if (nowMs < this.#quietUntilMs) return
    this.#quietUntilMs = nowMs + this.#troublePauseMs * (0.75 + Math.random() / 2)
    this.#troublePauseMs = nextPause(this.#troublePauseMs)
  }

  #start(waiter: Waiter): void {
    this.#trying.add(waiter)
    this.#wanted += waiter.permits
    this.#free -= waiter.permits
    // Whatever the hint told of, this attempt finds.
    this.#due = undefined
  }

  #stop(waiter: Waiter): boolean {
    const tried = this.#trying.delete(waiter)
    if (tried) this.#wanted -= waiter.permits
    return tried
  }

  #wake(waiter: Waiter): void {
    this.#start(waiter)
    this.#asleep.get(waiter)?.(true)
  }

  #dispatch(): void {
    const nowMs = this.#clock.now()
    if (this.#asleep.size > 0 && nowMs >= this.#quietUntilMs) {
      if (this.#due !== undefined && !this.#headTries()) this.#look(this.#due)
      this.#letIn(nowMs)
    }
    this.#plan(nowMs)
  }

  /** The first of all has no answer yet. A look of those behind it could be granted what its attempt came too early for. */
  #headTries(): boolean {
    const [head] = this.#callers
    return head !== undefined && this.#trying.has(head)
  }

  /** Lets the first one look how many permits are free. */
  #look(cause: Cause | 'left'): void {
    const first = this.#first()
    if (first === undefined) return
    if (cause !== 'left' && events.wakeup.hasSubscribers)
      events.wakeup.publish({ lock: this.#setting.title, cause } satisfies WakeupEvent)
    this.#wake(first)
  }

  /** Lets all try that fit, in their order, as far as those that do not fit may be passed by. */
  #letIn(nowMs: number): void {
    let first: Waiter | undefined
    for (const waiter of this.#callers) {
      if (this.#free < 1) return
      if (!this.#asleep.has(waiter)) continue
      if (waiter.permits > this.#free) first ??= waiter
      else if (first === undefined) this.#wake(waiter)
      else if (!this.#passing(first, nowMs).open) return
      else {
        if (this.#passed?.waiter !== first) this.#passed = { waiter: first, sinceMs: nowMs }
        this.#wake(waiter)
      }
    }
  }

  #passing(first: Waiter, nowMs: number): Passing {
    return passingAfter(this.#passed?.waiter === first ? nowMs - this.#passed.sinceMs : 0)
  }

  #first(): Waiter | undefined {
    for (const waiter of this.#callers) if (this.#asleep.has(waiter)) return waiter
    return undefined
  }

  /** Sets the timer for what comes next if nothing else happens. */
  #plan(nowMs: number): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const first = this.#first()
    // Those who try come back with an answer, or without.
    if (first === undefined || this.#trying.size > 0) return
    const quietMs = this.#quietUntilMs - nowMs
    const delayMs = quietMs > 0 ? quietMs : this.#restMs(first, nowMs)
    this.#timer = this.#clock.setTimer(
      () => {
        if (quietMs <= 0) this.#due ??= this.#lookDue()
        this.#dispatch()
      },
      delayMs,
      true,
    )
  }

  #lookDue(): Cause | undefined {
    const nowMs = this.#clock.now()
    if (this.#expiry.due(nowMs)) return 'expiry'
    return this.#polls.restMs(nowMs) <= 0 ? 'poll' : undefined
  }

  #restMs(first: Waiter, nowMs: number): number {
    const pollMs = this.#polls.plan(nowMs, this.#asleep.keys())
    const lookMs = Math.min(pollMs, this.#expiry.restMs(nowMs))
    const { open, restMs } = this.#passing(first, nowMs)
    return open ? lookMs : Math.min(lookMs, restMs)
  }

  #listen(): void {
    if (this.#subscription !== undefined) return
    const { engine, topic, title } = this.#setting
    const subscription = engine.subscribe(topic, (hint) => {
      this.#hear(hint)
    })
    this.#subscription = subscription
    void subscription.live.then((live) => {
      if (this.#subscription !== subscription) return
      if (live) this.#hear('resync')
      else diagnose(title, 'subscribe-failed', 'No messages about permits: waiting by polling')
    })
  }

  #hear(hint: Hint): void {
    this.#polls.live(hint !== 'down')
    if (hint !== 'down') this.#due = hint === 'resync' ? 'resync' : 'message'
    this.#dispatch()
  }
}
