// A long job that stops when its lock is lost. Here an operator takes the lock away in the middle; an expiry, or a
// server that cannot be reached, would tell the job in the same way.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast, LeaseLostError, type Lease } from 'holdfast'

const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
const holdfast = new Holdfast(redis, { lockWatchdogTimeout: 900 })
const lock = holdfast.lock('migration:orders')
let steps = 0

async function migrate(lease: Lease): Promise<number> {
  while (steps < 100 && !lease.signal.aborted) {
    // Right before each step that must not happen twice; the signal alone may come a turn later.
    lease.assertHeld()
    steps += 1
    await sleep(50, undefined, { signal: lease.signal }).catch(() => undefined)
  }
  return steps
}

setTimeout(() => void lock.forceRelease(), 300)
try {
  await lock.using(migrate)
  throw new Error('The loss was expected')
} catch (error) {
  if (!(error instanceof LeaseLostError)) throw error
  console.log(`stopped after ${String(error.value)} of 100 steps: ${error.message}`)
}
await holdfast.close()
await redis.quit()
