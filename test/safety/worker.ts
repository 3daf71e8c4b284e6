/** A worker process of the safety run: a few callers that take turns, until the coordinator says that it is enough. */
import type * as Library from '../../src/index.js'
import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type { Holdfast, RenewOkEvent } from '../../src/index.js'
import type { CallEvent, Line } from './history.js'
import { Journal, now } from './journal.js'
import type { Order, Report, Task } from './messages.js'
import { briefPlan, drawPlan } from './plan.js'
import { Random } from './random.js'
import { Store, STORE_DATABASE } from './store.js'
import { judgedOf } from './things.js'
import { Leases, takeTurn, tellUntil, type Kit } from './turn.js'
import { waysOf, type Way } from './ways.js'

const BEAT_MS = 5
/** A beat that is later than this is told as a stall. */
const TOLERATED_MS = 3
const FINAL_WAIT_MS = 15_000
const END_WITHIN_MS = 2_000

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
async function connect(port: number): Promise<Connection> {
  return task.client === 'ioredis' ? connectIoredis(port) : connectNodeRedis(port)
}

async function connectIoredis(port: number): Promise<Connection> {
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: reconnectAfter })
  client.on('error', () => undefined)
  await client.ping()
  return {
    client,
    close: () => {
      client.disconnect()
    },
  }
}

async function connectNodeRedis(port: number): Promise<Connection> {
  const url = `redis://127.0.0.1:${String(port)}`
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

/** One caller that wants one thing again and again, in one way or another. */
async function lane(kit: Kit, ways: readonly Way[]): Promise<void> {
  while (!finishing) {
    await sleep(random.between(0, task.manners.restMs))
    const way = random.pick(ways)
    await takeTurn(kit, way, drawPlan(random, way, task.manners, task.watchdogMs))
  }
}

/** Everything once more, now that nothing is broken. */
async function lastRound(kit: Kit, holdfast: Holdfast, others: readonly Holdfast[]): Promise<void> {
  for (const thing of judgedOf(task.things)) {
    const ways = waysOf(holdfast, thing, others)
    const way = ways.find(({ alone }) => alone) ?? ways[0]
    if (way !== undefined)
      await takeTurn(kit, way, { ...briefPlan('acquire', FINAL_WAIT_MS, 0), final: true })
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

const fences = new Redis({ port: task.storePort, host: '127.0.0.1', db: STORE_DATABASE })
fences.on('error', () => undefined)
const guard = new library.RedisGuard(fences)
const kit: Kit = {
  random,
  leases,
  store: new Store(task.storePort),
  guarded: (name) => guard.value(`fence:${name}`),
  watchdogMs: task.watchdogMs,
  newCall: () => `${task.process}#${String((calls += 1))}`,
  tell: tellCall,
}

const connections = await Promise.all([task.port, ...task.otherPorts].map(connect))
const [holdfast, ...others] = connections.map(
  ({ client }) =>
    new library.Holdfast(client, {
      lockWatchdogTimeout: task.watchdogMs,
      fairLockWaitTimeout: task.placeMs,
      commandTimeout: task.commandTimeoutMs,
      unavailableAfter: 4_000,
    }),
)
if (holdfast === undefined) throw new Error('no server')
const stopBeat = startBeat()
listen()
write({ t: now(), is: 'began', client: task.client })
report({ report: 'ready' })

const lanes = task.things.flatMap((thing) =>
  Array.from({ length: task.lanes }, () => lane(kit, waysOf(holdfast, thing, others))),
)
await Promise.all(lanes)
await lastRound(kit, holdfast, others)
const all = [holdfast, ...others]
const leftOver = (): number =>
  all.reduce((sum, one) => {
    const { held, waiting, contests, pending } = one.stats()
    return sum + held + waiting + contests + pending
  }, 0)
// A red lock's release ends with the answer of a majority; the others answer a little later.
for (const endAt = now() + END_WITHIN_MS; leftOver() > 0 && now() < endAt;) await sleep(10)
const left = leftOver()
await Promise.all(all.map((one) => one.close()))
await guard.close()
for (const connection of connections) connection.close()
fences.disconnect()
kit.store.close()
stopBeat()
write({ t: now(), is: 'ended', left })
