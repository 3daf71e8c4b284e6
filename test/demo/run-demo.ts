/** Runs the demo as a user does, with its output in a pipe. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export interface DemoRun {
  readonly process: ChildProcess
  /** Both streams, as far as they have come. */
  readonly output: string
  readonly ended: Promise<Ended>
  /** Resolves when the output matches. */
  printed(pattern: RegExp): Promise<RegExpExecArray>
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Starts it; `REDIS_URL` of the tests' own environment is left out. */
export function startDemo(args: readonly string[], env: NodeJS.ProcessEnv = {}): DemoRun {
  const child = spawn(process.execPath, ['--import', 'tsx', 'demo/main.ts', ...args], {
    cwd: ROOT,
    env: { ...process.env, REDIS_URL: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code) => {
      running.delete(child)
      resolve({ code, ...text })
    })
  })
  const run = {
    process: child,
    get output() {
      return text.stdout + text.stderr
    },
    ended,
    async printed(pattern: RegExp) {
      // No deadline of its own: the test has one.
      while (!pattern.test(run.output) && child.exitCode === null)
        await Promise.race([once(child.stdout, 'data'), ended])
      const found = pattern.exec(run.output)
      if (found === null) throw new Error(`the demo ended without ${String(pattern)}:\n${run.output}`)
      return found
    },
  }
  return run
}

export async function runDemo(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ended> {
  return startDemo(args, env).ended
}

/** A line of a table: who did what. */
export interface Row {
  readonly who: string
  readonly sent: boolean
  readonly what: string
  readonly rest: string
}

/** The lines of the first part, in order. */
export function rowsOf(stdout: string): readonly Row[] {
  const found = stdout.matchAll(/^ *\d+ {2}([A-Z]) {2}([→ ]) (has it|\w+) +(.*)$/gmu)
  return [...found].map(([, who = '', mark, what = '', rest = '']) => ({
    who,
    sent: mark === '→',
    what,
    rest,
  }))
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
