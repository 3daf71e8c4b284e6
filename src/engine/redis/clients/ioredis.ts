import { isIP } from 'node:net'
import { toPortError } from './errors.js'
import { OWN_LINK, type IoredisClient, type IoredisOptions } from './ioredis-client.js'
import { addressOf, ioredisLanes, ioredisPlaces, nodeFor } from './ioredis-lane.js'
import { ioredisSubscriber } from './ioredis-subscriber.js'
import { Lanes } from './lanes.js'
import type { ClientPort, Demand, Passage, RawReply, Readiness, ScriptCall } from './port.js'
import type { SubscriberEvents, SubscriberPort, WaitedReply } from './port.js'
import { ShardedSubscriber } from './sharded-subscriber.js'
import { ReadyWatch } from './ready-watch.js'
import { normalise, normaliseTyped } from './replies.js'
import { runScript, type ScriptLink } from './script-run.js'

const LONGEST_PAUSE_MS = 2_000
/** With 64 callers at once, 8, 16 and 32 gave 0.92, 1.03 and 1.07 of the floor's rate, and all in one write 0.70. */
const COMMANDS_PER_WRITE = 16
const RECONNECT_AT_MOST_EVERY_MS = 10_000

const GOING: ReadonlySet<string> = new Set(['reconnecting', 'disconnecting', 'close'])
const ENDED = { status: 'end' } as const

const ignore = (): void => undefined

/** The port over a client of ioredis 5 or 6. */
export class IoredisPort implements ClientPort, ScriptLink {
  readonly client = 'ioredis'
  readonly cluster: boolean
  readonly keyPrefix: string
  readonly now: () => number
  /** With the setting `stringNumbers`, integers come as strings, and only Buffers tell them from texts. */
  readonly #typed: boolean
  readonly #user: IoredisClient
  /** Sends keys as they are; undefined while a client with a prefix has no such connection. */
  #sender: IoredisClient | undefined
  readonly #watch: ReadyWatch
  /** Opened with the first script that has to be waited for. */
  #lanes: Lanes | undefined
  #reconnectedAtMs = -Infinity
  /** Commands sent since the stream was corked. */
  #gathered = 0

