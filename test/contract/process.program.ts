/** The child of process.test.ts: does one thing and must then end by itself. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from '../../src/index.js'

const say = (words: string) => {
  console.log(words)
}

async function hold(): Promise<Holdfast> {
  const holdfast = await Holdfast.connect('memory:')
  await holdfast.lock('work').acquire()
  say('held')
  return holdfast
}

async function wait(): Promise<void> {
  const holdfast = await hold()
  const waitFor = (waitTime: number) => holdfast.lock('work').acquire({ waitTime }).then(nothing, codeOf)
  const [code] = await Promise.all([waitFor(400), waitFor(300)])
  say(code)
}

async function close(): Promise<void> {
  const holdfast = await hold()
  await holdfast.close({ drain: 300 })
  say('closed')
}

async function subscriber(url: string): Promise<void> {
  const [ours, theirs] = [new Redis(url), new Redis(url)]
  const [mine, other] = [new Holdfast(ours), new Holdfast(theirs)]
  const lease = await other.lock('work').acquire()
  const waiter = mine.lock('work').acquire()
  await sleep(100)
  await lease.release()
  await waiter
  say('waited')
  await mine.lock('more work').acquire()
  say('held')
  ours.disconnect()
  theirs.disconnect()
}

async function connect(url: string): Promise<void> {
  const holdfast = await Holdfast.connect(url)
  await holdfast.lock('other work').using(() => sleep(50))
  say('worked')
  await holdfast.close()
  say('closed')
}

async function leave(url: string): Promise<void> {
  const client = new Redis(url)
  await new Holdfast(client).lock('left').acquire({ leaseTime: 30_000 })
  client.disconnect()
}

function nothing(): string {
  return 'acquired'
}

function codeOf(error: unknown): string {
  return String((error as { readonly code?: unknown }).code)
}

const parts: Record<string, (url: string) => Promise<unknown>> = {
  hold,
  wait,
  close,
  subscriber,
  connect,
  leave,
}
const [part = '', url = ''] = process.argv.slice(2)
await parts[part]?.(url)
