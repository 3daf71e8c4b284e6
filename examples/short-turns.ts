// Many short turns: four services draw tickets of a small stock, a few milliseconds each. A spin lock needs no channel
// and no subscriber connection, and its waiters are back at the latest after 20 ms.
import { Redis } from 'ioredis'
import { exponentialBackoff, Holdfast } from 'holdfast'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
const store = new Redis(url)
const STOCK = 40
await store.set('tickets', STOCK)

async function service(): Promise<number> {
  const redis = new Redis(url)
  const holdfast = new Holdfast(redis)
  const lock = holdfast.spinLock('lock:tickets', { backoff: exponentialBackoff({ max: 20 }) })
  let sold = 0
  for (let left = STOCK; left > 0;) {
    left = await lock.using({ leaseTime: 2_000 }, async () => {
      // Read and written in two steps: without the lock two services would sell the same ticket.
      const there = Number(await redis.get('tickets'))
      if (there === 0) return 0
      await redis.set('tickets', there - 1)
      sold += 1
      return there - 1
    })
  }
  await holdfast.close()
  await redis.quit()
  return sold
}

const sold = await Promise.all([service(), service(), service(), service()])
console.log(`sold by each service: ${sold.join(', ')}`)
const total = sold.reduce((sum, count) => sum + count, 0)
if (total !== STOCK) throw new Error(`${String(total)} tickets were sold, but there were ${String(STOCK)}`)
await store.quit()
