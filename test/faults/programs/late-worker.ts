/**
 * Works under the lock and closes gracefully on SIGTERM. Arguments: the port, how long to drain, how long the work
 * goes on after the signal. The end of the work is noted in Redis under the key `work`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast, HoldfastError } from '../../../src/index.js'

const [port = 0, drain, rest] = process.argv.slice(2).map(Number)
const client = new Redis({ port, host: '127.0.0.1' })
const holdfast = new Holdfast(client, { lockWatchdogTimeout: 3_000 })
const lock = holdfast.lock('orders:42')

function codeOf(error: unknown): string {
  return error instanceof HoldfastError ? error.code : String(error)
}

const told = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => {
    resolve()
  })
})
const closing = told.then(async () => {
  await holdfast.close({ drain })
  console.log('closed')
})

const working = lock.using(async (lease) => {
  lease.signal.addEventListener('abort', () => {
    console.log('aborted')
  })
  console.log('working')
  await told
  await lock.using(() => {
    console.log('nested')
  })
  await sleep(rest)
  await client.set('work', 'over')
  return 'done'
})
console.log(await working.catch(codeOf))
console.log(await lock.acquire().catch(codeOf))
await closing
client.disconnect()