  constructor(client: IoredisClient, now: () => number) {
    const { options } = client
    this.#user = client
    this.now = now
    this.cluster = client.isCluster === true
    this.keyPrefix = textOf(options.keyPrefix)
    this.#typed = (options.stringNumbers ?? options.redisOptions?.stringNumbers) === true
    this.#sender = this.keyPrefix === '' ? client : undefined
    this.#watch = new ReadyWatch(
      () => this.readiness !== 'waiting',
      (changed) => this.#listen(changed),
    )
  }

  get readiness(): Readiness {
    const state = stateOf(this.#user)
    if (this.#sender === this.#user || state === 'closed' || state === 'subscriber') return state
    // Our own connection is opened again when it has ended, as long as the user's client is open.
    return this.#sender !== undefined && stateOf(this.#sender) === 'ready' ? 'ready' : 'waiting'
  }

  get database(): number {
    return this.#user.condition?.select ?? this.#user.options.db ?? 0
  }

  get epoch(): number {
    return this.cluster ? NaN : (this.#sender?.connectionEpoch ?? NaN)
  }

  onceReady(listener: () => void): () => void {
    if (this.#sender !== this.#user) this.#openSender()
    else if (this.#user.status === 'wait') this.#user.connect().catch(ignore)
    return this.#watch.add(listener)
  }

  run(call: ScriptCall, passage: Passage): Promise<RawReply> {
    return runScript(this, call, passage)
  }

  runAndWait(call: ScriptCall, passage: Passage, demand: Demand): Promise<WaitedReply> {
    this.#lanes ??= new Lanes(ioredisLanes(this.#user, this.now))
    return this.#lanes.run(call, passage, demand)
  }

  placeOf(key: string): string {
    return this.cluster ? addressOf(this.#user, key) : ''
  }

  async ask([name = '', ...args]: readonly string[], key?: string): Promise<RawReply> {
    try {
      const sender = this.#ready()
      return normalise(await (key === undefined ? sender : nodeFor(sender, key)).call(name, ...args))
    } catch (error) {
      throw toPortError({ error, unbroken: false, cluster: this.cluster })
    }
  }

  evalsha({ script, keys, args }: ScriptCall): Promise<unknown> {
    const sender = this.#ready()
    this.#gather(sender)
    return this.#typed
      ? sender.evalshaBuffer(script.sha, keys.length, keys, args)
      : sender.evalsha(script.sha, keys.length, keys, args)
  }

  evaluate({ script, keys, args }: ScriptCall): Promise<unknown> {
    const sender = this.#ready()
    return this.#typed
      ? sender.evalBuffer(script.source, keys.length, keys, args)
      : sender.eval(script.source, keys.length, keys, args)
  }

  /**
   * Lets the commands of one turn of the event loop go out together: a system call each would cost more
   * than all the rest. In pieces, so that the server is at work while the next piece is made.
   */
  #gather(sender: IoredisClient): void {
    const { stream } = sender
    if (this.cluster || stream?.cork === undefined) return
    if (this.#gathered++ > 0) {
      if (this.#gathered % COMMANDS_PER_WRITE !== 0) return
      stream.uncork?.()
      stream.cork()
      return
    }
    stream.cork()
    process.nextTick(() => {
      this.#gathered = 0
      stream.uncork?.()
    })
  }

  decode(reply: unknown): RawReply {
    return this.#typed ? normaliseTyped(reply) : normalise(reply)
  }

  /**
   * A demoted server keeps its links open, and the client stays on it. Where the address may lead to
   * another server by now, looking it up again is the only way out. Users' own choices win.
   */
  onReadonly(): void {
    if (this.cluster || !mayLeadElsewhere(this.#user.options)) return
    if (this.now() - this.#reconnectedAtMs < RECONNECT_AT_MOST_EVERY_MS) return
    this.#reconnectedAtMs = this.now()
    this.#sender?.disconnect(true)
  }

  subscriber(events: SubscriberEvents, sharded: boolean): SubscriberPort {
    const user = this.#user
    if (!sharded) return ioredisSubscriber(user, events)
    const open = (address: string, heard: SubscriberEvents): SubscriberPort =>
      ioredisSubscriber(user, heard, address)
    return new ShardedSubscriber({ ...ioredisPlaces(user), open }, events)
  }

  close(): Promise<void> {
    this.#lanes?.close()
    if (this.#sender !== this.#user) this.#closeSender()
    return Promise.resolve()
  }

  #ready(): IoredisClient {
    if (this.#sender === undefined) throw new Error('The client is offline')
    return this.#sender
  }

  #openSender(): void {
    if (stateOf(this.#user) === 'closed' || (this.#sender ?? ENDED).status !== 'end') return
    this.#closeSender()
    const sender = withoutPrefix(this.#user, this.cluster)
    sender.on('error', ignore)
    sender.on('ready', this.#changed)
    this.#user.on('end', this.#closeSender)
    this.#sender = sender
    sender.connect().catch(ignore)
  }

  /** Wakes those who wait: the connection without prefix is not the one that the watch listens to. */
  readonly #changed = (): void => {
    this.#watch.check()
  }

  readonly #closeSender = (): void => {
    this.#user.off('end', this.#closeSender)
    this.#sender?.disconnect()
    this.#sender = undefined
  }

  #listen(changed: () => void): () => void {
    const user = this.#user
    for (const event of ['ready', 'end']) user.on(event, changed)
    return () => {
      for (const event of ['ready', 'end']) user.off(event, changed)
    }
  }
}

function stateOf(client: IoredisClient): Readiness {
  const { status, mode } = client
  // Closed by the user between two attempts to reconnect, or as a cluster, it does not get as far as 'end'.
  if (status === 'end' || (client.manuallyClosing === true && GOING.has(status))) return 'closed'
  if (mode !== undefined && mode !== 'normal') return 'subscriber'
  // A half-closed link still counts as ready for ioredis, which then queues what it is given.
  return status === 'ready' && client.stream?.writable !== false ? 'ready' : 'waiting'
}

function mayLeadElsewhere(options: IoredisOptions): boolean {
  if (typeof options.retryStrategy !== 'function' || typeof options.reconnectOnError === 'function')
    return false
  if (options.autoResendUnfulfilledCommands === false) return false
  if (Array.isArray(options.sentinels)) return true
  return options.path === undefined && isIP(options.host ?? 'localhost') === 0
}

function withoutPrefix(client: IoredisClient, cluster: boolean): IoredisClient {
  if (!cluster) return client.duplicate({ ...OWN_LINK, retryStrategy: pauseBefore })
  const redisOptions = { ...client.options.redisOptions, keyPrefix: '' }
  return client.duplicate([], { keyPrefix: '', lazyConnect: true, redisOptions })
}

function pauseBefore(attempt: number): number {
  return Math.min(2 ** (attempt - 1) * 50, LONGEST_PAUSE_MS) * (1 + Math.random() / 4)
}

function textOf(prefix: unknown): string {
  if (typeof prefix === 'string') return prefix
  return Buffer.isBuffer(prefix) ? prefix.toString() : ''
}
