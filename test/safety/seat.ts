/** A place for a worker process, with a link of its own to the server; who is killed is replaced. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Proxy } from '../support/proxy.js'
import type { Ending } from './story.js'
import { now } from './journal.js'
import type { Order, Report, Task } from './messages.js'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const KEPT_ERRORS = 2_000
const READY_WITHIN_MS = 20_000
// A worker dies with the coordinator, also when that one is killed, and also when it is stopped.
const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path))

/** What the seat needs to know about the world. */
export interface Surroundings {
  /** The task of the next process, all but its name. */
  readonly task: Omit<Task, 'process' | 'port' | 'client'>
  onGone(process: string, ending: Ending): void
}

export class Seat {
  readonly place: number
  readonly proxy: Proxy
  /** The id that begins the owners of the present process; undefined before its first lease. */
  clientId: string | undefined
  readonly #client: Task['client']
  readonly #surroundings: Surroundings
  #life = 0
  #child: ChildProcess | undefined
  #killed = false
  #errors = ''

  constructor(place: number, proxy: Proxy, parts: Surroundings & { readonly client: Task['client'] }) {
    this.place = place
    this.proxy = proxy
    this.#client = parts.client
    this.#surroundings = parts
  }

  /** The name of the present process. */
  get process(): string {
    return `${this.place}.${this.#life}`
  }

  get alive(): boolean {
    return this.#child !== undefined
  }

  /** Starts the next process, and resolves when it has connected. */
  async fill(): Promise<void> {
    this.#life += 1
    this.#killed = false
    this.clientId = undefined
    this.#errors = ''
    const child = this.#spawn()
    this.#child = child
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`worker ${this.process} does not connect:\n${this.#errors}`))
      }, READY_WITHIN_MS)
      child.on('message', (message) => {
        const report = message as Report
        if (report.report === 'client') this.clientId = report.id
        else {
          clearTimeout(timer)
          resolve()
        }
      })
      // 'close', not 'exit': then all that it printed is here.
      child.once('close', (code, signal) => {
        clearTimeout(timer)
        this.#gone(child, code === null ? `signal ${String(signal)}` : `exit ${String(code)}`)
        reject(new Error(`worker ended before it was connected:\n${this.#errors}`))
      })
    })
  }

  order(order: Order): void {
    if (this.#child?.connected === true) this.#child.send(order, () => undefined)
  }

  /** SIGSTOP: it knows nothing of it. */
  stop(): void {
    this.#child?.kill('SIGSTOP')
  }

  /** SIGCONT. */
  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  /** `kill -9`. Resolves when it is gone. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    this.#killed = true
    const gone = once(child, 'close')
    child.kill('SIGKILL')
    await gone
  }

  /** Kills it without waiting; for the end of the process. */
  reap(): void {
    this.#child?.kill('SIGKILL')
  }

  #spawn(): ChildProcess {
    const task: Task = {
      ...this.#surroundings.task,
      process: this.process,
      port: this.proxy.port,
      client: this.#client,
    }
    const words = [process.execPath, '--import', 'tsx', WORKER, JSON.stringify(task)]
    const [command = '', ...args] =
      SETPRIV === undefined ? words : [SETPRIV, '--pdeathsig', 'KILL', '--', ...words]
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-KEPT_ERRORS)
    })
    return child
  }

  #gone(child: ChildProcess, how: string): void {
    if (this.#child !== child) return
    this.#child = undefined
    const crashed = !this.#killed && how !== 'exit 0'
    this.#surroundings.onGone(this.process, {
      at: now(),
      killed: this.#killed,
      how: crashed ? `${how}: ${this.#errors.trim()}` : how,
    })
  }
}
