/**
 * Uses a hundred thousand names once each, with time-outs and aborts among them, and says what is left of them.
 * Argument: the port. Needs --expose-gc.
 */
import { Redis } from 'ioredis'
import { Holdfast, UnavailableError, WaitTimeoutError } from '../../../src/index.js'
import { eventually } from '../../support/eventually.js'

const NAMES = 100_000
const AT_ONCE = 100

const client = new Redis({ port: Number(process.argv[2]) })
const holdfast = new Holdfast(client)
const other = new Holdfast(client.duplicate())

async function timesOut(name: string): Promise<void> {
  const lease = await other.lock(name).acquire()
  // On a busy machine the server may not be heard in time, which leaves as little behind.
  const got = await holdfast
    .lock(name)
    .tryAcquire({ waitTime: 5 })
    .catch((error: unknown) => {
      if (error instanceof UnavailableError) return null
      throw error
    })
  if (got !== null) throw new Error(`${name} was had twice`)
  await lease.release()
}

async function isAborted(name: string): Promise<void> {
  const lease = await other.lock(name).acquire()
  const controller = new AbortController()
  const waiting = holdfast.lock(name).acquire({ signal: controller.signal })
  setTimeout(() => {
    controller.abort()
  }, 5)
  const failed = await waiting.then(
    () => false,
    (error: unknown) => !(error instanceof WaitTimeoutError),
  )
  if (!failed) throw new Error(`${name} was had twice`)
  await lease.release()
}

async function use(index: number): Promise<void> {
  const name = `job:${index}`
  if (index % 200 === 0) return timesOut(name)
  if (index % 200 === 100) return isAborted(name)
  const lease = await (index % 2 === 0 ? holdfast.lock(name) : holdfast.mutex(name)).acquire()
  await lease.release()
}

async function useAll(from: number, to: number): Promise<void> {
  let next = from
  const worker = async (): Promise<void> => {
    while (next < to) await use(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

async function heap(): Promise<number> {
  await eventually(
    () => Object.values(holdfast.stats()).every((count) => count === 0),
    'nothing is left to do',
  )
  await eventually(async () => (await client.pubsub('CHANNELS')).length === 0, 'nothing is subscribed')
  for (let times = 0; times < 3; times++) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return process.memoryUsage().heapUsed
}

const channelsSeen: number[] = []
const looking = setInterval(() => {
  void client.pubsub('CHANNELS').then((channels) => channelsSeen.push(channels.length))
}, 50)
await useAll(0, NAMES / 10)
const before = await heap()
await useAll(NAMES / 10, NAMES)
clearInterval(looking)
const channels = Math.max(...channelsSeen)
channelsSeen.length = 0
const grown = (await heap()) - before
console.log(JSON.stringify({ grown, channels, stats: holdfast.stats() }))
await holdfast.close()
await other.close()
process.exit()
