import type { Timer } from '../clock.js'
import { diagnose } from '../diagnostics.js'
import { EngineError, newPassage, type DataTopic, type News } from '../engine/engine.js'
import type { Look, Operation, ReplyOf, WatchNoticesReply } from '../engine/operations.js'
import { Interrupt } from '../lease/interrupt.js'
import type { Runtime } from '../lease/runtime.js'
import { Schedule, type Scheduled } from '../lease/schedule.js'
import {
  ABSENT,
  differences,
  hear,
  seen,
  SILENCE,
  type Difference,
  type Heard,
  type Seen,
} from './compare.js'
import { Ear } from './ear.js'

/** How the observer learns of changes: the server tells, or it looks from time to time. */
export type ObserverMode = 'notifications' | 'polling'

/** What is known of keys before the first look; `complete`: a key of the pattern that is not among them was not there. */
export interface Baseline {
  readonly keys: ReadonlyMap<string, Seen>
  readonly complete: boolean
}

/** What an observer is to do, and whom it tells. Keys are full keys here. */
export interface ObserverTask {
  readonly title: string
  readonly keys: readonly string[]
  /** Instead of `keys`. */
  readonly pattern: string | undefined
  readonly notifications: 'auto' | 'off'
  readonly exactBytes: number
  readonly baseline: Baseline | undefined
  intervalMs(): number
  keepAlive(): boolean
  onDifference(key: string, difference: Difference): void
  /** A first look was taken at every key; what is told from now on is complete. */
  onReady(): void
  /** Once for each time of trouble. */
  onTrouble(error: unknown): void
  /** Now and then, all being well. */
  onCheck(): void
}

interface Known extends Scheduled {
  readonly key: string
  seen: Seen
}

/** A pause between looks that follow from news, so that a key that is written all the time costs little. */
const MIN_GAP_MS = 20
/** While the server tells of writes, every tenth look suffices as a check. */
const CHECK_EVERY = 10
const KEYS_PER_LOOK = 100
const RETRY_MS = 1_000

/**
 * Looks at keys again and again and tells what is different. News from the server only say when to look, so that
 * nothing depends on their arriving: a check now and then, and a look at everything after each gap, find the rest.
 */
export class Observer {
  readonly #runtime: Runtime
  readonly #task: ObserverTask
  readonly #ear: Ear
  readonly #stop = new Interrupt()
  readonly #known = new Map<string, Known>()
  /** Those with an end, by its time. */
  readonly #due = new Schedule<Known>()
  #heard = new Map<string, Heard>()
  readonly #sampled = new Set<string>()
  #notices: WatchNoticesReply['notices'] = 'none'
  /** The server tells, but something was found that it had not told. */
  #doubted = false
  #ready = false
  #troubled = false
  /** News may have been missed since the last look at everything. */
  #gap = true
  #lookedAtMs = -Infinity
  #fullAtMs = -Infinity
  #askedAtMs = -Infinity
  #lookAllAtOnce = true
  #retryAtMs = -Infinity
  #timer: Timer | undefined
  #resume: (() => void) | undefined

