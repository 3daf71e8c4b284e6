// One of several schedulers leads: whoever has a majority of three independent servers. It goes on leading while one
// of the servers is away. Give three addresses in REDIS_URLS; without it three stores in this process stand for them.
import { Holdfast } from 'holdfast'

const urls = process.env['REDIS_URLS']?.split(',') ?? ['memory:a', 'memory:b', 'memory:c']

/** As a process of its own would do it. */
async function scheduler(name: string, ticks: string[]): Promise<void> {
  const members = await Promise.all(urls.map((url) => Holdfast.connect(url)))
  const [first] = members
  if (first === undefined) throw new Error('no server was given')
  const lead = first.redLock('scheduler:leader', members)
  const led = await lead.tryUsing({ waitTime: 2_000 }, async (lease) => {
    for (let tick = 0; tick < 3; tick++) {
      // Whoever does not lead any more stops at once.
      lease.assertHeld()
      ticks.push(name)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })
  console.log(`${name} ${led.acquired ? 'has led' : 'was not needed'}`)
  await Promise.all(members.map((member) => member.close()))
}

const ticks: string[] = []
await Promise.all(['north', 'south', 'west'].map((name) => scheduler(name, ticks)))
const turns = ticks.filter((name, i) => name !== ticks[i - 1]).length
console.log(`${String(ticks.length)} ticks in ${String(turns)} terms: ${ticks.join(' ')}`)
if (turns !== new Set(ticks).size) throw new Error('two led at once')
