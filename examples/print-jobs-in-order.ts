// Three front desks share one printer. Jobs are printed in the order of their coming, whatever the desk, each as a whole;
// a customer who leaves gives the place in the queue up.
import { subscribe } from 'node:diagnostics_channel'
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'
const folder = await mkdtemp(join(tmpdir(), 'printer-'))
const paper = join(folder, 'paper.txt')

// In real life each desk is a process of its own.
const desks = ['north', 'south', 'east'].map((name) => {
  const client = new Redis(url)
  return { name, client, holdfast: new Holdfast(client) }
})

interface Job {
  readonly desk: number
  readonly title: string
  readonly pages: number
  readonly signal?: AbortSignal
}

async function print({ desk, title, pages, signal }: Job): Promise<string> {
  const printer = desks[desk]?.holdfast.fairLock('printer:first-floor')
  if (printer === undefined) throw new Error('No such desk')
  try {
    return await printer.using({ signal }, async () => {
      for (let page = 1; page <= pages; page++) {
        await sleep(100)
        await appendFile(paper, `${title} ${String(page)}/${String(pages)}\n`)
      }
      return `${title}: printed`
    })
  } catch (error) {
    if (signal?.aborted !== true) throw error
    return `${title}: ${String(signal.reason)}`
  }
}

const impatient = new AbortController()
const jobs: Job[] = [
  { desk: 0, title: 'report', pages: 3 },
  { desk: 1, title: 'invoice', pages: 1 },
  { desk: 2, title: 'menu', pages: 2, signal: impatient.signal },
  { desk: 0, title: 'ticket', pages: 1 },
  { desk: 1, title: 'poster', pages: 2 },
]
// So that the order is known here: each job comes when the one before it is served or stands in the queue.
let came = 0
for (const channel of ['holdfast:acquire:granted', 'holdfast:acquire:wait'])
  subscribe(channel, () => (came += 1))
const printing: Promise<string>[] = []
for (const job of jobs) {
  printing.push(print(job))
  while (came < printing.length) await sleep(1)
}
impatient.abort('the customer left')
for (const line of await Promise.all(printing)) console.log(line)

const printed = (await readFile(paper, 'utf8')).trim().split('\n')
const expected = [
  'report 1/3',
  'report 2/3',
  'report 3/3',
  'invoice 1/1',
  'ticket 1/1',
  'poster 1/2',
  'poster 2/2',
]
await Promise.all(desks.map(({ holdfast }) => holdfast.close()))
for (const { client } of desks) client.disconnect()
await rm(folder, { recursive: true })
if (printed.join() !== expected.join()) throw new Error(`Out of order: ${printed.join(', ')}`)
