/** A worker process of the safety run: a few callers that take turns, until the coordinator says that it is enough. */
import type * as Library from '../../src/index.js'
import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type { Holdfast, RenewOkEvent } from '../../src/index.js'
import type { CallEvent, Line } from './history.js'
import { Journal, now } from './journal.js'
import type { Order, Report, Task, Thing } from './messages.js'
import { drawPlan } from './plan.js'
import { Random } from './random.js'
import { Store } from './store.js'
import { Leases, takeTurn, tellUntil, type Kit, type Subject } from './turn.js'

const BEAT_MS = 5
/** A beat that is later than this is told as a stall. */
const TOLERATED_MS = 3
const FINAL_WAIT_MS = 15_000

const task = JSON.parse(process.argv[2] ?? '') as Task
const library = (await import(task.source)) as typeof Library
const journal = new Journal(task.folder, task.process)
const random = new Random(`${task.seed} ${task.process}`)
const leases = new Leases()
let calls = 0
let finishing = false
let clientTold = false

function write(line: Line): void {
  journal.write(line)
}

function tellCall(call: string, event: CallEvent, t = now()): void {
  write({ t, call, ...event })
  if (event.is === 'granted' && !clientTold) {
    clientTold = true
    report({ report: 'client', id: event.owner.slice(0, event.owner.lastIndexOf(':')) })
  }
}

function report(message: Report): void {
  process.send?.(message)
}

/** Notes when the event loop stands still, for whatever reason. */
function startBeat(): () => void {
  let last = now()
  const timer = setInterval(() => {
    const t = now()
    if (t - last > BEAT_MS + TOLERATED_MS) write({ t, is: 'stall', from: last })
    last = t
  }, BEAT_MS)
  return () => {
    clearInterval(timer)
  }
}

interface Connection {
  readonly client: object
  close(): void
}

/** Both reconnect quickly and for ever; nothing else is set. */
async function connect(): Promise<Connection> {
  return task.client === 'ioredis' ? connectIoredis() : connectNodeRedis()
}

async function connectIoredis(): Promise<Connection> {
  const client = new Redis({ port: task.port, host: '127.0.0.1', retryStrategy: reconnectAfter })
  client.on('error', () => undefined)
  await client.ping()
  return {
    client,
    close: () => {
      client.disconnect()
    },
  }
}

async function connectNodeRedis(): Promise<Connection> {
  const url = `redis://127.0.0.1:${String(task.port)}`
  const client = createClient({ url, socket: { reconnectStrategy: reconnectAfter } })
  client.on('error', () => undefined)
  await client.connect()
  return {
    client,
    close: () => {
      client.destroy()
    },
  }
}

function reconnectAfter(times: number): number {
  return Math.min(50 * (times + 1), 300)
}

function subjectOf(holdfast: Holdfast, { kind, name }: Thing): Subject {
  return { name, lock: kind === 'lock' ? holdfast.lock(name) : holdfast.mutex(name) }
}

/** One caller that wants one lock again and again. */
async function lane(kit: Kit, subject: Subject, thing: Thing): Promise<void> {
  while (!finishing) {
    await sleep(random.between(0, task.manners.restMs))
    await takeTurn(kit, subject, drawPlan(random, thing, task.manners, task.watchdogMs))
  }
}

/** Every lock once more, now that nothing is broken. */
async function lastRound(kit: Kit, subjects: readonly Subject[]): Promise<void> {
  for (const { name, lock } of subjects) {
    const call = kit.newCall()
    kit.tell(call, { is: 'invoke', lock: name, waitMs: FINAL_WAIT_MS, final: true })
    try {
      const lease = await lock.acquire({ waitTime: FINAL_WAIT_MS })
      const at = now()
      const { owner, remaining } = lease
      kit.tell(call, { is: 'granted', owner, until: at + remaining, ttlMs: task.watchdogMs }, at)
      kit.tell(call, { is: 'release' })
      kit.tell(call, { is: 'released', outcome: await lease.release() })
    } catch (error) {
      kit.tell(call, { is: 'refused', why: String(error) })
    }
  }
}

function listen(): void {
  subscribe('holdfast:renew:ok', (message) => {
    for (const [call, lease] of leases.of(message as RenewOkEvent)) tellUntil(kit, call, lease)
  })
  process.on('message', (message) => {
    const order = message as Order
    if (order.do === 'finish') finishing = true
    else block(order.ms)
  })
  // Whoever is left alone would go on for ever.
  process.on('disconnect', () => process.exit(1))
  // The coordinator's line must not be what keeps this process alive.
  process.channel?.unref()
}

function block(ms: number): void {
  const endAt = now() + ms
  while (now() < endAt);
}

const kit: Kit = {
  random,
  leases,
  store: new Store(task.storePort),
  watchdogMs: task.watchdogMs,
  newCall: () => `${task.process}#${String((calls += 1))}`,
  tell: tellCall,
}

const connection = await connect()
const { client } = connection
const holdfast = new library.Holdfast(client, {
  lockWatchdogTimeout: task.watchdogMs,
  commandTimeout: task.commandTimeoutMs,
  unavailableAfter: 4_000,
})
const stopBeat = startBeat()
listen()
write({ t: now(), is: 'began', client: task.client })
report({ report: 'ready' })

const lanes = task.things.flatMap((thing) =>
  Array.from({ length: task.lanes }, () => lane(kit, subjectOf(holdfast, thing), thing)),
)
await Promise.all(lanes)
await lastRound(
  kit,
  task.things.map((thing) => subjectOf(holdfast, thing)),
)
const { held, waiting, contests, pending } = holdfast.stats()
await holdfast.close()
connection.close()
kit.store.close()
stopBeat()
write({ t: now(), is: 'ended', left: held + waiting + contests + pending })
