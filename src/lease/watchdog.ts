import { AsyncResource } from 'node:async_hooks'
import type { Clock, Timer } from '../clock.js'
import { diagnose, events, type RenewFailedEvent, type RenewOkEvent } from '../diagnostics.js'
import { newPassage } from '../engine/engine.js'
import type { RenewReply } from '../engine/operations.js'
import type { Commands } from './commands.js'
import { Schedule } from './schedule.js'
import { kindOf } from './target.js'
import { wallOffset, type Tenure } from './tenure.js'

const BATCH = 100
/** A command is closed when the owners in it have so many: an owner of permits is a list of ids. */
const BATCH_LETTERS = 20_000
/** Renewals that fall due within this part of the period go out together. */
const AHEAD = 0.1
/** So many batches go out at once; what is more waits for a part of the period, so that all of it is spread. */
const AT_ONCE = 10
const PAUSES = 100
const FAST_RETRY_MS = 1_000
/** `os.uptime()` counts whole seconds. */
const UPTIME_TOLERANCE_MS = 1_500

/** What the watchdog needs to know. */
export interface WatchdogOptions {
  readonly commands: Commands
  readonly clock: Clock
  /** The TTL that renewals set. */
  readonly timeoutMs: number
}

/**
 * One scheduler for all tenures of a `Holdfast`: it renews those with a watchdog every third of the
 * time-out (Redisson's rule), in batches, and ends each tenure at its deadline. A late tick judges
 * deadlines before anything else.
 */
export class Watchdog {
  readonly timeoutMs: number
  readonly #commands: Commands
  readonly #clock: Clock
  readonly #schedule = new Schedule<Tenure>()
  readonly #periodMs: number
  /** The scheduler belongs to the `Holdfast`, not to the request that happened to arm its timer. */
  readonly #context = new AsyncResource('HoldfastWatchdog')
  #timer: Timer | undefined
  #timerAtMs = Infinity
  /** No renewals before this time: the last tick took all that may go out at once. */
  #restUntilMs = -Infinity
  #uptimeOffsetMs: number
  #onEmpty: (() => void) | undefined

  constructor({ commands, clock, timeoutMs }: WatchdogOptions) {
    this.#commands = commands
    this.#clock = clock
    this.timeoutMs = timeoutMs
    this.#periodMs = timeoutMs / 3
    this.#uptimeOffsetMs = clock.uptime() - clock.now()
  }

  /** All tenures that are held. */
  tenures(): readonly Tenure[] {
    return this.#schedule.entries()
  }

  /** How many tenures are held. */
  get size(): number {
    return this.#schedule.size
  }

  /** Takes a tenure in, or looks at it anew after a change. */
  watch(tenure: Tenure): void {
    if (tenure.state !== 'held') return
    if (!tenure.renewable) tenure.renewAtMs = Infinity
    else if (tenure.renewAtMs === Infinity)
      // A hold of a lease with little time left, whose own acquire did not raise it, cannot wait for a whole period.
      tenure.renewAtMs = Math.min(this.#clock.now() + this.#periodMs, tenure.deadlineMs - this.timeoutMs / 2)
    this.#place(tenure)
  }

  /** Renews a tenure at once, because it is in doubt. */
  confirmSoon(tenure: Tenure): void {
    if (tenure.state !== 'held' || tenure.renewing) return
    tenure.renewAtMs = this.#clock.now()
    this.#place(tenure)
  }

  /** Lets a tenure go: from here on no reply counts for it. */
  forget(tenure: Tenure): void {
    this.#schedule.remove(tenure)
    if (this.#schedule.size === 0) this.#onEmpty?.()
  }

  /** Resolves when no tenure is held any more. */
  empty(): Promise<void> {
    if (this.#schedule.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onEmpty = resolve
    })
  }

  /** Stops for good. */
  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #place(tenure: Tenure): void {
    const renewAtMs = tenure.renewing ? Infinity : tenure.renewAtMs
    this.#schedule.put(tenure, Math.min(tenure.deadlineMs, tenure.maxHoldAtMs, renewAtMs))
    this.#arm()
  }

  // A timer that fires too early costs one look; so it stays when the first tenure goes.
  #arm(): void {
    const { first } = this.#schedule
    if (first === undefined) return
    const renewal = first.dueAtMs === first.renewAtMs
    const dueAtMs = renewal ? Math.max(first.dueAtMs, this.#restUntilMs) : first.dueAtMs
    if (this.#timer !== undefined && this.#timerAtMs <= dueAtMs) return
    this.#timer?.cancel()
    this.#timerAtMs = dueAtMs
    this.#timer = this.#context.runInAsyncScope(() =>
      this.#clock.setTimer(
        () => {
          this.#timer = undefined
          this.#tick()
        },
        Math.max(0, dueAtMs - this.#clock.now()),
        false,
      ),
    )
  }

