/** Both parts without a server: workers of one process, on the memory engine. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Holdfast } from '../src/index.js'
import type { DemoArguments } from './arguments.js'
import { introduceCounting, judge, Progress } from './counting.js'
import type { WorkerEvent } from './messages.js'
import type { Page } from './page.js'
import { now, Timeline } from './timeline.js'
import { observe } from './turn.js'
import { conclude, introduceTurns, printTableHead, TurnLog } from './turns.js'

export interface MemoryPart {
  readonly page: Page
  readonly settings: DemoArguments
  readonly stop: AbortSignal
}

const STORE = 'memory:demo'
const TURN_LOCK = 'redis_lock'
const COUNTER_LOCK = 'counter_lock'

/** True: they took turns. */
export async function takeTurnsInMemory({ page, settings, stop }: MemoryPart): Promise<boolean> {
  introduceTurns(page, settings, 'Two workers of this process, A and B,')
  printTableHead(page, '', 'time to live')
  const log = new TurnLog()
  {
    using timeline = new Timeline(page)
    await using one = await connect(settings, stop)
    await using other = await connect(settings, stop)
    const turns = new MemoryTurns(timeline, log)
    await Promise.all([turns.take('A', one, settings.workMs), turns.take('B', other, settings.workMs)])
  }
  return conclude(page, log)
}

async function connect({ watchdogMs }: DemoArguments, stop: AbortSignal): Promise<Holdfast> {
  stop.throwIfAborted()
  const holdfast = await Holdfast.connect(STORE, { lockWatchdogTimeout: watchdogMs })
  stop.addEventListener('abort', () => void holdfast.close({ drain: 0 }), { once: true })
  return holdfast
}

class MemoryTurns {
  readonly #timeline: Timeline
  readonly #log: TurnLog
  readonly #owners = new Map<string, { readonly label: string; readonly holdfast: Holdfast }>()

  constructor(timeline: Timeline, log: TurnLog) {
    this.#timeline = timeline
    this.#log = log
    // The events of all workers of a process come through one channel; the owner tells whose they are.
    observe(({ owner = '', ...event }) => {
      const worker = this.#owners.get(owner)
      if (worker === undefined || (event.what !== 'renewed' && event.what !== 'lost')) return
      void this.#tell(worker.label, event, worker.holdfast)
    })
  }

  async take(label: string, holdfast: Holdfast, workMs: number): Promise<void> {
    const wantedAt = now()
    void this.#tell(label, { at: wantedAt, what: 'wants', detail: 'the lock' })
    await holdfast.lock(TURN_LOCK).using(async (lease) => {
      const at = now()
      this.#owners.set(lease.owner, { label, holdfast })
      const detail = `after ${(at - wantedAt).toFixed(0)} ms`
      void this.#tell(label, { at, what: 'has it', detail }, holdfast)
      await sleep(workMs, undefined, { signal: lease.signal })
      void this.#tell(label, { at: now(), what: 'done', detail: `worked ${workMs} ms` })
    })
    void this.#tell(label, { at: now(), what: 'released', detail: 'the lock' })
  }

  /** With a `Holdfast`: and how long the lock would live now. */
  async #tell(who: string, event: WorkerEvent, holdfast?: Holdfast): Promise<void> {
    const { at, what, detail } = event
    this.#log.note(who, event)
    const left = await holdfast?.lock(TURN_LOCK).remainingTime()
    const state = left === undefined ? undefined : `${left.toFixed(0)} ms`
    this.#timeline.add({ at, who, what, detail: () => detail, state })
  }
}

/** True: no update was lost with the lock. */
export async function countInMemory({ page, settings, stop }: MemoryPart): Promise<boolean> {
  const { processes, increments, pauseMs } = settings
  introduceCounting(page, settings, `${processes} workers of this one process`)
  await using holdfast = await connect(settings, stop)
  const lock = holdfast.lock(COUNTER_LOCK)

  async function round(title: string, locked: boolean): Promise<number> {
    let counter = 0
    let done = 0
    async function addOne(): Promise<void> {
      const seen = counter
      await sleep(pauseMs)
      counter = seen + 1
    }
    async function worker(): Promise<void> {
      for (let i = 0; i < increments; i++) {
        stop.throwIfAborted()
        await (locked ? lock.using(addOne) : addOne())
        done += 1
      }
    }
    const expected = processes * increments
    const work = Promise.all(Array.from({ length: processes }, worker))
    await new Progress(page, title, expected).follow(work, () => done)
    return judge(page, { expected, got: counter, locked })
  }

  await round('without the lock', false)
  return (await round('with the lock', true)) === 0
}
