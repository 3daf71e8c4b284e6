// Heap per held lock and per waiter, and heap after many different names. Prints one JSON object.
// usage: node --expose-gc bench/memory.mjs REDIS_URL COUNT NAMES
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const [url, count, names] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const redis = new Redis(url)
const holdfast = new Holdfast(redis)

async function heap() {
  for (let i = 0; i < 4; i++) {
    globalThis.gc()
    await new Promise((done) => setTimeout(done, 20))
  }
  return process.memoryUsage().heapUsed
}

async function cycle(from, to) {
  for (let first = from; first < to; first += 100) {
    const batch = Array.from({ length: 100 }, (_, i) =>
      holdfast.lock(`bench:name:${String(first + i)}`).using(() => undefined),
    )
    await Promise.all(batch)
  }
}

await cycle(0, 2_000)
const idle = await heap()
const leases = await Promise.all(
  Array.from({ length: count }, (_, i) => holdfast.lock(`bench:held:${String(i)}`).acquire()),
)
const held = await heap()
await Promise.all(leases.map((lease) => lease.release()))
leases.length = 0

const holder = await holdfast.lock('bench:one').acquire()
const beforeWaiting = await heap()
const waiters = Array.from({ length: count }, () =>
  holdfast
    .lock('bench:one')
    .acquire({ waitTime: 600_000 })
    .then((lease) => lease.release()),
)
await new Promise((done) => setTimeout(done, 300))
const waiting = await heap()
const begun = performance.now()
await holder.release()
await Promise.all(waiters)
const drainedMs = performance.now() - begun
waiters.length = 0

const beforeNames = await heap()
await cycle(2_000, 2_000 + names)
const afterNames = await heap()
await holdfast.close()
redis.disconnect()
console.log(
  JSON.stringify({
    count,
    names,
    perHeldLock: (held - idle) / count,
    perWaiter: (waiting - beforeWaiting) / count,
    drainedMs,
    growth: afterNames - beforeNames,
    left: holdfast.stats(),
  }),
)