  constructor(runtime: Runtime, task: ObserverTask) {
    this.#runtime = runtime
    this.#task = task
    this.#ear = new Ear(runtime.commands.engine, runtime.clock, {
      onNews: (news) => {
        this.#onNews(news)
      },
      onGap: () => {
        this.#gap = true
        this.#lookAllAtOnce = true
        this.#wake()
      },
      onDown: () => {
        this.#wake()
      },
    })
  }

  get mode(): ObserverMode {
    return this.#notices === 'all' && this.#ear.live && !this.#doubted ? 'notifications' : 'polling'
  }

  /** What was seen last of every key. */
  *view(): Iterable<readonly [string, Seen]> {
    for (const [key, known] of this.#known) yield [key, known.seen]
  }

  /** Observes until it is stopped. @throws EngineError when the user's client is closed */
  async run(): Promise<void> {
    try {
      do await this.#tryRound()
      while (await this.#sleep())
    } finally {
      this.#ear.close()
      this.#timer?.cancel()
    }
  }

  /** Ends `run`, also in the middle of a command. */
  stop(): void {
    this.#stop.fire(new Error('the watch has ended'))
    this.#timer?.cancel()
    this.#ear.close()
    this.#resume?.()
  }

  /** Interval or keeping alive are other ones from now on. */
  readjust(): void {
    this.#wake()
  }

  #onNews({ key, event }: News): void {
    if (this.#stop.fired) return
    this.#heard.set(key, hear(this.#heard.get(key) ?? SILENCE, event))
    this.#wake()
  }

  async #tryRound(): Promise<void> {
    const heard = this.#heard
    this.#heard = new Map()
    try {
      await this.#round(heard)
      this.#troubled = false
    } catch (error) {
      if (this.#stop.fired) return
      if (error instanceof EngineError && error.kind === 'closed') throw error
      this.#retryLater(heard)
      if (!this.#troubled) this.#task.onTrouble(error)
      this.#troubled = true
    }
  }

  #retryLater(heard: ReadonlyMap<string, Heard>): void {
    for (const [key, older] of heard) {
      const newer = this.#heard.get(key) ?? SILENCE
      this.#heard.set(key, { gone: newer.gone ?? older.gone, written: newer.written || older.written })
    }
    this.#gap = true
    this.#lookAllAtOnce = true
    this.#retryAtMs = this.#runtime.clock.now() + Math.min(this.#task.intervalMs(), RETRY_MS)
  }

  async #round(heard: ReadonlyMap<string, Heard>): Promise<void> {
    const { clock } = this.#runtime
    if (clock.now() >= this.#askAtMs) await this.#ask()
    this.#lookedAtMs = clock.now()
    if (!this.#lookAllAtOnce && clock.now() < this.#allAtMs) {
      await this.#look([...new Set([...heard.keys(), ...this.#overdue()])], heard)
      return
    }
    const gap = this.#gap
    this.#gap = false
    this.#lookAllAtOnce = false
    this.#fullAtMs = clock.now()
    const untold = await this.#look(await this.#all(), heard)
    if (!this.#ready) {
      this.#ready = true
      this.#task.onReady()
    } else if (untold !== undefined && !gap) this.#doubt(untold)
  }

  get #askAtMs(): number {
    return this.#askedAtMs + this.#task.intervalMs() * CHECK_EVERY
  }

  get #allAtMs(): number {
    return this.#fullAtMs + this.#task.intervalMs() * (this.mode === 'notifications' ? CHECK_EVERY : 1)
  }

  /** Asks whether the server tells of writes, which may change, and listens if so. */
  async #ask(): Promise<void> {
    const { notifications, title } = this.#task
    const first = this.#askedAtMs === -Infinity
    const notices = notifications === 'off' ? 'none' : (await this.#send({ op: 'watch.notices' })).notices
    this.#askedAtMs = this.#runtime.clock.now()
    this.#notices = notices
    this.#doubted = false
    if (notices === 'none') this.#ear.close()
    else if (!this.#ear.live) {
      await this.#ear.open(this.#topics(), this.#runtime.commands.timeoutMs)
      this.#gap = true
      this.#lookAllAtOnce = true
    }
    if (first && this.mode === 'polling' && notifications === 'auto')
      diagnose(title, 'watch-polling', `The watch of ${title} polls: the server does not tell of all writes`)
    this.#task.onCheck()
  }

  #topics(): readonly DataTopic[] {
    const { keys, pattern } = this.#task
    if (pattern !== undefined) return [{ kind: 'pattern', name: pattern }]
    return keys.map((name) => ({ kind: 'key', name }))
  }

  /** A database emptied at once, for instance, is told of by nobody; neither is a write where we listen in vain. */
  #doubt(key: string): void {
    if (this.mode !== 'notifications') return
    this.#doubted = true
    const { title } = this.#task
    diagnose(
      title,
      'watch-missed',
      `The watch of ${title} found a change of '${key}' that it had not been told`,
    )
  }

  /** Every key to be looked at, with those that are known and may be gone. */
  async #all(): Promise<readonly string[]> {
    const { keys, pattern, baseline } = this.#task
    if (pattern === undefined) return keys
    const all = new Set(this.#known.keys())
    if (!this.#ready && baseline !== undefined) for (const key of baseline.keys.keys()) all.add(key)
    for (let cursor = ''; cursor !== '0';) {
      const reply = await this.#send({ op: 'watch.scan', pattern, cursor: cursor === '' ? '0' : cursor })
      for (const key of reply.keys) all.add(key)
      cursor = reply.cursor
    }
    return [...all]
  }

  #overdue(): readonly string[] {
    const nowMs = this.#runtime.clock.now()
    const keys: string[] = []
    for (
      let first = this.#due.first;
      first !== undefined && first.dueAtMs <= nowMs;
      first = this.#due.first
    ) {
      this.#due.remove(first)
      keys.push(first.key)
    }
    return keys
  }

  /** Looks at keys and tells what is different; answers one of those that had changed unheard. */
  async #look(keys: readonly string[], heard: ReadonlyMap<string, Heard>): Promise<string | undefined> {
    const { exactBytes } = this.#task
    let untold: string | undefined
    for (const batch of this.#batches(keys)) {
      for (let rest = batch; rest.length > 0;) {
        const askedAtMs = this.#runtime.clock.now()
        const { looks } = await this.#send({ op: 'watch.look', keys: rest, exactBytes })
        if (looks.length === 0) throw new Error('A look at keys was answered with none')
        const byMs = this.#runtime.clock.now()
        looks.forEach((look, i) => {
          const key = rest[i] ?? ''
          const isNews = this.#compare(key, seen(look, askedAtMs, byMs), { heard: heard.get(key), byMs })
          if (isNews) untold ??= key
        })
        rest = rest.slice(looks.length)
      }
    }
    return untold
  }

  #batches(keys: readonly string[]): readonly (readonly string[])[] {
    const { engine } = this.#runtime.commands
    const open = new Map<string, string[]>()
    const batches: string[][] = []
    for (const key of keys) {
      const batchKey = engine.batchKey(key)
      const batch = open.get(batchKey)
      if (batch !== undefined && batch.length < KEYS_PER_LOOK) batch.push(key)
      else {
        const begun = [key]
        open.set(batchKey, begun)
        batches.push(begun)
      }
    }
    return batches
  }

  /** Whether the key had changed and nobody had told. */
  #compare(key: string, now: Seen, { heard, byMs }: { heard: Heard | undefined; byMs: number }): boolean {
    const before = this.#before(key)
    this.#remember(key, now)
    if (before === undefined) return false
    const found = differences(before, { look: now.look, heard: heard ?? SILENCE, byMs })
    for (const difference of found) this.#task.onDifference(key, difference)
    return heard === undefined && !this.#heard.has(key) && found.some(({ event }) => event !== 'expire')
  }

  /** What was known; undefined: this is the first look, and there is nothing to compare. */
  #before(key: string): Seen | undefined {
    const known = this.#known.get(key)
    if (known !== undefined) return known.seen
    const { pattern, baseline } = this.#task
    const absent = seen(ABSENT, 0, 0)
    if (this.#ready) return pattern === undefined ? undefined : absent
    return baseline?.keys.get(key) ?? (baseline?.complete === true ? absent : undefined)
  }

  #remember(key: string, now: Seen): void {
    const known = this.#known.get(key) ?? { key, seen: now, dueAtMs: 0, place: -1 }
    known.seen = now
    this.#due.remove(known)
    if (now.look.type === undefined && this.#task.pattern !== undefined) {
      this.#known.delete(key)
      return
    }
    this.#known.set(key, known)
    if (now.expiresByMs !== Infinity) this.#due.put(known, now.expiresByMs + 1)
    this.#noteSample(key, now.look)
  }

  #noteSample(key: string, { exact, type }: Look): void {
    if (exact || type === 'stream' || this.#sampled.has(key)) return
    this.#sampled.add(key)
    const { title, exactBytes } = this.#task
    const why = `'${key}' is larger than ${String(exactBytes)} bytes and compared by a sample`
    diagnose(title, 'watch-sampled', `The watch of ${title}: ${why}`)
  }

  #send<O extends Operation>(operation: O): Promise<ReplyOf<O>> {
    const { commands, clock } = this.#runtime
    return commands.send(operation, newPassage(), {
      deadlineMs: clock.now() + commands.timeoutMs,
      keepAlive: this.#task.keepAlive(),
      interrupt: this.#stop,
    })
  }

  /** Sleeps until there is something to do; false: it was stopped. */
  async #sleep(): Promise<boolean> {
    await new Promise<void>((resolve) => {
      this.#resume = () => {
        this.#resume = undefined
        resolve()
      }
      if (this.#stop.fired) this.#resume()
      else this.#wake()
    })
    return !this.#stop.fired
  }

  /** Goes on sleeping for as long as there is nothing to do. */
  #wake(): void {
    this.#timer?.cancel()
    if (this.#resume === undefined) return
    const delayMs = this.#nextAtMs() - this.#runtime.clock.now()
    if (delayMs <= 0) {
      this.#resume()
      return
    }
    const timer = (): void => this.#resume?.()
    this.#timer = this.#runtime.clock.setTimer(timer, delayMs, this.#task.keepAlive())
  }

  #nextAtMs(): number {
    const soonMs = this.#lookedAtMs + MIN_GAP_MS
    const news = this.#heard.size > 0 || this.#lookAllAtOnce ? soonMs : Infinity
    const due = Math.max(this.#due.first?.dueAtMs ?? Infinity, soonMs)
    return Math.max(Math.min(this.#allAtMs, this.#askAtMs, news, due), this.#retryAtMs)
  }
}
