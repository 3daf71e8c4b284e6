/** One worker process: it does what the demo orders, and ends when the demo does. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { Holdfast } from '../src/index.js'
import type { CountOrder, Order, Report, TurnOrder, WorkerEvent, WorkerSettings } from './messages.js'
import { connect } from './stage.js'
import { now } from './timeline.js'
import { observe, takeTurn } from './turn.js'

const TELL_EVERY_MS = 100

interface Equipment {
  readonly redis: Redis
  readonly holdfast: Holdfast
}

/** Aborts when the demo is over or is stopped. */
const leaving = new AbortController()
let equipment: Equipment | undefined
let work: Promise<void> = Promise.resolve()

function tell(report: Report): void {
  // Nobody may be there any more.
  if (process.connected) process.send?.(report)
}

async function equip({ label, url, keyPrefix, watchdogMs }: WorkerSettings): Promise<void> {
  const redis = await connect(url, label)
  const holdfast = new Holdfast(redis, { keyPrefix, lockWatchdogTimeout: watchdogMs })
  equipment = { redis, holdfast }
  tell({ report: 'ready', at: now(), pid: process.pid })
}

async function countUp({ redis, holdfast }: Equipment, order: CountOrder): Promise<void> {
  const { counter, lock, times, pauseMs } = order
  async function addOne(): Promise<void> {
    const seen = Number(await redis.get(counter))
    await sleep(pauseMs)
    await redis.set(counter, seen + 1)
  }
  let toldAt = performance.now()
  for (let done = 1; done <= times && !leaving.signal.aborted; done++) {
    await (lock === undefined ? addOne() : holdfast.lock(lock).using(addOne))
    if (performance.now() - toldAt < TELL_EVERY_MS && done < times) continue
    toldAt = performance.now()
    tell({ report: 'counted', times: done })
  }
}

async function obey(order: Order): Promise<void> {
  if (order.order === 'connect') return equip(order)
  if (equipment === undefined) throw new Error('the worker is not connected yet')
  if (order.order === 'count') await countUp(equipment, order)
  else await turn(equipment, order)
  tell({ report: 'finished' })
}

async function turn({ holdfast }: Equipment, order: TurnOrder): Promise<void> {
  const told = (event: WorkerEvent) => tell({ report: 'event', ...event })
  observe(told)
  await takeTurn(holdfast, { ...order, stop: leaving.signal }, told)
}

async function leave(): Promise<void> {
  leaving.abort()
  // All workers finish what they are at, instead of breaking it off, so that nothing is left to be undone.
  await work
  await equipment?.holdfast.close()
  // Its answer means that the server has nothing of ours in hand any more, and the demo may tidy up.
  await equipment?.redis.quit().catch(() => undefined)
  process.exit()
}

// Interrupting is for the demo to handle, which then ends its workers.
process.on('SIGINT', () => undefined)
process.on('disconnect', () => void leave())
process.on('message', (order) => {
  work = obey(order as Order).catch((error: unknown) => {
    tell({ report: 'failed', message: String(error) })
  })
})
