/** Loses locks under handlers that throw, and says how the others fare. Argument: the port. */
import { subscribe } from 'node:diagnostics_channel'
import { Redis } from 'ioredis'
import { Holdfast } from '../../../src/index.js'
import { eventually } from '../../support/eventually.js'

const thrown: string[] = []
process.on('uncaughtException', (error) => thrown.push(error.message))
process.on('unhandledRejection', (error) => thrown.push(String(error)))

const client = new Redis({ port: Number(process.argv[2]) })
const holdfast = new Holdfast(client, { lockWatchdogTimeout: 300 })
const [throwing, rejecting, quiet, bystander] = await Promise.all(
  ['throwing', 'rejecting', 'quiet', 'bystander'].map((name) => holdfast.lock(name).acquire()),
)
if (!throwing || !rejecting || !quiet || !bystander) throw new Error('four were taken')
let renewals = 0
subscribe('holdfast:renew:ok', () => {
  renewals += 1
  if (renewals < 3) throw new Error('from the renewal event')
})
subscribe('holdfast:lost', () => {
  throw new Error('from the lost event')
})
throwing.signal.addEventListener('abort', () => {
  throw new Error('from the signal')
})
// As careless programs do: the listener's own promise is nobody's.
const reject = (): unknown => Promise.reject(new Error('from the async signal'))
rejecting.signal.addEventListener('abort', reject)
let quietTold = false
quiet.signal.addEventListener('abort', () => {
  quietTold = true
})

await client.del('throwing', 'rejecting', 'quiet')
await eventually(() => quietTold, 'the one after those that throw is told')
const before = renewals
await eventually(() => renewals > before + 5, 'the last one is renewed on')
console.log(
  JSON.stringify({
    held: bystander.held,
    exists: await client.exists('bystander'),
    thrown: [...new Set(thrown)],
  }),
)
await holdfast.close({ drain: 0 })
process.exit()
