import type { Clock, Timer } from '../clock.js'
import { diagnose, events, type WakeupEvent } from '../diagnostics.js'
import type { Engine, Hint, Subscription, Topic } from '../engine/engine.js'
import type { Call, Rhythm } from './call.js'
import { nextPause } from './commands.js'
import { kindOf, type Target } from './target.js'

/** The longest sleep between two looks, so that a lost message costs seconds and not a whole lease. */
const CAP_MS = 5_000
/** Pauses without messages grow from the first to the last by half each time. */
const POLL_FIRST_MS = 20
const POLL_LAST_MS = 500
/** The shortest pause before a look at a holder's expiry; doubled while the holder outlives its TTL. */
const FLOOR_MS = 5
const USUAL: Omit<Rhythm, 'untilMs'> = { floorMs: FLOOR_MS, capMs: CAP_MS }
const TROUBLE_MS = 50

type Cause = WakeupEvent['cause']

/** When the head tries again without a hint, and why then. */
interface Look {
  readonly atMs: number
  readonly cause: Cause
}

/** Why a waiter went on: to try again, or because its waiting is over. */
export type Wake = 'again' | 'deadline'

/** What a contest works with. */
export interface ContestSetting {
  readonly engine: Pick<Engine, 'subscribe'>
  readonly clock: Clock
  /** Where releases are told; undefined: nowhere. */
  readonly topic: Topic | undefined
  /** The last caller has left. */
  readonly onEmpty: () => void
}

/**
 * The callers of one process that want one lock, in a queue. Only the head talks to the engine; the state of
 * the waiting (subscription, next look, an unheeded hint) belongs to the queue, so that the next head goes on
 * where the last one left.
 */
export class Contest {
  readonly target: Target
  /** The head must try now. */
  due = true
  /** When the engine stopped answering; undefined while it answers. */
  troubleSinceMs: number | undefined = undefined
  /** What the last attempt of any head failed with. */
  trouble: unknown = undefined
  /** The engine has answered an attempt of any head. */
  served = false
  readonly #engine: Pick<Engine, 'subscribe'>
  #topic: Topic | undefined
  readonly #clock: Clock
  readonly #onEmpty: () => void
  readonly #queue = new Set<Call>()
  #turns: Map<Call, (mine: boolean) => void> | undefined
  #subscription: Subscription | undefined
  #live = false
  #wake: ((cause: Cause) => void) | undefined
  #ttlMs = -1
  /** When to look again whatever head there is; undefined: to be planned after the last answer. */
  #look: Look | undefined
  #pollMs = POLL_FIRST_MS
  #floorMs = FLOOR_MS
  #rhythm = USUAL
  #troublePauseMs = TROUBLE_MS
  #warnedOfTtl = false

  constructor(target: Target, setting: ContestSetting) {
    this.target = target
    this.#topic = setting.topic
    this.#engine = setting.engine
    this.#clock = setting.clock
    this.#onEmpty = setting.onEmpty
  }

  /** Joins the tail. True: the caller is the head. */
  join(call: Call): boolean {
    this.#queue.add(call)
    return this.#queue.size === 1
  }

