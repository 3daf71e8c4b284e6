/**
 * Stands in the queue of a fair lock. Arguments: the port, how many waiters, how long each place is kept. Prints how
 * many stand there; each one that is served notes its number in the list `served` and then lets go.
 */
import { Redis } from 'ioredis'
import { Holdfast } from '../../../src/index.js'

const [port = 0, count = 1, placeMs = 300_000, first = 0] = process.argv.slice(2).map(Number)
const client = new Redis({ port, host: '127.0.0.1' })
const holdfast = new Holdfast(client, { fairLockWaitTimeout: placeMs })
const lock = holdfast.fairLock('orders:42')

const queued = async (): Promise<number> => client.llen('redisson_lock_queue:{orders:42}')
const work: Promise<unknown>[] = []
for (let i = first; i < first + count; i++) {
  const before = await queued()
  work.push(lock.using(() => client.rpush('served', i)))
  while ((await queued()) <= before) await new Promise((resolve) => setTimeout(resolve, 2))
}
console.log('queued')
await Promise.all(work)
await holdfast.close()
client.disconnect()
