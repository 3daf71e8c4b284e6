/** A real PostgreSQL for tests: on a free port of 127.0.0.1, in a temporary folder, ended by its process id. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { findPostgres } from '../../tools/postgres.mjs'
import { eventually } from './eventually.js'
import { freePort } from './ports.js'

const STOP_WITHIN_MS = 10_000
// The server dies with the process that started it, also when that one is killed.
const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path))
const NOBODY = 65_534
const SETTINGS = ['fsync=off', 'jit=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=']

const running = new Set<PostgresServer>()
process.on('exit', () => {
  for (const server of running) server.reap()
})

/** Starts a server and resolves when it takes connections. */
export async function startPostgres(): Promise<PostgresServer> {
  const server = new PostgresServer(await freePort())
  try {
    await server.start()
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

/** One server. The user is `postgres`, without a password. */
export class PostgresServer {
  readonly port: number
  readonly #dir = mkdtempSync(join(tmpdir(), 'holdfast-postgres-'))
  #process: ChildProcess | undefined

  /** Use {@link startPostgres}. */
  constructor(port: number) {
    this.port = port
  }

  async start(): Promise<void> {
    const programs = this.#programs()
    const data = join(this.#dir, 'data')
    mkdirSync(data)
    // It refuses to run as root.
    const as = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
    if (as.uid !== undefined) for (const folder of [this.#dir, data]) chownSync(folder, as.uid, as.gid)
    const how = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '-D', data]
    const made = spawnSync(join(programs, 'initdb'), how, { ...as, cwd: this.#dir, encoding: 'utf8' })
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr || String(made.error)}`)
    const settings = SETTINGS.flatMap((setting) => ['-c', setting])
    this.#spawn(join(programs, 'postgres'), ['-D', data, '-p', String(this.port), ...settings], as)
    await eventually(() => this.#answers(), 'PostgreSQL takes connections')
  }

  /** A connection of its own; the caller ends it. */
  async connect(): Promise<pg.Client> {
    const client = new pg.Client({
      host: '127.0.0.1',
      port: this.port,
      user: 'postgres',
      database: 'postgres',
    })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }

  async stop(): Promise<void> {
    const child = this.#process
    if (child !== undefined) {
      const gone = once(child, 'exit')
      // It ends at once, whoever is connected.
      child.kill('SIGINT')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
      await gone
      clearTimeout(timer)
    }
    rmSync(this.#dir, { recursive: true, force: true })
  }

  /** Kills it without waiting; for the end of the process. */
  reap(): void {
    this.#process?.kill('SIGKILL')
    rmSync(this.#dir, { recursive: true, force: true })
  }

  #spawn(program: string, args: readonly string[], as: { uid?: number; gid?: number }): void {
    const log = openSync(join(this.#dir, 'postgres.log'), 'a')
    const [command, ...before] =
      SETPRIV === undefined ? [program] : [SETPRIV, '--pdeathsig', 'KILL', '--', program]
    const child = spawn(command, [...before, ...args], { ...as, cwd: this.#dir, stdio: ['ignore', log, log] })
    closeSync(log)
    this.#process = child
    running.add(this)
    const forget = () => {
      this.#process = undefined
      running.delete(this)
    }
    child.once('exit', forget)
    child.once('error', forget)
  }

  async #answers(): Promise<boolean> {
    if (this.#process === undefined)
      throw new Error(`PostgreSQL did not start:\n${readFileSync(join(this.#dir, 'postgres.log'), 'utf8')}`)
    try {
      await (await this.connect()).end()
      return true
    } catch {
      return false
    }
  }

  /** Where the programs are, for those who are not root either. */
  #programs(): string {
    const folder = findPostgres()
    if (folder === undefined) throw new Error('no PostgreSQL here: run `node tools/postgres.mjs`')
    if (process.getuid?.() !== 0 || isOpenToAll(realpathSync(join(folder, 'postgres')))) return folder
    const copy = join(this.#dir, 'programs')
    cpSync(folder, copy, { recursive: true, verbatimSymlinks: true })
    return copy
  }
}

function isOpenToAll(path: string): boolean {
  const open = (statSync(path).mode & 0o001) !== 0
  return open && (dirname(path) === path || isOpenToAll(dirname(path)))
}
