import { toPortError } from './errors.js'
import { PortError, type Demand, type Passage, type Places, type RawReply } from './port.js'
import type { ScriptCall, WaitedReply } from './port.js'
import { runScript, type ScriptLink } from './script-run.js'
import { within } from './within.js'

/** One connection of our own to one primary, used until it breaks; it never reconnects. */
export interface LaneLink extends ScriptLink {
  /** Settles when the connection is open, or could not be opened. */
  readonly ready: Promise<unknown>
  /** Sends any other command, behind those that were sent before. */
  command(args: readonly string[]): Promise<unknown>
  /** Also while it is still being opened. Never throws. */
  close(): void
}

/** What lanes have of an adapter. */
export interface LaneSource extends Places {
  /** Starts opening a connection to a primary. */
  open(address: string): LaneLink
}

interface Item {
  readonly call: ScriptCall
  readonly passage: Passage
  readonly demand: Demand
}

interface Waiting extends Item {
  resolve(reply: WaitedReply): void
  reject(error: unknown): void
}

/** Not ASK: a node that just gets a slot answers TRYAGAIN to scripts of which any key is missing, as a tombstone is. */
const MOVED = /^-?MOVED \d+ (\S+:\d+)/

/**
 * Runs scripts over connections on which WAIT follows them. WAIT holds its link, so that these are never the user's,
 * and whatever comes meanwhile shares the next one: a replica that is away costs a time-out for all, not for each.
 */
export class Lanes {
  readonly #source: LaneSource
  readonly #lanes = new Map<string, Lane>()
  #closed = false

  constructor(source: LaneSource) {
    this.#source = source
  }

  /** Runs a script, then WAIT on the same connection. Rejects with {@link PortError} only. */
  async run(call: ScriptCall, passage: Passage, demand: Demand): Promise<WaitedReply> {
    const item = { call, passage, demand }
    try {
      return await this.#to(this.#source.addressOf(call.keys[0] ?? ''), item)
    } catch (error) {
      if (error instanceof PortError && error.kind === 'connection') this.#source.refresh()
      const address = MOVED.exec(causeText(error))?.[1]
      if (address === undefined || passage.abandoned) throw asPortError(error)
      this.#source.refresh()
      // The answer proves that nothing was executed.
      return await this.#to(address, item)
    }
  }

  /** Closes all connections. */
  close(): void {
    this.#closed = true
    for (const lane of this.#lanes.values()) lane.close()
    this.#lanes.clear()
  }

  #to(address: string, item: Item): Promise<WaitedReply> {
    if (this.#closed) throw new PortError('The connections are closed', CLOSED)
    let lane = this.#lanes.get(address)
    if (lane === undefined) {
      lane = new Lane(() => this.#source.open(address))
      this.#lanes.set(address, lane)
    }
    return lane.run(item)
  }
}

const CLOSED = { kind: 'closed', outcome: 'not-applied' } as const

/** The connection to one primary, and who waits for it. */
class Lane {
  readonly #open: () => LaneLink
  #link: LaneLink | undefined
  readonly #queue: Waiting[] = []
  #working = false

  constructor(open: () => LaneLink) {
    this.#open = open
  }

  run(item: Item): Promise<WaitedReply> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ ...item, resolve, reject })
      if (!this.#working) void this.#work()
    })
  }

  close(): void {
    this.#link?.close()
    this.#link = undefined
  }

  async #work(): Promise<void> {
    this.#working = true
    while (this.#queue.length > 0) {
      // Also lets those of the same turn come along.
      const link = await this.#ready(limitOf(this.#queue))
      const batch = this.#queue.splice(0)
      if (link instanceof PortError) for (const item of batch) item.reject(link)
      else await this.#send(link, batch)
    }
    this.#working = false
  }

  /** The open connection, or why there is none. */
  async #ready(limitMs: number): Promise<LaneLink | PortError> {
    try {
      if (this.#link !== undefined && this.#link.readiness !== 'ready') this.close()
      const link = (this.#link ??= this.#open())
      if (link.readiness !== 'ready') await within(limitMs, link.ready, false)
      return link
    } catch (error) {
      this.close()
      const message = `No connection for WAIT: ${error instanceof Error ? error.message : String(error)}`
      return new PortError(message, { kind: 'connection', outcome: 'not-applied', cause: error })
    }
  }

  /** Scripts and WAIT leave in one turn; WAIT once more if a script had to be sent by its text, and so after it. */
  async #send(link: LaneLink, batch: readonly Waiting[]): Promise<void> {
    // A half-open link never answers.
    const limitMs = limitOf(batch)
    const sendsBefore = batch.map(({ passage }) => passage.sends)
    const running = Promise.all(batch.map((item) => settled(link, item)))
    const waiting = askWait(link, batch)
    try {
      const results = await within(limitMs, running, false)
      const late = batch.some(({ passage }, index) => passage.sends > (sendsBefore[index] ?? 0) + 1)
      const first = await within(limitMs, waiting, false)
      const waited = late ? await within(limitMs, askWait(link, batch), false) : first
      for (const [index, item] of batch.entries()) settle(item, results[index], waited)
    } catch (error) {
      this.close()
      for (const item of batch) {
        item.passage.once = false
        item.reject(new PortError(String(error), { kind: 'connection', outcome: 'unknown', cause: error }))
      }
    }
  }
}

type Result = { readonly reply: RawReply } | { readonly error: unknown }
type Waited = Pick<WaitedReply, 'acks' | 'trouble'>

function settled(link: LaneLink, { call, passage }: Item): Promise<Result> {
  return runScript(link, call, passage).then(
    (reply) => ({ reply }),
    (error: unknown) => ({ error }),
  )
}

function settle(item: Waiting, result: Result | undefined, waited: Waited): void {
  if (result !== undefined && 'reply' in result) item.resolve({ reply: result.reply, ...waited })
  else item.reject(result?.error)
}

async function askWait(link: LaneLink, batch: readonly Item[]): Promise<Waited> {
  const acks = Math.max(...batch.map(({ demand }) => demand.acks))
  const timeoutMs = Math.max(...batch.map(({ demand }) => demand.timeoutMs))
  try {
    const reply = link.decode(await link.command(['WAIT', String(acks), String(timeoutMs)]))
    return { acks: typeof reply === 'number' ? reply : 0 }
  } catch (error) {
    return { acks: 0, trouble: toPortError({ error, unbroken: false, cluster: link.cluster }) }
  }
}

function limitOf(batch: readonly Item[]): number {
  return Math.max(...batch.map(({ demand }) => demand.limitMs))
}

function causeText(error: unknown): string {
  const cause = error instanceof PortError ? (error.cause ?? error) : error
  return cause instanceof Error ? cause.message : String(cause)
}

function asPortError(error: unknown): PortError {
  if (error instanceof PortError) return error
  return new PortError(String(error), { kind: 'connection', outcome: 'unknown', cause: error })
}
