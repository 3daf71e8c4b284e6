/** Takes and frees locks of every kind in every way, without end. Argument: the port. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from '../../../src/index.js'

const holdfast = new Holdfast(new Redis({ port: Number(process.argv[2]) }), { lockWatchdogTimeout: 300 })

async function work(name: string): Promise<void> {
  for (let round = 0; ; round++) {
    await holdfast.lock(`lock:${name}`).using(async (lease) => {
      if (round % 2 === 0) await sleep(1)
      else await holdfast.lock(`lock:${name}`).using(() => undefined)
      if (round % 3 === 0) await lease.extend(60_000)
    })
    const lease = await holdfast.mutex(`mutex:${name}`).acquire({ minHold: round % 2 === 0 ? 1 : 0 })
    await lease.release()
    if (round === 0) console.log(`working on ${name}`)
  }
}

await Promise.all(['a', 'b', 'c', 'd'].map(work))
