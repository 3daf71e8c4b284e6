// A cron job that several hosts start at about the same time, and that must run once. The hosts' clocks differ by
// 200 ms and the work takes 10 ms, so the lock alone would let the late host run it again: `minHold` keeps it closed.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
let runs = 0

async function host(name: string, lateMs: number): Promise<void> {
  const redis = new Redis(url)
  const holdfast = new Holdfast(redis)
  await sleep(lateMs)
  const done = await holdfast.lock('cron:nightly-report').tryUsing({ minHold: 2_000 }, async () => {
    runs += 1
    await sleep(10)
  })
  console.log(`${name}: ${done.acquired ? 'ran the job' : 'left it to somebody else'}`)
  await holdfast.close()
  await redis.quit()
}

await Promise.all([host('host A', 0), host('host B', 200)])
if (runs !== 1) throw new Error(`The job ran ${String(runs)} times`)
