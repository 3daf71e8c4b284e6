/** Redisson in a Java process of its own, told over stdin what to do. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { eventually } from '../../support/eventually.js'
import type { RedissonPeer } from '../../../tools/redisson-peer.mjs'

/** A number goes as int or long, whichever the method takes. */
export type Argument = string | number | readonly string[] | Duration | typeof MS

/** What comes back: null, or the text of the result, or a list of texts. */
export type Answer = string | null | readonly string[]

/** `TimeUnit.MILLISECONDS`. */
export const MS: unique symbol = Symbol('ms')

/** A `java.time.Duration`. */
export interface Duration {
  readonly ms: number
}

/** Java threw. `className` is the simple name of the exception's class. */
export class JavaError extends Error {
  readonly className: string

  constructor(className: string, message: string) {
    super(`${className}: ${message}`)
    this.className = className
  }
}

/** This version of Redisson does not have the object or the method. */
export class Lacking extends Error {}

/** Settings of the Redisson client. */
export interface PeerOptions {
  /** `lockWatchdogTimeout`. */
  readonly watchdogMs: number
  /** `timeout` of a command, which is not sent again then. */
  readonly commandMs?: number | undefined
}

interface Pending {
  resolve(answer: Answer): void
  reject(error: Error): void
}

const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path))

/** One Java process with a Redisson client per server. Use {@link JavaPeer.start}. */
export class JavaPeer implements AsyncDisposable {
  readonly version: string
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #pending = new Map<string, Pending>()
  readonly #ready: Promise<void>
  #clientId = ''
  #lastId = 0
  #log = ''

  private constructor(peer: RedissonPeer, ports: readonly number[], { watchdogMs, commandMs }: PeerOptions) {
    this.version = peer.version
    const brief = commandMs === undefined ? [] : [`-Dtimeout=${commandMs}`]
    const settings = [`-Dports=${ports.join(',')}`, `-Dwatchdog=${watchdogMs}`, ...brief]
    const words = [peer.java, ...settings, ...peer.args]
    // Java ends with the process that started it, also when that one is killed.
    const [command = '', ...args] =
      SETPRIV === undefined ? words : [SETPRIV, '--pdeathsig', 'KILL', '--', ...words]
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child.stdin.on('error', () => undefined)
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.#log = (this.#log + chunk.toString()).slice(-4_000)
    })
    this.#ready = new Promise((resolve, reject) => {
      this.#pending.set('ready', { resolve: () => resolve(), reject })
    })
    createInterface(this.#child.stdout).on('line', (line) => this.#receive(line))
    for (const event of ['exit', 'error'] as const) this.#child.once(event, () => this.#fail())
  }

  /** Resolves when Redisson is connected: one client per server. */
  static async start(peer: RedissonPeer, ports: readonly number[], options: PeerOptions): Promise<JavaPeer> {
    const java = new JavaPeer(peer, ports, options)
    await java.#ready
    return java
  }

  /** The id of Redisson's first client, which its owners begin with. */
  get clientId(): string {
    return this.#clientId
  }

  /** The thread of this name; it begins with its first command. */
  thread(name: string): JavaThread {
    return new JavaThread((command, ...words) => this.#send(name, command, words))
  }

  /** `kill -9`: nothing is released, nobody is told. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }

  #send(thread: string, command: string, words: readonly string[]): Promise<Answer> {
    this.#lastId += 1
    const id = String(this.#lastId)
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#child.stdin.write(`${[id, encodeURIComponent(thread), command, ...words].join(' ')}\n`)
    })
  }

  #receive(line: string): void {
    const [id = '', ...words] = line.split(' ')
    if (id === 'ready') this.#clientId = words[0] ?? ''
    const call = this.#pending.get(id)
    this.#pending.delete(id)
    const [outcome, first = '', second = ''] = id === 'ready' ? ['ok', '-'] : words
    if (outcome === 'ok') call?.resolve(decode(first))
    else if (outcome === 'lacks') call?.reject(new Lacking(`Redisson ${this.version} lacks ${text(first)}`))
    else call?.reject(new JavaError(first, text(second)))
  }

  #fail(): void {
    for (const call of this.#pending.values()) call.reject(new Error(`Java has ended:\n${this.#log}`))
    this.#pending.clear()
  }
}

/** One Java thread: its calls run one after the other, and it is one owner. */
export class JavaThread {
  readonly #send: (command: string, ...words: readonly string[]) => Promise<Answer>

  constructor(send: (command: string, ...words: readonly string[]) => Promise<Answer>) {
    this.#send = send
  }

  /** Calls a method of an object; see `interop/` for how objects are named. */
  call(reference: string, method: string, ...args: readonly Argument[]): Promise<Answer> {
    return this.#send('call', reference, method, ...args.map(encode))
  }

  /** What this thread is called in Redis: `<client id>:<thread id>`. */
  async owner(): Promise<string> {
    return String(await this.#send('owner'))
  }

  /** The names of the methods that one of Redisson's interfaces has of its own. */
  async methods(type: string): Promise<readonly string[]> {
    const names = await this.#send('methods', type)
    return typeof names === 'string' || names === null ? [] : names
  }

  /** Resolves when it has looked for the last time and sleeps until it hears something. */
  async untilAsleep(): Promise<void> {
    await eventually(async () => (await this.#send('asleep')) === 'true', 'the Java thread sleeps')
  }

  /** Interrupts what it waits for. */
  async interrupt(): Promise<void> {
    await this.#send('interrupt')
  }

  /** Enters an object many times from many threads. Resolves to what went wrong. */
  async contend(reference: string, plan: ContestPlan): Promise<readonly string[]> {
    const { canary, kind, threads, times, pauseMs, leaseMs = 0 } = plan
    const numbers = [threads, times, pauseMs, leaseMs].map(String)
    const wrong = await this.#send('contend', reference, encodeURIComponent(canary), String(kind), ...numbers)
    return typeof wrong === 'string' || wrong === null ? ['no list'] : wrong
  }
}

/** Who may be together inside: one, all that share, one with a token, or so many. */
export type CanaryKind = 'alone' | 'shared' | 'fenced' | number

/** How often, and how, an object is entered. */
export interface ContestPlan {
  /** What the keys of the canary begin with. */
  readonly canary: string
  readonly kind: CanaryKind
  readonly threads: number
  /** Per thread. */
  readonly times: number
  /** The longest stay. */
  readonly pauseMs: number
  /** Omitted: kept by the watchdog. */
  readonly leaseMs?: number | undefined
}

function encode(argument: Argument): string {
  if (argument === MS) return 'u'
  if (typeof argument === 'number') return `n${argument}`
  if (typeof argument === 'string') return `s${encodeURIComponent(argument)}`
  if (typeof argument === 'object' && 'ms' in argument) return `d${argument.ms}`
  return `l${argument.map((item) => encodeURIComponent(item)).join(',')}`
}

function decode(word: string): Answer {
  if (word === '-') return null
  if (word.startsWith('=')) return text(word.slice(1))
  return word === '[' ? [] : word.slice(1).split(',').map(text)
}

/** Java writes a space as a plus sign. */
function text(word: string): string {
  return decodeURIComponent(word.replaceAll('+', ' '))
}
