/** What the server says that the workers sent to it: MONITOR, sorted out by worker. */
import type { Redis } from 'ioredis'
import type { Timeline } from './timeline.js'

interface Script {
  readonly who: string | undefined
  readonly command: string
  /** The commands that the script ran. */
  readonly ran: string[]
}

const WORKER_NAME = /^holdfast-demo-([A-Z])$/

/** Puts every script and subscription of the workers on the timeline, and measures the hand-over. */
export class Monitor implements Disposable {
  readonly #timeline: Timeline
  readonly #link: Redis
  readonly #workers = new Map<string, string>()
  #script: Script | undefined
  #releasedAt: number | undefined
  #handOverMs: number | undefined

  private constructor(timeline: Timeline, link: Redis) {
    this.#timeline = timeline
    this.#link = link
    link.on('error', () => undefined)
    link.on('monitor', (time: string, words: readonly string[], source: string) => {
      this.#heard(Number(time) * 1_000, words, source)
    })
  }

  static async start(timeline: Timeline, redis: Redis): Promise<Monitor> {
    return new Monitor(timeline, await redis.monitor())
  }

  /** From the first release to the grant that followed it, by the server's clock. */
  get handOverMs(): number | undefined {
    return this.#handOverMs
  }

  [Symbol.dispose](): void {
    this.#link.disconnect()
  }

  #heard(at: number, words: readonly string[], source: string): void {
    const [command = '', first = '', second = ''] = words
    const name = command.toLowerCase()
    if (source === 'lua') {
      this.#ranInScript(at, name)
      return
    }
    if (name === 'client' && first.toLowerCase() === 'setname') this.#meet(source, second)
    const who = this.#workers.get(source)
    if (name.startsWith('eval')) this.#beginScript(at, who, name)
    else if (who !== undefined && name.endsWith('subscribe'))
      this.#timeline.add({ at, who, sent: true, what: name, detail: () => first })
  }

  #meet(source: string, name: string): void {
    const label = WORKER_NAME.exec(name)?.[1]
    if (label !== undefined) this.#workers.set(source, label)
  }

  #beginScript(at: number, who: string | undefined, command: string): void {
    const script: Script = { who, command: command.toUpperCase(), ran: [] }
    this.#script = script
    if (who === undefined) return
    // An EVALSHA of a script that the server does not know yet runs nothing.
    const detail = (): string | undefined =>
      script.ran.length === 0 ? undefined : `${script.command}: ${script.ran.join(' ').toUpperCase()}`
    this.#timeline.add({
      at,
      who,
      sent: true,
      get what() {
        return operationOf(script.ran)
      },
      detail,
    })
  }

  // The server runs a script to its end before anything else.
  #ranInScript(at: number, command: string): void {
    const script = this.#script
    if (script?.who === undefined) return
    script.ran.push(command)
    if (command === 'hdel') this.#releasedAt ??= at
    if (command === 'hset' && this.#releasedAt !== undefined) this.#handOverMs ??= at - this.#releasedAt
  }
}

/** Which operation a script was, told by what only it does. */
function operationOf(ran: readonly string[]): string {
  if (ran.includes('hdel')) return 'release'
  return ran[0] === 'hexists' ? 'renew' : 'acquire'
}
