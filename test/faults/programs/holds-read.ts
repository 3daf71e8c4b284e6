/** Holds a lock for reading until it is killed. Arguments: the port, the watchdog time-out. */
import { Redis } from 'ioredis'
import { Holdfast } from '../../../src/index.js'

const [port, timeout] = process.argv.slice(2).map(Number)
const client = new Redis({ port: port ?? 0, host: '127.0.0.1' })
const holdfast = new Holdfast(client, { lockWatchdogTimeout: timeout })
setInterval(() => undefined, 60_000)

const lease = await holdfast.readWriteLock('catalogue').read.acquire()
console.log(lease.owner)
console.log('reading')
