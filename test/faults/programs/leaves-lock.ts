/** Takes locks, waits for one, closes its client, and has nothing more to do. Arguments: the library and the port. */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { Holdfast } from '../../../src/index.js'

const [library, port] = process.argv.slice(2)

async function connect(): Promise<{ readonly client: object; readonly close: () => void }> {
  if (library === 'ioredis') {
    const client = new Redis({ port: Number(port) })
    return { client, close: client.disconnect.bind(client) }
  }
  const client = createClient({ url: `redis://127.0.0.1:${String(port)}` })
  await client.connect()
  return { client, close: client.destroy.bind(client) }
}

const { client, close } = await connect()
const holdfast = new Holdfast(client)
await holdfast.lock('with a watchdog').acquire()
await holdfast.mutex('with a lease time').acquire({ leaseTime: 60_000 })
const busy = await holdfast.lock('taken before').tryAcquire({ waitTime: 200 })
console.log(busy === null ? 'holds and has waited' : 'had the wrong lock')
close()
