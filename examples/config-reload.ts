// A service that takes a new configuration while it runs. Each copy reloads when the key changes, goes back to the defaults when
// it is removed or expires, and exactly one of the copies writes down in a log what was changed.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
const KEY = 'config:limits'
const DEFAULTS = { requestsPerSecond: 10 }
const log: string[] = []

/** One copy of the service. */
async function service(name: string) {
  const redis = new Redis(url)
  const holdfast = new Holdfast(redis)
  let config = DEFAULTS

  const reload = async (): Promise<void> => {
    const text = await redis.get(KEY)
    // A broken text throws: the old configuration stays, and onError is told.
    config = text === null ? DEFAULTS : (JSON.parse(text) as typeof DEFAULTS)
  }
  const watch = holdfast.watch(KEY, {
    interval: 100,
    onChange: reload,
    onDelete: reload,
    onExpire: reload,
    onError: (error) => {
      console.log(`${name}: keeps ${JSON.stringify(config)} (${String(error)})`)
    },
  })
  // First watch, then read: nothing is missed in between.
  await watch.ready
  await reload()

  const audit = holdfast.watch(KEY, {
    interval: 100,
    under: holdfast.lock('config:limits:audit'),
    onChange: async ({ key }) => void log.push(`${key} = ${String(await redis.get(key))}`),
    onExpire: ({ key }) => log.push(`${key} has expired`),
  })
  await audit.ready

  return {
    limit: () => config.requestsPerSecond,
    stop: async () => {
      await holdfast.close()
      await redis.quit()
    },
  }
}

const copies = [await service('copy 1'), await service('copy 2')]
const admin = new Redis(url)

async function allHave(limit: number, logged: number): Promise<void> {
  for (let i = 0; i < 500; i += 1) {
    if (copies.every((copy) => copy.limit() === limit) && log.length === logged) return
    await sleep(20)
  }
  throw new Error(
    `The copies have ${copies.map((copy) => copy.limit()).join(', ')}; ${String(log.length)} logged`,
  )
}

await allHave(10, 0)
await admin.set(KEY, JSON.stringify({ requestsPerSecond: 50 }))
await allHave(50, 1)
await admin.set(KEY, '{ broken')
await sleep(300)
await allHave(50, 2)
await admin.set(KEY, JSON.stringify({ requestsPerSecond: 80 }), 'PX', 500)
await allHave(80, 3)
await allHave(10, 4)
console.log(log.join('\n'))

await Promise.all(copies.map((copy) => copy.stop()))
await admin.quit()
