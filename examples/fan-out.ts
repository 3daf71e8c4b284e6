// A report is put together from parts that several workers make; the one who asked waits until all of them are done.
// Each worker here is a Holdfast of its own, as if it ran in another process.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
const REPORT = 'report:2026-07'
const PARTS = ['sales', 'costs', 'stock', 'staff', 'forecast']

async function worker(): Promise<void> {
  const redis = new Redis(url)
  const holdfast = new Holdfast(redis)
  const latch = holdfast.countDownLatch(`${REPORT}:open-parts`)
  for (
    let part = await redis.lpop(`${REPORT}:todo`);
    part !== null;
    part = await redis.lpop(`${REPORT}:todo`)
  ) {
    await sleep(20)
    await redis.hset(`${REPORT}:parts`, part, part.length * 100)
    // After the result is there, never before: who waits reads it next.
    const left = await latch.countDown()
    console.log(`${part} is done, ${String(left)} to go`)
  }
  await holdfast.close()
  redis.disconnect()
}

const redis = new Redis(url)
const holdfast = new Holdfast(redis)
const latch = holdfast.countDownLatch(`${REPORT}:open-parts`)
// The count is there before the work is: nobody can be done too early.
if (!(await latch.trySetCount(PARTS.length))) throw new Error('The report is being made already')
await redis.rpush(`${REPORT}:todo`, ...PARTS)
const workers = [worker(), worker(), worker()]

try {
  await latch.wait({ waitTime: 20_000 })
  const parts = await redis.hgetall(`${REPORT}:parts`)
  if (Object.keys(parts).length !== PARTS.length) throw new Error('A part is missing')
  console.log(`the report has ${String(Object.keys(parts).length)} parts`)
} finally {
  // If it took too long: whoever waits elsewhere is let go, too.
  await latch.delete()
  await Promise.all(workers)
}
await holdfast.close()
redis.disconnect()
