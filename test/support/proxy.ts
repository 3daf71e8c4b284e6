/** A TCP proxy in front of a server that understands whole commands and replies, for link faults on purpose. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { Link } from './link.js'
import { freePort } from './ports.js'
import { Connection } from './proxy-connection.js'
import { Gate, Rules, toPredicate, toReplyPredicate } from './proxy-rules.js'
import type { Match, Reply, ReplyMatch, Request } from './proxy-rules.js'
import type { Value } from './resp.js'

export type { Gate, Match, Reply, ReplyMatch, Request } from './proxy-rules.js'

export interface ProxyOptions {
  /** The port of the server behind. */
  readonly port: number
  /** The port to listen on. Omitted: a free one. */
  readonly listen?: number | undefined
}

/** Starts a proxy that passes everything. */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const proxy = new Proxy(options.listen ?? (await freePort()), options.port)
  await proxy.accept()
  return proxy
}

/**
 * Faults are set on the proxy and hold for all its connections, present and future.
 *
 * Within one connection the order is kept, as TCP keeps it: what comes behind a held or delayed request
 * waits too. Re-ordering needs two connections, or {@link Proxy.sendAgain}.
 */
export class Proxy implements Disposable {
  readonly port: number
  readonly url: string
  /** Every request that clients sent, in the order of arrival, also those that never reached the server. */
  readonly requests: Request[] = []
  readonly #rules = new Rules()
  readonly #connections = new Set<Connection>()
  #target: number
  #accepted = 0
  #server: Server | undefined

  /** Use {@link startProxy}. */
  constructor(port: number, target: number) {
    this.port = port
    this.url = `redis://127.0.0.1:${port}`
    this.#target = target
  }

  /** Client connections that are open now. */
  get connections(): number {
    return [...this.#connections].filter((connection) => connection.clientOpen).length
  }

  /** Client connections accepted so far. */
  get accepted(): number {
    return this.#accepted
  }

  /** How many requests clients sent so far. */
  count(match?: Match): number {
    return match === undefined ? this.requests.length : this.requests.filter(toPredicate(match)).length
  }

  /** Ends every fault: lets go what is held, delays nothing, swallows nothing, accepts connections. */
  async pass(): Promise<void> {
    this.#rules.clear()
    await this.accept()
  }

  /**
   * Swallows all bytes both ways and keeps the sockets open: nobody is told. Connections that were open
   * meanwhile have lost bytes, and stay mute after `pass` until they are cut.
   */
  blackHole(): void {
    this.#rules.mute = true
    for (const connection of this.#connections) connection.mute()
  }

  /** Every request (that matches) goes on only after so many ms. */
  delayRequests(ms: number, match?: Match): void {
    this.#rules.requestDelays.push({ ms, match: toPredicate(match) })
  }

  /** Every reply (to a request that matches) goes on only after so many ms. */
  delayReplies(ms: number, match?: Match): void {
    this.#rules.replyDelays.push({ ms, match: toPredicate(match) })
  }

  /** Withholds requests that match, and what comes behind them on their connections. */
  holdRequests(match?: Match): Gate<Request> {
    const gate = new Gate<Request>(toPredicate(match))
    this.#rules.requestGates.push(gate)
    return gate
  }

  /**
   * Withholds replies that match, and what comes behind them. Published messages are replies without a
   * request; a word or pattern looks at the request that is answered, a function at the reply.
   */
  holdReplies(match?: ReplyMatch): Gate<Reply> {
    const gate = new Gate<Reply>(toReplyPredicate(match))
    this.#rules.replyGates.push(gate)
    return gate
  }

  /** The server executes the next `times` matching requests; instead of the reply both sockets are cut. */
  dropReply(match?: ReplyMatch, times = 1): void {
    this.#rules.replyDrops.push({ match: toReplyPredicate(match), left: times })
  }

  /** The next `times` matching requests never reach the server; both sockets are cut. */
  dropRequest(match?: Match, times = 1): void {
    this.#rules.requestDrops.push({ match: toPredicate(match), left: times })
  }

  /** Cuts all connections on both sides. What is held on them is lost. */
  cutAll(): void {
    for (const connection of this.#connections) connection.cut()
  }

  /** Cuts the clients' sides only: requests that are held still reach the server when they are let go. */
  cutClients(): void {
    for (const connection of this.#connections) connection.cutClient()
  }

  /** New connections are refused; those that are open stay. */
  refuse(): void {
    // Stops listening at once; that its callback waits for the open connections does not matter here.
    this.#server?.close()
    this.#server = undefined
  }

  /** Takes connections again after `refuse`. */
  accept(): Promise<void> {
    if (this.#server !== undefined) return Promise.resolve()
    const server = createServer((socket) => {
      this.#connect(socket)
    })
    this.#server = server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port: this.port, host: '127.0.0.1' }, resolve)
    })
  }

  /** New connections go to another server from now on, as after a fail-over. */
  retarget(port: number): void {
    this.#target = port
  }

  /**
   * A late copy: the bytes of a request once more, over a fresh connection to the server, with the same
   * user and database.
   */
  async sendAgain(request: Request): Promise<Value> {
    const isSetUp = ({ connection, name }: Request): boolean =>
      connection === request.connection && ['AUTH', 'HELLO', 'SELECT'].includes(name)
    const link = await Link.open(this.#target)
    try {
      for (const earlier of this.requests.filter(isSetUp)) await link.sendBytes(earlier.bytes)
      return await link.sendBytes(request.bytes)
    } finally {
      link.close()
    }
  }

  /** Cuts everything and stops listening. */
  close(): void {
    this.refuse()
    this.cutAll()
    this.#rules.clear()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #connect(client: Socket): void {
    this.#accepted += 1
    const upstream = connect({ host: '127.0.0.1', port: this.#target, noDelay: true })
    const connection = new Connection({
      id: this.#accepted,
      client,
      upstream,
      rules: this.#rules,
      onRequest: (request) => this.requests.push(request),
      onEnd: () => this.#connections.delete(connection),
    })
    this.#connections.add(connection)
    if (this.#rules.mute) connection.mute()
  }
}
