/**
 * The safety run: worker processes take turns on locks while faults are made, and what they wrote down is judged.
 * See `--help`. The last line counts the checks.
 */
import { writeFileSync } from 'node:fs'
import { HELP, parseArguments, type RunOptions } from './arguments.js'
import { judge, judgeSoFar } from './checker.js'
import { FAULTS, type Fault } from './faults.js'
import { now } from './journal.js'
import type { Manners } from './messages.js'
import { BrokenCopy, MUTANTS, type Mutant } from './mutants.js'
import { Random } from './random.js'
import { pageOf } from './report-page.js'
import { printChecks, printTable, printTotals } from './report.js'
import { thingsOf } from './things.js'
import { World } from './world.js'

const SOURCE = new URL('../../src/index.ts', import.meta.url).href
const MANNERS: Manners = { greed: 0.08, haste: 0.05, leased: 0.4, restMs: 60 }
/** Those of the short form: a lock, readers and writers, permits. */
const SHORT_MUTANTS: readonly string[] = ['release-blind', 'writer-unasked', 'permit-short']
const PROGRESS_EVERY_MS = 20_000
const CAUGHT_WITHIN_MS = 60_000

interface Counts {
  passed: number
  failed: number
}

/** The library as it is, under all faults. */
async function honest(options: RunOptions, mutants: readonly Tried[]): Promise<Counts> {
  const { seed, workers, client } = options
  const things = thingsOf(options.objects)
  console.log(`\n${options.objects.join(', ')}: ${String(workers)} workers, seed ${seed}`)
  await using world = await World.open({ seed, workers, things, client, manners: MANNERS, source: SOURCE })
  await makeFaults(world, options)
  const story = await world.finish()
  printTotals(story)
  if (!options.short) printTable(story)
  const findings = judge(story)
  const counts = printChecks(story, findings)
  if (options.report !== undefined) {
    const command = ['npm run test:safety --', ...process.argv.slice(2)].join(' ')
    const date = new Date().toISOString().slice(0, 10)
    const facts = { command, date, server: await world.version(), mutants }
    writeFileSync(options.report, pageOf(story, findings, facts))
  }
  if (counts.failed > 0) console.log(`the histories are in ${world.keep()}`)
  return counts
}

/** Every fault once, and then over again in another order, until the time is over. */
async function makeFaults(world: World, { seed, seconds }: RunOptions): Promise<void> {
  const random = new Random(`faults ${seed}`)
  const tellProgress = progress()
  const endAt = seconds === undefined ? 0 : now() + seconds * 1_000
  do {
    for (const fault of random.shuffled<Fault>(Object.values(FAULTS))) {
      if (world.crash !== undefined || (seconds !== undefined && now() >= endAt)) return
      await world.rest(50, 300)
      await world.make(fault)
      tellProgress()
    }
  } while (world.crash === undefined && now() < endAt)
}

function progress(): () => void {
  const startedAt = now()
  let faults = 0
  let next = PROGRESS_EVERY_MS
  return () => {
    faults += 1
    const ms = now() - startedAt
    if (ms < next) return
    next += PROGRESS_EVERY_MS
    console.log(`  ${(ms / 1_000).toFixed(0)} s: ${String(faults)} faults made and healed`)
  }
}

/** A broken lock, until a check finds it. */
async function broken(mutant: Mutant, { seed, workers, client }: RunOptions): Promise<Counts> {
  using copy = new BrokenCopy(mutant)
  const { source } = copy
  const things = thingsOf([mutant.kind])
  const { manners } = mutant
  await using world = await World.open({ seed, workers, things, client, manners, source })
  const startedAt = now()
  for (let turn = 0; world.crash === undefined && now() - startedAt < CAUGHT_WITHIN_MS; turn++) {
    const fault = mutant.faults[turn % mutant.faults.length]
    if (fault === undefined) break
    await world.make(fault)
    if (found(world, mutant, startedAt)) return { passed: 1, failed: 0 }
  }
  console.log(`FAILED  not found: ${mutant.name} (${mutant.what})`)
  if (world.crash !== undefined) console.log(`        ${world.crash}`)
  return { passed: 0, failed: 1 }
}

function found(world: World, { name, what, caughtBy }: Mutant, startedAt: number): boolean {
  const story = world.story()
  const finding = judgeSoFar(story).find(({ check }) => caughtBy.includes(check))
  if (finding === undefined) return false
  const seconds = ((now() - startedAt) / 1_000).toFixed(1)
  console.log(`  ok    found after ${seconds} s: ${name} (${what})`)
  console.log(`        ${finding.what}`)
  return true
}

function chosenMutants({ short, mutant }: RunOptions): readonly Mutant[] {
  const names = mutant === undefined ? (short ? SHORT_MUTANTS : undefined) : [mutant]
  return names === undefined ? MUTANTS : MUTANTS.filter(({ name }) => names.includes(name))
}

interface Tried extends Mutant {
  readonly caught: boolean
}

async function main(args: readonly string[]): Promise<number> {
  const options = parseArguments(args)
  if (options === undefined) {
    console.log(HELP)
    return 0
  }
  const counts: Counts = { passed: 0, failed: 0 }
  const add = ({ passed, failed }: Counts): void => {
    counts.passed += passed
    counts.failed += failed
  }
  const mutants = chosenMutants(options)
  if (mutants.length > 0) console.log(`locks that are broken on purpose: seed ${options.seed}`)
  const tried: Tried[] = []
  for (const mutant of mutants) {
    const result = await broken(mutant, options)
    add(result)
    tried.push({ ...mutant, caught: result.failed === 0 })
  }
  if (options.mutant === undefined || options.mutant === 'none') add(await honest(options, tried))
  console.log(`${String(counts.passed)} passed, ${String(counts.failed)} failed`)
  return counts.failed === 0 ? 0 : 1
}

// So that what runs at the exit runs then too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  console.error(error instanceof TypeError ? `safety run: ${error.message}` : error)
  process.exitCode = error instanceof TypeError ? 2 : 1
}
