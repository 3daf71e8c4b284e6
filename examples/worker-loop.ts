// Several workers take jobs from one list; the jobs of one customer must not overlap, those of others may.
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'redis'
import { Holdfast } from 'holdfast'

const client = createClient({ url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' })
client.on('error', (error) => {
  console.error(`Redis: ${String(error)}`)
})
await client.connect()
const holdfast = new Holdfast(client)

const jobs = Array.from({ length: 12 }, (_, i) => ({ id: i + 1, customer: `customer-${String(i % 3)}` }))
const busy = new Set<string>()
let done = 0

async function worker(): Promise<void> {
  for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
    const { customer } = job
    await holdfast.lock(`jobs:${customer}`).using(async () => {
      if (busy.has(customer)) throw new Error(`Two jobs of ${customer} at once`)
      busy.add(customer)
      await sleep(20)
      busy.delete(customer)
      done += 1
    })
  }
}

await Promise.all([worker(), worker(), worker(), worker()])
console.log(`${String(done)} jobs done, never two of one customer at once`)
await holdfast.close()
await client.close()
if (done !== 12) throw new Error('Not every job was done')
