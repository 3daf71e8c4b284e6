/** Takes two permits of three, without a lease time, and holds them. Arguments: the port, the watchdog's time-out. */
import { Redis } from 'ioredis'
import { Holdfast } from '../../../src/index.js'

const [port, lockWatchdogTimeout] = process.argv.slice(2).map(Number)
const holdfast = new Holdfast(new Redis({ port: port ?? NaN }), { lockWatchdogTimeout })
const lease = await holdfast.permitSemaphore('downloads', { permits: 3 }).acquire(2)
console.log(`holds ${String(lease.ids.length)}`)
setInterval(() => lease.assertHeld(), 1_000)
