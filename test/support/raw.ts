/** A bare connection for looking at a server's state and at every message that it publishes. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { eventually } from './eventually.js'
import { Link } from './link.js'
import { encode, Splitter, type Value } from './resp.js'

/** A published message. */
export interface Message {
  readonly channel: string
  readonly payload: string
}

/** Connects to a server on this machine. */
export async function raw(port: number): Promise<Raw> {
  return new Raw(port, await Link.open(port))
}

/** Commands in order over one connection. Use {@link raw}. */
export class Raw implements AsyncDisposable {
  readonly #port: number
  readonly #link: Link
  readonly #watchers: Messages[] = []

  constructor(port: number, link: Link) {
    this.#port = port
    this.#link = link
  }

  /** Rejects with the server's own words when the reply is an error. */
  command(...words: readonly (string | number)[]): Promise<Value> {
    return this.#link.send(...words)
  }

  /** Subscribes, over a connection of its own, to every channel (`*`) or to those named. */
  async subscribe(...channels: readonly string[]): Promise<Messages> {
    const socket = connect({ host: '127.0.0.1', port: this.#port, noDelay: true })
    await once(socket, 'connect')
    const messages = new Messages(this, socket)
    this.#watchers.push(messages)
    await messages.subscribe(channels)
    return messages
  }

  [Symbol.asyncDispose](): Promise<void> {
    for (const messages of this.#watchers) messages.close()
    this.#link.close()
    return Promise.resolve()
  }
}

const FENCE = 'fence:of:the:test'
let fences = 0

/** What arrived on a subscription. Use {@link Raw.subscribe}. */
export class Messages {
  readonly #raw: Raw
  readonly #socket: Socket
  readonly #splitter = new Splitter()
  // Its own: where several watch at once, each knows its fence.
  readonly #fence = `${FENCE}:${++fences}`
  #confirmed = 0
  #fences = 0
  #fencesSeen = 0
  #arrived: Message[] = []

  constructor(owner: Raw, socket: Socket) {
    this.#raw = owner
    this.#socket = socket
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      for (const { value } of this.#splitter.push(chunk)) this.#receive(value)
    })
  }

  async subscribe(channels: readonly string[]): Promise<void> {
    const all = channels.includes('*')
    const words = all ? ['PSUBSCRIBE', '*'] : ['SUBSCRIBE', ...channels, this.#fence]
    this.#socket.write(encode(words))
    await eventually(() => this.#confirmed === words.length - 1, 'the subscription is confirmed')
  }

  /**
   * The messages since the last call. Complete: a message of our own is sent behind them, and a server
   * delivers in order.
   */
  async take(): Promise<readonly Message[]> {
    this.#fences += 1
    await this.#raw.command('PUBLISH', this.#fence, this.#fences)
    await eventually(() => this.#fencesSeen === this.#fences, 'the fence arrives')
    const arrived = this.#arrived
    this.#arrived = []
    return arrived
  }

  close(): void {
    this.#socket.destroy()
  }

  #receive(value: Value): void {
    if (!Array.isArray(value)) return
    const [kind, ...rest] = value.map(String)
    if (kind === 'subscribe' || kind === 'psubscribe') this.#confirmed += 1
    const [channel = '', payload = ''] = rest.slice(-2)
    if (channel === this.#fence) this.#fencesSeen = Number(payload)
    if (channel.startsWith(FENCE)) return
    if (kind === 'message' || kind === 'pmessage') this.#arrived.push({ channel, payload })
  }
}
