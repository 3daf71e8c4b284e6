import type { Clock } from '../../clock.js'
import {
  EngineError,
  type DataListener,
  type DataTopic,
  type Engine,
  type Hint,
  type Passage,
  type Subscription,
  type Topic,
} from '../engine.js'
import type { ForeignReply, Handlers, Operation, ReplyOf } from '../operations.js'
import { PortError, type ClientPort, type SubscriberEvents, type SubscriberPort } from './clients/port.js'
import { fairCommands } from './families/fair.js'
import { fencedCommands } from './families/fenced.js'
import { latchCommands } from './families/latch.js'
import { lockCommands } from './families/lock.js'
import { multiCommands } from './families/multi.js'
import { mutexCommands } from './families/mutex.js'
import { permitsCommands } from './families/permits.js'
import { readWriteCommands } from './families/read-write.js'
import { semaphoreCommands } from './families/semaphore.js'
import { serverCommands } from './families/server.js'
import { spinCommands } from './families/spin.js'
import { watchCommands } from './families/watch.js'
import type { Wire } from './families/wire.js'
import { channelOf, keyspaceChannel, unsafeInCluster } from './names.js'
import type { ScriptDefinition } from './script.js'
import { slotOf } from './slot.js'
import { Subscriptions, type Listener } from './subscriptions.js'

type Handler<O extends Operation> = (operation: O, wire: Wire, passage: Passage) => Promise<ReplyOf<O>>

/** How the engine is set up. */
export interface RedisEngineOptions {
  readonly clock: Clock
  /** Opens the subscriber link; undefined: waiters poll. */
  readonly subscriber: ((events: SubscriberEvents) => SubscriberPort) | undefined
}

const FOREIGN: ForeignReply = { outcome: 'foreign' }
/** The server's word, and what proxies say instead. */
const CROSS_SLOT = /CROSSSLOT|same slot/i
const HANDLERS: Handlers<Operation, [Wire, Passage], true> = {
  ...lockCommands,
  ...readWriteCommands,
  ...mutexCommands,
  ...semaphoreCommands,
  ...permitsCommands,
  ...latchCommands,
  ...multiCommands,
  ...serverCommands,
  ...fairCommands,
  ...fencedCommands,
  ...spinCommands,
  ...watchCommands,
}
/** The same without the types, whose product is too large for the compiler. */
const BY_NAME: Readonly<Record<string, unknown>> = HANDLERS
const NOT_LIVE: Subscription = { live: Promise.resolve(false), close: () => undefined }

/** The engine on Redis or Valkey: one Lua script per operation, messages by publish and subscribe. */
export class RedisEngine implements Engine {
  readonly name: string
  readonly keyPrefix: string
  readonly #port: ClientPort
  readonly #clock: Clock
  readonly #wire: Wire = {
    publish: 'PUBLISH',
    now: () => Math.floor(this.#clock.wall()),
    setting: (name) => this.#setting(name),
    send: (definition, args, passage) => this.#send(definition, args, passage),
  }
  readonly #subscriptions: Subscriptions | undefined
  /** The keys of one script must share a slot. */
  #bySlot: boolean

  constructor(port: ClientPort, options: RedisEngineOptions) {
    this.name = `redis (${port.client})`
    this.keyPrefix = port.keyPrefix
    this.#port = port
    this.#clock = options.clock
    this.#bySlot = port.cluster
    this.#subscriptions =
      options.subscriber === undefined ? undefined : new Subscriptions(options.subscriber, options.clock)
  }

