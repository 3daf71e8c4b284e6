// A cache of prices that many request handlers read and one rebuild at a time replaces, entry by entry. Readers must
// never see half of the old prices and half of the new ones, and must not wait for each other. When the rebuild is done,
// the one that did it goes on reading what it wrote (downgrade), while the others come in again at once.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
const ITEMS = Array.from({ length: 20 }, (_, i) => `price:${String(i)}`)
let rebuilding = true
let atOnce = 0
let most = 0

const service = () => {
  const redis = new Redis(url)
  const holdfast = new Holdfast(redis)
  const { read, write } = holdfast.readWriteLock('prices')
  const close = async (): Promise<void> => {
    await holdfast.close()
    await redis.quit()
  }
  return { redis, read, write, close }
}

async function handleRequests(requests: number): Promise<number> {
  const { redis, read, close } = service()
  const handle = async (): Promise<void> => {
    while (rebuilding) {
      await read.using(async () => {
        most = Math.max(most, (atOnce += 1))
        const versions = new Set<string | null>()
        for (const item of ITEMS) versions.add(await redis.get(item))
        atOnce -= 1
        if (versions.size !== 1) throw new Error(`Prices of several versions: ${[...versions].join(', ')}`)
      })
      served += 1
      await sleep(1)
    }
  }
  let served = 0
  await Promise.all(Array.from({ length: requests }, handle))
  await close()
  return served
}

async function rebuildPrices(versions: number): Promise<void> {
  const { redis, read, write, close } = service()
  for (let version = 1; version <= versions; version++) {
    await write.using(async (writing) => {
      for (const item of ITEMS) {
        writing.assertHeld()
        await redis.set(item, `version ${String(version)}`)
      }
      // From here on the others may read, too; nobody can write before this read is over.
      await read.using(async () => {
        await writing.release()
        const written = await redis.get('price:0')
        console.log(`rebuilt and read back: ${String(written)}`)
      })
    })
    await sleep(50)
  }
  rebuilding = false
  await close()
}

const [one, two] = await Promise.all([handleRequests(4), handleRequests(4), rebuildPrices(5)])
console.log(`${String(one + two)} requests served, up to ${String(most)} at once`)
if (one === 0 || two === 0 || most < 2) throw new Error('The readers did not read together')
