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
import { PortError, type ClientPort, type Demand } from './clients/port.js'
import type { ScriptCall, SubscriberEvents, SubscriberPort, WaitedReply } from './clients/port.js'
import { settingIn } from './clients/replies.js'
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
import { bounded, isGrant, Replication, type ReplicationSetting } from './replication.js'
import type { ScriptDefinition } from './script.js'
import { slotOf } from './clients/slot.js'
import { Subscriptions, type Listener } from './subscriptions.js'

type Settable<T> = { -readonly [K in keyof T]: T[K] }
type Handler<O extends Operation> = (operation: O, wire: Wire, passage: Passage) => Promise<ReplyOf<O>>

/** How the engine is set up. */
export interface RedisEngineOptions {
  readonly clock: Clock
  /** Opens the subscriber link; undefined: waiters poll. */
  readonly subscriber: ((events: SubscriberEvents, sharded: boolean) => SubscriberPort) | undefined
  /** Whether messages go by the slot of their channel's name. `'auto'`: in a cluster that can do so. */
  readonly shardedPubSub?: 'auto' | 'on' | 'off' | undefined
  /** What grants wait for; undefined: nothing. */
  readonly replication?: ReplicationSetting | undefined
  /** How long a connection of our own may be silent. */
  readonly patienceMs?: number | undefined
}

