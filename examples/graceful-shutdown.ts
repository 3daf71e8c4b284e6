// On SIGTERM: no new work, waiting calls end, running work finishes under its lock, then the process exits by itself.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { ClosedError, Holdfast } from 'holdfast'

const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
const holdfast = new Holdfast(redis)

async function shutDown(): Promise<void> {
  console.log('SIGTERM: closing')
  await holdfast.close({ drain: 5_000 })
  await redis.quit()
  console.log('closed')
}
process.once('SIGTERM', () => void shutDown())

const work = holdfast.lock('shutdown:job').using(async (lease) => {
  await sleep(400)
  console.log(`the work is finished, its lock was held to the end: ${String(lease.held)}`)
})
const waiter = holdfast
  .lock('shutdown:job')
  .acquire()
  .catch((error: unknown) => {
    if (!(error instanceof ClosedError)) throw error
    console.log(`a waiting call was told: ${error.message}`)
  })

setTimeout(() => process.kill(process.pid, 'SIGTERM'), 100)
await Promise.all([work, waiter])
