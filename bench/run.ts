// `npm run bench`: every figure is a ratio from one run on one machine, the median of interleaved rounds.
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs, promisify } from 'node:util'
import { fileURLToPath } from 'node:url'
import { startRedis } from '../test/support/server.js'
import { median, range } from './statistics.mjs'

interface Throughput {
  readonly holdfast: string
  readonly node: string
  readonly result: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>
}

/** Rates per round of two cases: the second one is measured by the first. */
type Objects = Readonly<
  Record<string, { readonly base: readonly number[]; readonly compared: readonly number[] }>
>

interface Memory {
  readonly count: number
  readonly names: number
  readonly perHeldLock: number
  readonly perWaiter: number
  readonly drainedMs: number
  readonly growth: number
}

const AIMS: Readonly<Record<string, number>> = { sequential: 0.85, 'concurrent-64': 0.8 }
/** What each further object is to keep of the rate that it is measured by. */
const OBJECT_AIMS: Readonly<Record<string, number>> = {
  '64 readers of one lock, of 64 plain locks': 0.8,
  'a reader beside 500 readers, of one beside 1': 0.8,
  'a permit beside 10,000 live ones, of one beside 10': 0.66,
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    slice: { type: 'string', default: '400' },
    url: { type: 'string' },
    'no-memory': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

async function child(args: readonly string[]): Promise<unknown> {
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [...args], { cwd, maxBuffer: 2 ** 26 })
  return JSON.parse(stdout)
}

function row(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
    .join('  ')
}

function printThroughput({ result }: Throughput): boolean {
  const widths = [26, 12, 12, 22, 6]
  let reached = true
  for (const [name, rates] of Object.entries(result)) {
    console.log(`\n${name}: acquire + release of free locks`)
    console.log(row(['', 'pairs/s', 'of floor', 'rounds from … to', 'aim'], widths))
    for (const [contender, perRound] of Object.entries(rates)) {
      const floor = rates[`${contender.split(' ')[0] ?? ''} floor`] ?? perRound
      const ratios = perRound.map((rate, i) => rate / (floor[i] ?? rate))
      const [low, high] = range(ratios)
      const ours = /Lock|Mutex/.test(contender)
      const aim = ours ? (AIMS[name] ?? 0) : undefined
      if (aim !== undefined && median(ratios) < aim) reached = false
      const cells = [contender, median(perRound).toFixed(0), median(ratios).toFixed(3)]
      console.log(row([...cells, `${low.toFixed(3)} … ${high.toFixed(3)}`, aim?.toFixed(2) ?? ''], widths))
    }
  }
  return reached
}

function printObjects(objects: Objects): boolean {
  const widths = [52, 12, 12, 22, 6]
  let reached = true
  console.log(`\nfurther objects: acquire + release`)
  console.log(row(['', 'pairs/s', 'ratio', 'rounds from … to', 'aim'], widths))
  for (const [name, { base, compared }] of Object.entries(objects)) {
    const ratios = compared.map((rate, i) => rate / (base[i] ?? rate))
    const [low, high] = range(ratios)
    const aim = OBJECT_AIMS[name] ?? 0
    if (median(ratios) < aim) reached = false
    const cells = [name, median(compared).toFixed(0), median(ratios).toFixed(3)]
    console.log(row([...cells, `${low.toFixed(3)} … ${high.toFixed(3)}`, aim.toFixed(2)], widths))
  }
  return reached
}

function printMemory(memory: Memory): void {
  const count = memory.count.toLocaleString('en')
  console.log(`\nheap`)
  console.log(`  per held lock (${count} of them)        ${memory.perHeldLock.toFixed(0)} bytes`)
  console.log(`  per waiter (${count} on one lock)       ${memory.perWaiter.toFixed(0)} bytes`)
  console.log(
    `  growth after ${memory.names.toLocaleString('en')} more names      ${(memory.growth / 1024).toFixed(0)} KiB`,
  )
  console.log(`  ${count} waiters served one after another in ${memory.drainedMs.toFixed(0)} ms`)
}

async function main(): Promise<void> {
  if (values.help) {
    console.log('usage: npm run bench -- [--rounds N] [--slice MS] [--url redis://…] [--no-memory]')
    return
  }
  const server = values.url === undefined ? await startRedis() : undefined
  const url = values.url ?? server?.url ?? ''
  try {
    const throughput = (await child(['bench/throughput.mjs', url, values.rounds, values.slice])) as Throughput
    const reached = printThroughput(throughput)
    const objects = (await child(['bench/objects.mjs', url, values.rounds, values.slice])) as Objects
    const objectsReached = printObjects(objects)
    const memory = values['no-memory']
      ? undefined
      : ((await child(['--expose-gc', 'bench/memory.mjs', url, '10000', '100000'])) as Memory)
    if (memory !== undefined) printMemory(memory)
    mkdirSync(new URL('results/', import.meta.url), { recursive: true })
    writeFileSync(
      new URL('results/latest.json', import.meta.url),
      JSON.stringify({ throughput, objects, memory }, null, 2),
    )
    console.log('\nraw figures: bench/results/latest.json')
    if (reached && objectsReached) return
    console.log('An aim was missed; on a busy machine run it again alone.')
    process.exitCode = 1
  } finally {
    await server?.stop()
  }
}

await main()
