/** One client connection of a proxy and its link to the server. */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { delayOf, passGates, takeDrop, type Reply, type Request, type Rules } from './proxy-rules.js'
import { Splitter, type Frame } from './resp.js'

export interface ConnectionParts {
  readonly id: number
  readonly client: Socket
  readonly upstream: Socket
  readonly rules: Rules
  readonly onRequest: (request: Request) => void
  readonly onEnd: () => void
}

interface Unanswered {
  readonly request: Request
  repliesLeft: number
}

const ONE_REPLY_A_CHANNEL = /^[PS]?(UN)?SUBSCRIBE$/
const MESSAGE_KINDS = new Set(['message', 'pmessage', 'smessage'])

export class Connection {
  readonly #parts: ConnectionParts
  // Each direction is a chain: the next item is looked at when the one before has gone on.
  #toServer: Promise<void> = Promise.resolve()
  #toClient: Promise<void> = Promise.resolve()
  readonly #unanswered: Unanswered[] = []
  #subscriber = false
  #muted = false

  constructor(parts: ConnectionParts) {
    this.#parts = parts
    this.#listenToClient()
    this.#listenToServer()
  }

  get clientOpen(): boolean {
    return !this.#parts.client.destroyed
  }

  /** Nothing goes through any more, in either direction, and nobody is told. */
  mute(): void {
    this.#muted = true
  }

  cutClient(): void {
    this.#parts.client.destroy()
  }

  cut(): void {
    this.#muted = true
    this.#parts.client.destroy()
    this.#parts.upstream.destroy()
  }

  #listenToClient(): void {
    const { client, upstream } = this.#parts
    const splitter = new Splitter()
    client.setNoDelay(true)
    client.on('data', (chunk: Buffer) => {
      for (const frame of splitter.push(chunk)) this.#onRequest(this.#toRequest(frame))
    })
    client.on('error', () => undefined)
    client.on('close', () => {
      // Behind what is held or delayed: bytes of a dead link may still reach the server.
      this.#toServer = this.#toServer.then(() => {
        if (!this.#muted) upstream.end()
      })
      this.#endIfOver()
    })
  }

  #listenToServer(): void {
    const { client, upstream } = this.#parts
    const splitter = new Splitter()
    upstream.on('data', (chunk: Buffer) => {
      for (const frame of splitter.push(chunk)) this.#onReply(this.#toReply(frame))
    })
    upstream.on('error', () => undefined)
    upstream.on('close', () => {
      this.#toClient = this.#toClient.then(() => {
        if (!this.#muted) client.destroy()
      })
      this.#endIfOver()
    })
  }

  #endIfOver(): void {
    const { client, upstream, onEnd } = this.#parts
    if (client.destroyed && upstream.destroyed) onEnd()
  }

  #onRequest(request: Request): void {
    const { rules, onRequest } = this.#parts
    onRequest(request)
    const dueAt = performance.now() + delayOf(rules.requestDelays, request)
    this.#toServer = this.#toServer.then(() => this.#forwardRequest(request, dueAt))
  }

  async #forwardRequest(request: Request, dueAt: number): Promise<void> {
    const { rules, upstream } = this.#parts
    await until(dueAt)
    if (takeDrop(rules.requestDrops, request)) this.cut()
    const verdict = await passGates(rules.requestGates, request)
    if (this.#muted || verdict === 'drop' || upstream.destroyed) return
    this.#expectReplies(request)
    upstream.write(request.bytes)
  }

  #expectReplies(request: Request): void {
    const perChannel = ONE_REPLY_A_CHANNEL.test(request.name)
    if (perChannel) this.#subscriber = true
    this.#unanswered.push({ request, repliesLeft: perChannel ? Math.max(1, request.words.length - 1) : 1 })
  }

  #onReply(reply: Reply): void {
    const dueAt = performance.now() + delayOf(this.#parts.rules.replyDelays, reply.request)
    this.#toClient = this.#toClient.then(() => this.#forwardReply(reply, dueAt))
  }

  async #forwardReply(reply: Reply, dueAt: number): Promise<void> {
    const { rules, client } = this.#parts
    await until(dueAt)
    if (takeDrop(rules.replyDrops, reply)) this.cut()
    const verdict = await passGates(rules.replyGates, reply)
    if (this.#muted || verdict === 'drop' || client.destroyed) return
    client.write(reply.bytes)
  }

  #toRequest(frame: Frame): Request {
    const words = Array.isArray(frame.value) ? frame.value.map(String) : [String(frame.value)]
    const name = (words[0] ?? '').toUpperCase()
    return { connection: this.#parts.id, name, words, bytes: frame.bytes }
  }

  #toReply(frame: Frame): Reply {
    const request = this.#isMessage(frame) ? undefined : this.#takeAnswered(frame)
    return { connection: this.#parts.id, request, value: frame.value, bytes: frame.bytes }
  }

  #isMessage({ value }: Frame): boolean {
    return this.#subscriber && Array.isArray(value) && MESSAGE_KINDS.has(String(value[0]))
  }

  #takeAnswered(frame: Frame): Request | undefined {
    const head = this.#unanswered[0]
    if (head === undefined) return undefined
    head.repliesLeft = frame.value instanceof Error ? 0 : head.repliesLeft - 1
    if (head.repliesLeft <= 0) this.#unanswered.shift()
    return head.request
  }
}

async function until(dueAt: number): Promise<void> {
  const ms = dueAt - performance.now()
  if (ms > 0) await sleep(Math.ceil(ms))
}
