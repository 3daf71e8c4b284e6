// Conversions need between one and four gigabytes, and the machine has eight for all its worker processes together.
// Each takes as many permits as it needs gigabytes, all or none; each worker here is a Holdfast of its own.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const GIGABYTES = 8
const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
const files = Array.from({ length: 24 }, (_, i) => ({
  name: `film-${String(i)}.mov`,
  gigabytes: (i % 4) + 1,
}))
let inUse = 0
let most = 0
let converted = 0

async function convert(gigabytes: number): Promise<void> {
  inUse += gigabytes
  most = Math.max(most, inUse)
  await sleep(10 * gigabytes)
  inUse -= gigabytes
  converted += 1
}

async function worker(): Promise<void> {
  const redis = new Redis(url)
  const holdfast = new Holdfast(redis)
  const memory = holdfast.semaphore('converter:memory', { permits: GIGABYTES })
  for (let file = files.shift(); file !== undefined; file = files.shift()) {
    const { gigabytes } = file
    await memory.using(gigabytes, { waitTime: 30_000 }, () => convert(gigabytes))
  }
  await holdfast.close()
  redis.disconnect()
}

await Promise.all(Array.from({ length: 6 }, () => worker()))

// What an operator does who gives the machine more memory, or finds that a worker died with some of it.
const redis = new Redis(url)
const holdfast = new Holdfast(redis)
await holdfast.semaphore('converter:memory').add(4)
console.log(`${String(converted)} films, at most ${String(most)} GB at once`)
console.log(`now ${String(await holdfast.semaphore('converter:memory').available())} GB are free`)
await holdfast.close()
redis.disconnect()
if (converted !== 24 || most > GIGABYTES) throw new Error('The memory did not suffice')