const PATIENCE_MS = 3_000
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
  readonly #wire: Settable<Wire> = {
    publish: 'PUBLISH',
    now: () => Math.floor(this.#clock.wall()),
    setting: (name) => this.#setting(name),
    send: (definition, args, passage) => this.#send(definition, args, passage),
  }
  /** The same for grants that replicas have to confirm. */
  readonly #confirmed: Settable<Wire> = {
    ...this.#wire,
    send: (definition, args, passage) => this.#sendConfirmed(definition, args, passage),
  }
  readonly #replication: Replication | undefined
  readonly #patienceMs: number
  /** Whether messages go by slots; undefined: nobody has asked the servers yet. */
  #sharded: boolean | undefined
  #asking: Promise<void> | undefined
  readonly #subscriptions: Subscriptions | undefined
  /** The keys of one script must share a slot. */
  #bySlot: boolean

  constructor(port: ClientPort, options: RedisEngineOptions) {
    this.name = `redis (${port.client})`
    this.keyPrefix = port.keyPrefix
    this.#port = port
    this.#clock = options.clock
    this.#bySlot = port.cluster
    const { replication, clock, patienceMs = PATIENCE_MS } = options
    this.#patienceMs = patienceMs
    if (replication !== undefined && replication.acks !== 0)
      this.#replication = new Replication(port, { setting: replication, clock, patienceMs })
    this.#setSharded(port.cluster ? SHARDED[options.shardedPubSub ?? 'auto'] : false)
    const { subscriber } = options
    if (subscriber !== undefined)
      this.#subscriptions = new Subscriptions((events) => subscriber(events, this.#sharded === true), clock)
  }

  execute<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    return this.#port.readiness === 'ready' ? this.#run(operation, passage) : this.#later(operation, passage)
  }

  subscribe(topic: Topic, listener: (hint: Hint) => void): Subscription {
    // Nobody listens before the first attempt, which has asked the servers.
    if (this.#sharded === undefined) return NOT_LIVE
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
    if (passage.abandoned) throw givenUp()
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
    return this.#sharded === undefined
      ? this.#runWhenKnown(operation, passage)
      : this.#runNow(operation, passage)
  }

  /** The first operation in a cluster asks how messages go there, as Redisson does: both sides must do the same. */
  async #runWhenKnown<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    this.#asking ??= this.#askForShards().finally(() => {
      this.#asking = undefined
    })
    await this.#asking
    if (passage.abandoned) throw givenUp()
    return this.#runNow(operation, passage)
  }

  async #askForShards(): Promise<void> {
    try {
      await bounded(this.#patienceMs, this.#port.ask(['PUBSUB', 'SHARDNUMSUB']))
      this.#setSharded(true)
    } catch (error) {
      if (!(error instanceof PortError) || error.kind !== 'refused') failed(error)
      this.#setSharded(false)
    }
  }

  #setSharded(sharded: boolean | undefined): void {
    this.#sharded = sharded
    const publish = sharded === true ? 'SPUBLISH' : 'PUBLISH'
    this.#wire.publish = publish
    this.#confirmed.publish = publish
  }

  #runNow<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    // The compiler cannot see that handler and reply belong to this operation; the table pairs them.
    const handler: unknown = BY_NAME[operation.op]
    return (handler as Handler<O>)(operation, this.#wireFor(operation), passage)
  }

  #send<A, R>(definition: ScriptDefinition<A, R>, args: A, passage: Passage): Promise<R | ForeignReply> {
    return this.#runScript(definition, callOf(definition, args), passage)
  }

  #runScript<A, R>(
    definition: ScriptDefinition<A, R>,
    call: ScriptCall,
    passage: Passage,
  ): Promise<R | ForeignReply> {
    return this.#port.run(call, passage).then(definition.decode, this.#failed)
  }

  #wireFor(operation: Operation): Wire {
    return this.#replication !== undefined && isGrant(operation) ? this.#confirmed : this.#wire
  }

  /** Grants only what enough replicas have: what one primary alone knows is gone with it. */
  #sendConfirmed<A, R>(
    definition: ScriptDefinition<A, R>,
    args: A,
    passage: Passage,
  ): Promise<R | ForeignReply> {
    const call = callOf(definition, args)
    const demand = this.#replication?.demand(call.keys[0] ?? '')
    // Nearly always there is nothing to wait for, and that way has no promise more than any other.
    return demand === undefined
      ? this.#runScript(definition, call, passage)
      : this.#runConfirmed(definition, { call, demand }, passage)
  }

  async #runConfirmed<A, R>(
    definition: ScriptDefinition<A, R>,
    { call, demand: known }: { readonly call: ScriptCall; readonly demand: Demand | 'unknown' },
    passage: Passage,
  ): Promise<R | ForeignReply> {
    const key = call.keys[0] ?? ''
    const demand = known === 'unknown' ? await this.#learn(key, passage) : known
    if (demand === undefined) return this.#runScript(definition, call, passage)
    const waited = await this.#port.runAndWait(call, passage, demand).catch(this.#failed)
    if (!('acks' in waited)) return waited
    const reply = definition.decode(waited.reply)
    if (waited.acks < demand.acks && isGranted(reply)) this.#tooFew(key, demand, waited)
    return reply
  }

  /** Asks until it is known: what was learnt may be in doubt again before it is used. */
  async #learn(key: string, passage: Passage): Promise<Demand | undefined> {
    for (;;) {
      await this.#replication?.learn(key).catch(failed)
      if (passage.abandoned) throw givenUp()
      const demand = this.#replication?.demand(key)
      if (demand !== 'unknown') return demand
    }
  }

  #tooFew(key: string, { acks: wanted }: Demand, { acks, trouble }: WaitedReply): void {
    const refused = trouble?.kind === 'refused'
    if (refused && this.#replication?.setting.explicit === false) return
    this.#replication?.doubt(key)
    const why = trouble === undefined ? '' : ` (${trouble.message})`
    throw new EngineError(`${String(acks)} of ${String(wanted)} replicas confirmed it in time${why}`, {
      kind: refused ? 'refused' : 'unavailable',
      outcome: 'unknown',
      cause: trouble,
      shortfall: { acks, wanted },
    })
  }

  async #setting(name: string): Promise<string | undefined> {
    try {
      return settingIn(await this.#port.ask(['CONFIG', 'GET', name]))
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

function givenUp(): EngineError {
  return new EngineError('The call was given up before it was sent', {
    kind: 'abandoned',
    outcome: 'not-applied',
  })
}

const SHARDED = { auto: undefined, on: true, off: false } as const
const SUBSCRIBER_HINT =
  'The client is in subscriber mode and takes no other commands: pass a client of its own (Holdfast opens its subscriber itself)'

function callOf<A, R>({ script, encode }: ScriptDefinition<A, R>, args: A): ScriptCall {
  const { keys, args: values } = encode(args)
  return { script, keys, args: values }
}

function isGranted(reply: unknown): boolean {
  return typeof reply === 'object' && reply !== null && 'outcome' in reply && reply.outcome === 'granted'
}

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
