// A partner's server bears three downloads at a time, however many processes of ours want something from it. Each
// process here is a Holdfast of its own; one of them dies with a permit in its hands, and the permit comes back.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const LIMIT = 3
const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
let running = 0
let most = 0

// The partner: it answers slowly, and with 429 to the fourth at a time.
const partner = createServer((_request, response) => {
  running += 1
  most = Math.max(most, running)
  response.statusCode = running > LIMIT ? 429 : 200
  setTimeout(() => {
    running -= 1
    response.end('a file')
  }, 30)
}).listen(0, '127.0.0.1')
await new Promise((resolve) => partner.once('listening', resolve))
const { port } = partner.address() as AddressInfo

async function downloader(files: number): Promise<number> {
  const redis = new Redis(url)
  const holdfast = new Holdfast(redis)
  const downloads = holdfast.permitSemaphore('partner:downloads', { permits: LIMIT })
  const statuses = await Promise.all(
    Array.from({ length: files }, (_, i) =>
      // The download ends if the permit is lost, so that nobody comes on top of it.
      downloads.using({ waitTime: 20_000 }, async ({ signal }) => {
        const response = await fetch(`http://127.0.0.1:${String(port)}/${String(i)}`, { signal })
        await response.text()
        return response.status
      }),
    ),
  )
  await holdfast.close()
  await redis.quit()
  return statuses.filter((status) => status === 200).length
}

/** Takes a permit for a second and is never heard of again. */
async function crash(): Promise<void> {
  const redis = new Redis(url)
  const lease = await new Holdfast(redis, { lockWatchdogTimeout: 1_000 })
    .permitSemaphore('partner:downloads', { permits: LIMIT })
    .acquire()
  console.log(`a process dies with ${String(lease.ids.length)} of ${String(LIMIT)} permits`)
  redis.disconnect()
}

await crash()
const done = await Promise.all([downloader(8), downloader(8), downloader(8)])
console.log(`${String(done.reduce((sum, files) => sum + files, 0))} files, at most ${String(most)} at a time`)
partner.close()
if (most > LIMIT) throw new Error('The partner had too much to do')

const redis = new Redis(url)
const holdfast = new Holdfast(redis)
const downloads = holdfast.permitSemaphore('partner:downloads')
while ((await downloads.available()) < LIMIT) await sleep(50)
console.log(`all ${String(await downloads.total())} permits are back`)
await holdfast.close()
await redis.quit()
