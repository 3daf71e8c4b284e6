// The first lock in plain JavaScript.
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379')
const holdfast = new Holdfast(redis)

const answer = await holdfast.lock('orders:42').using(async (lease) => {
  console.log(`held by ${lease.owner} for at least ${Math.round(lease.remaining)} ms more`)
  return 'done'
})
console.log(answer)

await holdfast.close()
await redis.quit()
