/** The worker processes of the demo, seen from the demo. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Order, Report, WorkerSettings } from './messages.js'

export interface TeamOptions {
  readonly size: number
  readonly settings: Omit<WorkerSettings, 'label'>
  /** Ends the waiting for the workers. */
  readonly stop: AbortSignal
  readonly onReport?: ((label: string, report: Report) => void) | undefined
}

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))
const LEAVE_WITHIN_MS = 2_000

/** Worker processes A, B, C and so on. */
export class Team implements AsyncDisposable {
  readonly #stop: AbortSignal
  readonly #members: readonly Member[]

  private constructor({ size, stop, onReport }: TeamOptions) {
    this.#stop = stop
    this.#members = Array.from({ length: size }, (_, i) => {
      const label = String.fromCharCode('A'.charCodeAt(0) + i)
      return new Member(label, (report) => onReport?.(label, report))
    })
  }

  /** Resolves when all are connected to the server. */
  static async start(options: TeamOptions): Promise<Team> {
    const team = new Team(options)
    try {
      await team.#all((member) => {
        return member.order({ order: 'connect', ...options.settings, label: member.label }, 'ready')
      })
      return team
    } catch (error) {
      await team[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Gives everybody the same order and waits until all have carried it out. */
  async order(order: Order): Promise<void> {
    await this.#all((member) => member.order(order, 'finished'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member.end()))
  }

  async #all(step: (member: Member) => Promise<void>): Promise<void> {
    this.#stop.throwIfAborted()
    const stopped = once(this.#stop, 'abort').then(() => this.#stop.throwIfAborted())
    await Promise.race([Promise.all(this.#members.map(step)), stopped])
  }
}

class Member {
  readonly label: string
  readonly #process: ChildProcess
  readonly #gone: Promise<unknown>
  #ready = false

  constructor(label: string, onReport: (report: Report) => void) {
    this.label = label
    this.#process = fork(WORKER, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#process.on('message', (report) => onReport(report as Report))
    this.#gone = once(this.#process, 'exit').catch(() => undefined)
  }

  order(order: Order, until: 'ready' | 'finished'): Promise<void> {
    const child = this.#process
    const reported = new Promise<void>((resolve, reject) => {
      const gone = (): void => reject(new Error(`worker ${this.label} ended before its work was done`))
      const listen = (message: unknown): void => {
        const report = message as Report
        if (report.report === 'failed') reject(new Error(`worker ${this.label}: ${report.message}`))
        else if (report.report === until) resolve()
        else return
        this.#ready = true
        child.off('message', listen)
        child.off('exit', gone)
      }
      child.on('message', listen)
      child.once('exit', gone)
    })
    child.send(order)
    return reported
  }

  /** It leaves by itself when the link to it is closed, once it has come so far. */
  async end(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect()
    if (!this.#ready) this.#process.kill('SIGKILL')
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), LEAVE_WITHIN_MS)
    await this.#gone
    clearTimeout(timer)
  }
}
