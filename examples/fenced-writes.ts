// Writes that a stalled worker cannot spoil. One worker holds the lock, reads the balance and then stands still for
// longer than its lease, as by a long garbage collection or a suspended machine. Another one takes over. When the first
// goes on it believes in what it has read, but the store has seen a higher token and refuses it.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast, RedisGuard, StaleTokenError } from 'holdfast'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
const redis = new Redis(url)
const guard = new RedisGuard(redis)
const account = guard.value('account:42')

/** Adds to the balance under the lock; `stallMs` is where this worker stands still. */
async function add(worker: string, amount: number, stallMs: number): Promise<boolean> {
  const holdfast = new Holdfast(redis)
  // The renewal that a worker at a standstill would miss is left out, so that the lease ends while it stands.
  const lease = await holdfast.fencedLock('lock:account:42').acquire({ leaseTime: 200 })
  try {
    // This read tells the store who is the newest now: lower tokens are refused from here on.
    const balance = Number((await account.read(lease.token)) ?? 0)
    console.log(`${worker} (token ${String(lease.token)}) reads ${String(balance)}`)
    await sleep(stallMs)
    await account.write(lease.token, String(balance + amount))
    console.log(`${worker} writes ${String(balance + amount)}`)
    return true
  } catch (error) {
    if (!(error instanceof StaleTokenError)) throw error
    console.log(`${worker} is refused: ${error.message}`)
    return false
  } finally {
    await lease.release()
    await holdfast.close()
  }
}

const stalled = add('worker A', 10, 600)
await sleep(100)
const [a, b] = await Promise.all([stalled, add('worker B', 5, 0)])
if (a || !b) throw new Error('Worker A should have been refused, and worker B not')

// Worker A has learnt that it was too late, and does it again.
await add('worker A', 10, 0)
const reader = new Holdfast(redis)
const end = await reader.fencedLock('lock:account:42').using((lease) => account.read(lease.token))
await reader.close()
console.log(`in the end: ${String(end)}`)
if (end !== '15') throw new Error('Something was lost')

await guard.close()
await redis.quit()
