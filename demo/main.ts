/** `npm run demo`: two workers take turns, then several count together. `npm run demo -- story`: why. */
import { HELP, readArguments, UsageError, type DemoArguments } from './arguments.js'
import { countTogether } from './counting.js'
import { countInMemory, takeTurnsInMemory } from './memory.js'
import { Page } from './page.js'
import { NoServerError, openStage } from './stage.js'
import { tellStory } from './story.js'
import { takeTurns } from './turns.js'

const EXIT = { fine: 0, failed: 1, usage: 64, noServer: 69 } as const

/** Somebody does not want to see the rest. */
class Interruption extends Error {
  readonly exitCode: number

  constructor(exitCode: number) {
    super('interrupted')
    this.exitCode = exitCode
  }
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
// What a shell reports of a program that nobody reads from any more.
const BROKEN_PIPE = 141

function stopWhenTold(): AbortSignal {
  const controller = new AbortController()
  for (const [name, exitCode] of Object.entries(SIGNALS))
    process.on(name, () => controller.abort(new Interruption(exitCode)))
  process.stdout.on('error', () => controller.abort(new Interruption(BROKEN_PIPE)))
  return controller.signal
}

async function run(settings: DemoArguments, stop: AbortSignal): Promise<boolean> {
  const page = new Page(process.stdout)
  try {
    return await show(settings, page, stop)
  } finally {
    page.close()
  }
}

async function show(settings: DemoArguments, page: Page, stop: AbortSignal): Promise<boolean> {
  if (settings.memory) return runInMemory({ settings, page, stop })
  await using stage = await openStage(settings)
  const part = { settings, page, stop, stage }
  page.line(`${page.paint('bold', 'Holdfast')} on ${stage.title}`)
  if (settings.what === 'story') return await tellStory(part)
  const tookTurns = await takeTurns(part)
  const countedWell = await countTogether(part)
  page.line(page.paint('dim', 'Why each part of the lock is there: npm run demo -- story'))
  return tookTurns && countedWell
}

async function runInMemory(part: Parameters<typeof countInMemory>[0]): Promise<boolean> {
  const { page } = part
  page.line(`${page.paint('bold', 'Holdfast')} in memory: no Redis, and all workers are in this one process.`)
  page.line('It shows how the lock behaves; between processes and machines it takes a server.')
  const tookTurns = await takeTurnsInMemory(part)
  return (await countInMemory(part)) && tookTurns
}

async function main(): Promise<number> {
  const settings = readArguments(process.argv.slice(2), process.env)
  if (settings.what === 'help') {
    console.log(HELP)
    return EXIT.fine
  }
  const stop = stopWhenTold()
  try {
    return (await run(settings, stop)) ? EXIT.fine : EXIT.failed
  } catch (error) {
    // What fails after that fails because of it.
    if (stop.reason instanceof Interruption) return stop.reason.exitCode
    throw error
  }
}

function explain(error: unknown): number {
  if (error instanceof UsageError) {
    console.error(`demo: ${error.message} (try --help)`)
    return EXIT.usage
  }
  if (error instanceof NoServerError) {
    console.error(`demo: ${error.message}`)
    return EXIT.noServer
  }
  console.error(`demo: broke off: ${error instanceof Error ? error.message : String(error)}`)
  return EXIT.failed
}

process.exitCode = await main().catch(explain)
