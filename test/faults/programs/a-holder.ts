/**
 * Takes the lock and does nothing about trouble: no listener anywhere. Arguments: the port, the watchdog time-out.
 * SIGUSR2: says whether it holds the lock. SIGHUP: blocks its event loop for two time-outs, then says it.
 * SIGTERM: gives back and ends.
 */
import { Redis } from 'ioredis'
import { Holdfast } from '../../../src/index.js'

const [port, timeout] = process.argv.slice(2).map(Number)
const client = new Redis({ port: port ?? 0, host: '127.0.0.1', disconnectTimeout: 100 })
const holdfast = new Holdfast(client, { lockWatchdogTimeout: timeout, commandTimeout: 300 })
const keepAlive = setInterval(() => undefined, 60_000)

const lease = await holdfast.lock('orders:42').acquire()

function say(): void {
  console.log(`held ${String(lease.held)}`)
}

async function end(): Promise<void> {
  console.log(`release ${await lease.release()}`)
  clearInterval(keepAlive)
  await holdfast.close()
  client.disconnect()
}

process.on('SIGUSR2', say)
process.on('SIGHUP', () => {
  const until = performance.now() + 2 * (timeout ?? 0)
  while (performance.now() < until);
  say()
})
process.on('SIGTERM', () => void end())
console.log(lease.owner)
console.log('holding')