  #tick(): void {
    this.#noticeSleep()
    const nowMs = this.#clock.now()
    const due: Tenure[] = []
    // All must be through in half a period.
    const most = Math.max(AT_ONCE * BATCH, Math.ceil((2 * this.#schedule.size) / PAUSES))
    for (let tenure = this.#schedule.first; tenure !== undefined; tenure = this.#schedule.first) {
      if (tenure.dueAtMs > nowMs + this.#periodMs * AHEAD) break
      if (tenure.deadlineMs <= nowMs) tenure.lose('expired')
      else if (tenure.maxHoldAtMs <= nowMs) tenure.lose('max-hold')
      else if (tenure.dueAtMs > nowMs && due.length === 0) break
      else if (due.length === most) break
      else if (tenure.dueAtMs === tenure.renewAtMs && !tenure.renewing) this.#take(tenure, due)
      else if (tenure.dueAtMs > nowMs) break
      // Its deadline was raised since.
      else this.#place(tenure)
    }
    if (due.length === most) this.#restUntilMs = nowMs + this.#periodMs / PAUSES
    this.#renew(due)
    this.#arm()
  }

  #take(tenure: Tenure, due: Tenure[]): void {
    tenure.renewing = true
    due.push(tenure)
    this.#schedule.put(tenure, Math.min(tenure.deadlineMs, tenure.maxHoldAtMs))
  }

  #noticeSleep(): void {
    const offsetMs = this.#clock.uptime() - this.#clock.now()
    const slept = offsetMs - this.#uptimeOffsetMs > UPTIME_TOLERANCE_MS
    if (slept) this.#uptimeOffsetMs = offsetMs
    for (const tenure of slept ? this.#schedule.entries() : []) {
      tenure.doubt()
      this.confirmSoon(tenure)
    }
  }

  #renew(due: readonly Tenure[]): void {
    const groups = new Map<string, Tenure[]>()
    for (const tenure of due) {
      const { family, name } = tenure.target
      const key = `${family} ${this.#commands.engine.batchKey(name)} ${String(this.#ttlFor(tenure))}`
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [tenure])
      else group.push(tenure)
    }
    for (const group of groups.values()) for (const batch of batchesOf(group)) void this.#renewBatch(batch)
  }

  /** A lease without a watchdog is only confirmed, with the time that it has left. */
  #ttlFor(tenure: Tenure): number {
    return tenure.wantedTtl(tenure.watched > 0 ? this.timeoutMs : 1)
  }

  async #renewBatch(batch: readonly Tenure[]): Promise<void> {
    const [first] = batch
    if (first === undefined) return
    const ttlMs = this.#ttlFor(first)
    const sent = { wallOffsetMs: wallOffset(this.#clock), ttlMs }
    const passage = newPassage()
    try {
      const deadlineMs = this.#clock.now() + Math.min(this.#commands.timeoutMs, Math.max(10, this.#periodMs))
      const holds = batch.map(({ target, owner }) => ({ name: target.name, owner }))
      const operation = kindOf(first.target).renew(holds, ttlMs)
      const reply = await this.#commands.send(operation, passage, { deadlineMs, keepAlive: false })
      this.#settle(batch, reply, { ...sent, sentAtMs: passage.firstSentAtMs })
    } catch (error) {
      for (const tenure of batch) this.#failed(tenure, error)
    }
  }

  #settle(
    batch: readonly Tenure[],
    reply: RenewReply,
    confirmation: { readonly sentAtMs: number; readonly wallOffsetMs: number; readonly ttlMs: number },
  ): void {
    const nowMs = this.#clock.now()
    batch.forEach((tenure, i) => {
      tenure.renewing = false
      // A tenure that ended meanwhile is neither renewed nor lost by a late reply.
      if (tenure.state !== 'held') return
      const slackMs = tenure.deadlineMs - nowMs
      if (reply.results[i] === 'renewed') this.#renewed(tenure, confirmation, slackMs)
      else tenure.lose(slackMs <= 0 ? 'expired' : 'stolen')
    })
  }

  #renewed(
    tenure: Tenure,
    confirmation: { readonly sentAtMs: number; readonly wallOffsetMs: number; readonly ttlMs: number },
    slackMs: number,
  ): void {
    const { title } = tenure.target
    tenure.confirm(confirmation)
    if (tenure.state !== 'held') return
    tenure.renewAtMs = tenure.renewable ? confirmation.sentAtMs + this.#periodMs : Infinity
    this.#place(tenure)
    if (events.renewed.hasSubscribers) {
      const event: RenewOkEvent = { lock: title, owner: tenure.shown, slack: slackMs }
      events.renewed.publish(event)
    }
    if (tenure.watched > 0 && slackMs < this.timeoutMs / 2)
      diagnose(title, 'renewal-late', `Renewed with only ${String(Math.round(slackMs))} ms left`)
  }

  /** Tried again quickly: only "not yours" and the deadline end a tenure. */
  #failed(tenure: Tenure, error: unknown): void {
    tenure.renewing = false
    if (tenure.state !== 'held') return
    const nowMs = this.#clock.now()
    const event: RenewFailedEvent = {
      lock: tenure.target.title,
      owner: tenure.shown,
      slack: tenure.deadlineMs - nowMs,
      error,
    }
    if (events.renewFailed.hasSubscribers) events.renewFailed.publish(event)
    tenure.renewAtMs = nowMs + Math.min(FAST_RETRY_MS, this.#periodMs / 10)
    this.#place(tenure)
  }
}

/** Renewals that go out in one command: so many owners, or fewer if these stand for many permits. */
function batchesOf(group: readonly Tenure[]): readonly (readonly Tenure[])[] {
  const batches: Tenure[][] = []
  let letters = Infinity
  for (const tenure of group) {
    const last = batches.at(-1)
    if (last === undefined || last.length === BATCH || letters > BATCH_LETTERS) {
      batches.push([tenure])
      letters = tenure.owner.length
    } else {
      last.push(tenure)
      letters += tenure.owner.length
    }
  }
  return batches
}