  /** Waits until the caller is the head (true) or its waiting is over (false). */
  turn(call: Call): Promise<boolean> {
    return new Promise((resolve) => {
      let timer: Timer | undefined = undefined
      const settle = (mine: boolean): void => {
        timer?.cancel()
        call.listen(undefined)
        this.#turns?.delete(call)
        resolve(mine)
      }
      this.#turns ??= new Map()
      this.#turns.set(call, settle)
      const waitMs = call.deadlineMs - this.#clock.now()
      // Without a time limit there is nothing else that keeps the process alive while it waits in line.
      if (waitMs !== Infinity)
        timer = this.#clock.setTimer(
          () => {
            settle(false)
          },
          waitMs,
          true,
        )
      call.listen(() => {
        settle(false)
      })
    })
  }

  /** Leaves the queue; the next one becomes the head, and the last one takes the subscription along. */
  leave(call: Call): void {
    this.#queue.delete(call)
    const [next] = this.#queue
    if (next === undefined) {
      this.#subscription?.close()
      this.#subscription = undefined
      this.#onEmpty()
    } else this.#turns?.get(next)?.(true)
  }

  /** Whether the caller stands in the queue. */
  has(call: Call): boolean {
    return this.#queue.has(call)
  }

  /** Lets all who wait in line out of it, so that they try at once and not one after the other; the head tries, too. */
  open(): void {
    for (const [call, settle] of [...(this.#turns ?? [])]) {
      this.#queue.delete(call)
      settle(true)
    }
    this.poke()
  }

  /** The head is to try again: something has changed in this process. */
  poke(): void {
    this.due = true
    this.#wake?.('message')
  }

  /** The head was granted the lock: the next head need not ask (`mayFit` false), but wait for it to end. */
  granted(leaseMs: number, mayFit: boolean): void {
    this.answered()
    this.due = mayFit
    this.#ttlMs = leaseMs
    this.#look = undefined
  }

  /** Somebody else holds the lock, or comes before us; `ttlMs`: until that may end. */
  busy(ttlMs: number, rhythm: Omit<Rhythm, 'untilMs'> = USUAL): void {
    this.answered()
    this.due = false
    const { floorMs } = rhythm
    this.#rhythm = rhythm
    this.#floorMs = ttlMs > this.#floorMs ? floorMs : Math.min(Math.max(floorMs, this.#floorMs * 2), CAP_MS)
    this.#ttlMs = ttlMs
    this.#look = undefined
    if (ttlMs >= 0 || this.#warnedOfTtl) return
    this.#warnedOfTtl = true
    diagnose(
      this.target.title,
      'no-ttl',
      'The holder has no TTL: if it is dead, only forceRelease() frees the lock',
    )
  }

  /** The engine answered. */
  answered(): void {
    this.served = true
    this.trouble = undefined
    this.troubleSinceMs = undefined
    this.#troublePauseMs = TROUBLE_MS
  }

  /** The engine did not serve an attempt that was begun at `sinceMs`. */
  troubled(error: unknown, sinceMs: number): void {
    this.trouble = error
    this.troubleSinceMs ??= sinceMs
  }

  /** Whether a call without a time limit has found no engine for so long. */
  hopeless(call: Call, afterMs: number): boolean {
    if (this.troubleSinceMs === undefined || call.options.waitTimeMs !== Infinity) return false
    return this.#clock.now() - Math.max(this.troubleSinceMs, call.startedMs) >= afterMs
  }

  /** Ends the waiting in line of calls that are hopeless: each turn would cost them one more time-out. */
  dismissHopeless(afterMs: number): void {
    for (const [call, settle] of [...(this.#turns ?? [])]) if (this.hopeless(call, afterMs)) settle(false)
  }

  /** Subscribes, if that is not done; the confirmation is a wake-up, for what happened in between. */
  listen(): void {
    if (this.#subscription !== undefined) return
    const topic = this.#topic
    if (topic === undefined) return
    const subscription = this.#engine.subscribe(topic, (hint) => {
      this.#hear(hint)
    })
    this.#subscription = subscription
    void subscription.live.then((live) => {
      if (this.#subscription !== subscription) return
      if (live) this.#hear('resync')
      else diagnose(this.target.title, 'subscribe-failed', 'No messages about releases: waiting by polling')
    })
  }

  /** The call has a new owner: where each waiter has a channel of its own, that is another one. */
  follow(call: Call): void {
    const topic = this.#topic
    if (topic?.owner === undefined || topic.owner === call.owner) return
    this.#subscription?.close()
    this.#subscription = undefined
    this.#live = false
    this.#topic = { ...topic, owner: call.owner }
  }

  /** Sleeps until a hint, the holder's expiry, the next look, or the end of the waiting. */
  async sleep(call: Call): Promise<Wake> {
    if (this.due) return 'again'
    const { ms, cause } = this.#untilLook(call)
    const woken = await this.#pause(call, ms, cause)
    if (woken === undefined) return call.overdue ? 'deadline' : 'again'
    if (events.wakeup.hasSubscribers)
      events.wakeup.publish({ lock: this.target.title, cause: woken } satisfies WakeupEvent)
    this.due = true
    return 'again'
  }

  /** Sleeps after trouble with the engine, longer each time. */
  async backOff(call: Call): Promise<Wake> {
    const ms = this.#troublePauseMs * (0.75 + Math.random() / 2)
    this.#troublePauseMs = nextPause(this.#troublePauseMs)
    await this.#pause(call, ms, 'poll')
    return call.overdue ? 'deadline' : 'again'
  }

  #hear(hint: Hint): void {
    this.#live = hint !== 'down'
    if (hint === 'down') {
      this.#pollMs = POLL_FIRST_MS
      this.#look = undefined
      this.#wake?.('poll')
      return
    }
    this.due = true
    this.#floorMs = this.#rhythm.floorMs
    this.#wake?.(hint === 'resync' ? 'resync' : 'message')
  }

  // The plan stays when the head changes: else heads that leave soon would put it off for ever.
  #untilLook(call: Call): { readonly ms: number; readonly cause: Cause } {
    const nowMs = this.#clock.now()
    const { atMs, cause } = (this.#look ??= this.#planLook(call, nowMs))
    const ms = Math.max(0, atMs - nowMs)
    const { pollMs = ms } = call.options
    return pollMs < ms ? { ms: pollMs, cause: 'poll' } : { ms, cause }
  }

  #planLook(call: Call, nowMs: number): Look {
    if (call.pauses !== undefined) return { atMs: nowMs + call.pauses.next(), cause: 'poll' }
    const { pollMs } = call.options
    const polling = !this.#live || kindOf(this.target).polls
    const { floorMs, capMs, strict } = this.#rhythm
    const restMs = polling ? Math.min(Math.max(this.#nextPoll(), floorMs), capMs) : capMs
    const pauseMs =
      pollMs === undefined || ((polling || strict === true) && restMs < pollMs) ? restMs : pollMs
    const expiryMs = this.#ttlMs >= 0 ? Math.max(this.#ttlMs + 1, this.#floorMs) : Infinity
    return expiryMs < pauseMs
      ? { atMs: nowMs + expiryMs, cause: 'expiry' }
      : { atMs: nowMs + pauseMs, cause: 'poll' }
  }

  #nextPoll(): number {
    const ms = this.#pollMs
    this.#pollMs = Math.min(ms * 1.5, POLL_LAST_MS)
    return ms * (0.75 + Math.random() / 2)
  }

  /** The cause of the waking; undefined: the waiting is over. */
  #pause(call: Call, ms: number, cause: Cause): Promise<Cause | undefined> {
    return new Promise((resolve, reject) => {
      const restMs = call.deadlineMs - this.#clock.now()
      const settle = (woken: Cause | undefined): void => {
        timer.cancel()
        this.#wake = undefined
        call.listen(undefined)
        resolve(woken)
      }
      const timer = this.#clock.setTimer(
        () => {
          settle(restMs <= ms ? undefined : cause)
        },
        Math.min(ms, restMs),
        true,
      )
      this.#wake = settle
      call.listen((reason) => {
        timer.cancel()
        this.#wake = undefined
        reject(reason instanceof Error ? reason : new Error('interrupted', { cause: reason }))
      })
    })
  }
}