  execute<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    return this.#port.readiness === 'ready' ? this.#run(operation, passage) : this.#later(operation, passage)
  }

  subscribe(topic: Topic, listener: (hint: Hint) => void): Subscription {
    return this.#subscriptions?.add(channelOf(topic), listener) ?? NOT_LIVE
  }

  listenTo({ kind, name }: DataTopic, listener: DataListener): Subscription {
    // In a cluster each node tells of its own keys only, and to those who listen there.
    if (this.#port.cluster) return NOT_LIVE
    const prefix = keyspaceChannel(this.#port.database)
    const heard: Listener = (hint, message) => {
      if (message !== undefined)
        listener({ key: message.channel.slice(prefix.length), event: message.payload })
      else if (hint === 'resync' || hint === 'down') listener(hint)
    }
    return (
      this.#subscriptions?.add(prefix + name, heard, kind === 'pattern' ? 'pattern' : 'channel') ?? NOT_LIVE
    )
  }

  batchKey(name: string): string {
    return this.#bySlot ? String(slotOf(name)) : ''
  }

  checkName(name: string, family?: Topic['family']): void {
    const why = this.#port.cluster ? unsafeInCluster(name, family) : undefined
    if (why !== undefined) throw new RangeError(`Lock name '${name}' cannot be used in a cluster: ${why}`)
  }

  checkPattern(pattern: string): void {
    if (this.#port.cluster)
      throw new RangeError(`The pattern '${pattern}' cannot be watched in a cluster: give the keys by name`)
  }

  async close(): Promise<void> {
    await this.#subscriptions?.close()
    await this.#port.close()
  }

  /** Waits until the client takes commands; nothing is left in its offline queue. */
  async #later<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    while (this.#port.readiness === 'waiting' && !passage.abandoned) {
      await new Promise<void>((resolve) => {
        const withdraw = this.#port.onceReady(resolve)
        passage.onAbandon = () => {
          withdraw()
          resolve()
        }
      })
      passage.onAbandon = undefined
    }
    if (passage.abandoned)
      throw new EngineError('The call was given up before it was sent', {
        kind: 'abandoned',
        outcome: 'not-applied',
      })
    switch (this.#port.readiness) {
      case 'closed':
        throw new EngineError(`The ${this.#port.client} client is closed or was never connected`, {
          kind: 'closed',
          outcome: 'not-applied',
        })
      case 'subscriber':
        throw new EngineError(SUBSCRIBER_HINT, { kind: 'refused', outcome: 'not-applied' })
      default:
        return this.#run(operation, passage)
    }
  }

  #run<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    // The compiler cannot see that handler and reply belong to this operation; the table pairs them.
    const handler: unknown = BY_NAME[operation.op]
    return (handler as Handler<O>)(operation, this.#wire, passage)
  }

  #send<A, R>(definition: ScriptDefinition<A, R>, args: A, passage: Passage): Promise<R | ForeignReply> {
    const { keys, args: values } = definition.encode(args)
    return this.#port
      .run({ script: definition.script, keys, args: values }, passage)
      .then(definition.decode, this.#failed)
  }

  async #setting(name: string): Promise<string | undefined> {
    try {
      return await this.#port.setting(name)
    } catch (error) {
      if (!(error instanceof PortError) || error.kind !== 'refused') failed(error)
      return undefined
    }
  }

  /** Turns a port's error into the reply or the error that the runtime knows. */
  readonly #failed = (error: unknown): ForeignReply => {
    // A single address may stand before a cluster; then the next try goes out slot by slot.
    if (CROSS_SLOT.test(String(error))) this.#bySlot = true
    return failed(error)
  }
}

const SUBSCRIBER_HINT =
  'The client is in subscriber mode and takes no other commands: pass a client of its own (Holdfast opens its subscriber itself)'

function failed(error: unknown): ForeignReply {
  if (!(error instanceof PortError))
    throw new EngineError('The client failed', { kind: 'refused', outcome: 'unknown', cause: error })
  switch (error.kind) {
    case 'wrong-type':
      return FOREIGN
    case 'connection':
    case 'unavailable':
      throw new EngineError(error.message, {
        kind: 'unavailable',
        outcome: error.outcome,
        cause: error.cause ?? error,
      })
    default:
      throw new EngineError(error.message, {
        kind: error.kind,
        outcome: error.outcome,
        cause: error.cause ?? error,
      })
  }
}
