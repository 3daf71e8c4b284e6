/** Goes on using locks while its server goes and comes. Argument: the port. */
import { Redis } from 'ioredis'
import { Holdfast } from '../../../src/index.js'

const client = new Redis({ port: Number(process.argv[2]) })
// As small programs do, it has no listener for errors but the client's.
client.on('error', () => undefined)
const holdfast = new Holdfast(client, { lockWatchdogTimeout: 300, commandTimeout: 200 })

const held = await holdfast.lock('held').acquire()
void holdfast
  .lock('taken before')
  .acquire()
  .then(() => {
    console.log('got what was taken before')
  })
held.signal.addEventListener('abort', () => {
  console.log('lost')
})

let told = ''
for (;;) {
  const now = await holdfast
    .lock('other')
    .using({ waitTime: 100 }, () => 'served')
    .catch((error: unknown) => String(Reflect.get(error as object, 'code')))
  if (now !== told) console.log(now)
  told = now
  await new Promise((resolve) => setTimeout(resolve, 20))
}
