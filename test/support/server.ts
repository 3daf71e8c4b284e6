/** Real servers for tests: each on a free port of 127.0.0.1, in a temporary folder, ended by its process id. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findRedisServer } from '../../tools/redis-server.mjs'
import { Link } from './link.js'
import { freePort } from './ports.js'
import type { Value } from './resp.js'

export interface RedisOptions {
  /** More command-line arguments for the server, after the usual ones, so that they win. */
  readonly args?: readonly string[] | undefined
  /** Lines of a configuration file that the server may rewrite; with them it is a Sentinel. */
  readonly sentinel?: readonly string[] | undefined
  /** Fixed port. Omitted: a free one. */
  readonly port?: number | undefined
  /** Working folder, which is then left in place. Omitted: a temporary one, removed by `stop`. */
  readonly dir?: string | undefined
}

const READY_WITHIN_MS = 15_000
const STOP_WITHIN_MS = 5_000
const START_TRIES = 5
// The server dies with the process that started it, also when that one is killed.
const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path))

const running = new Set<RedisServer>()
process.on('exit', () => {
  for (const server of running) server.reap()
})

/** Starts a server and resolves when it answers PING. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  for (let tries = 1; ; tries++) {
    const server = new RedisServer(options.port ?? (await freePort()), options)
    try {
      await server.start()
      return server
    } catch (error) {
      await server.stop()
      // Somebody else may have taken the free port in the meantime.
      const portTaken = String(error).includes('Address already in use')
      if (!portTaken || options.port !== undefined || tries === START_TRIES) throw error
    }
  }
}

/** One server. `pid` changes with a restart; port and folder stay. */
export class RedisServer implements AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly dir: string
  readonly #args: readonly string[]
  readonly #keepDir: boolean
  readonly #isSentinel: boolean
  #process: ChildProcess | undefined

  /** Use {@link startRedis}. */
  constructor(port: number, options: RedisOptions) {
    this.port = port
    this.url = `redis://127.0.0.1:${port}`
    this.#keepDir = options.dir !== undefined
    this.dir = options.dir ?? mkdtempSync(join(tmpdir(), 'holdfast-redis-'))
    this.#args = options.args ?? []
    if (options.sentinel !== undefined) writeFileSync(this.#configFile(), options.sentinel.join('\n'))
    this.#isSentinel = options.sentinel !== undefined
  }

  /** The process id. Throws while the server is down. */
  get pid(): number {
    const pid = this.#process?.pid
    if (pid === undefined) throw new Error('the server is not running')
    return pid
  }

  get running(): boolean {
    return this.#process !== undefined
  }

  /** Starts it again after `stop` or `kill`, with whatever data its folder holds. */
  async start(): Promise<void> {
    if (this.#process !== undefined) throw new Error('the server is running already')
    const child = this.#spawn()
    this.#process = child
    running.add(this)
    child.once('exit', () => {
      this.#forget(child)
    })
    child.once('error', () => {
      this.#forget(child)
    })
    await this.#untilReady(child)
  }

  /** Ends it in good order; what it holds in memory is gone unless `args` made it persistent. */
  async stop(): Promise<void> {
    const child = this.#process
    if (child !== undefined) {
      const gone = once(child, 'exit')
      // A stopped process acts on TERM only when it goes on.
      child.kill('SIGTERM')
      child.kill('SIGCONT')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
      await gone
      clearTimeout(timer)
    }
    if (!this.#keepDir) rmSync(this.dir, { recursive: true, force: true })
  }

  /** `kill -9`: no farewell, nothing saved. The folder stays for `start` or `restart`. */
  async kill(): Promise<void> {
    const child = this.#process
    if (child === undefined) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  /** SIGSTOP: the links stay open and nobody answers. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP')
  }

  /** SIGCONT. */
  resume(): void {
    process.kill(this.pid, 'SIGCONT')
  }

  /**
   * Kills it and starts it again on the same port. With `keepData` the data set is saved before (or, if it
   * is down already, whatever the folder holds is loaded); otherwise it comes back empty.
   */
  async restart({ keepData = false }: { keepData?: boolean | undefined } = {}): Promise<void> {
    if (keepData && this.running) await this.send('SAVE')
    await this.kill()
    if (!keepData) this.#clearDir()
    await this.start()
  }

  /** One command over a connection of its own. */
  async send(...command: readonly (string | number)[]): Promise<Value> {
    const link = await Link.open(this.port)
    try {
      return await link.send(...command)
    } finally {
      link.close()
    }
  }

  /** Kills it without waiting; for the end of the process. */
  reap(): void {
    this.#process?.kill('SIGKILL')
    if (!this.#keepDir) rmSync(this.dir, { recursive: true, force: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #spawn(): ChildProcess {
    const binary = findRedisServer()
    if (binary === undefined) throw new Error('no redis-server here: run `node tools/redis-server.mjs`')
    const log = openSync(this.#logFile(), 'a')
    const [command, ...before] =
      SETPRIV === undefined ? [binary] : [SETPRIV, '--pdeathsig', 'KILL', '--', binary]
    try {
      return spawn(command, [...before, ...this.#serverArgs()], {
        stdio: ['ignore', log, log],
        cwd: this.dir,
      })
    } finally {
      closeSync(log)
    }
  }

  #serverArgs(): string[] {
    if (this.#isSentinel)
      return [
        this.#configFile(),
        '--sentinel',
        '--port',
        String(this.port),
        '--bind',
        '127.0.0.1',
        ...this.#args,
      ]
    const usual = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.dir, '--save', '']
    return [...usual, '--daemonize', 'no', '--enable-debug-command', 'yes', ...this.#args]
  }

  async #untilReady(child: ChildProcess): Promise<void> {
    const deadline = performance.now() + READY_WITHIN_MS
    while (this.#process === child && performance.now() < deadline) {
      if (await this.#answersPing()) return
      await sleep(5)
    }
    throw new Error(`redis-server on port ${this.port} did not start:\n${this.#lastLogLines()}`)
  }

  async #answersPing(): Promise<boolean> {
    try {
      return (await this.send('PING')) === 'PONG'
    } catch {
      return false
    }
  }

  #forget(child: ChildProcess): void {
    if (this.#process !== child) return
    this.#process = undefined
    running.delete(this)
  }

  #clearDir(): void {
    for (const name of readdirSync(this.dir)) rmSync(join(this.dir, name), { recursive: true, force: true })
  }

  #configFile(): string {
    return join(this.dir, 'sentinel.conf')
  }

  #logFile(): string {
    return join(this.dir, 'redis.log')
  }

  #lastLogLines(): string {
    return readFileSync(this.#logFile(), 'utf8').trimEnd().split('\n').slice(-5).join('\n')
  }
}
