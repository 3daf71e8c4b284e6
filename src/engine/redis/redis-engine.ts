import type { Clock } from '../../clock.js'
import {
  EngineError,
  type Engine,
  type Hint,
  type Passage,
  type Subscription,
  type Topic,
} from '../engine.js'
import type {
  ForceReply,
  ForeignReply,
  Hold,
  InspectReply,
  Operation,
  RenewReply,
  RenewResult,
  Replies,
  ReplyOf,
} from '../operations.js'
import { PortError, type ClientPort, type SubscriberEvents, type SubscriberPort } from './clients/port.js'
import { lockChannel, lockTombstone, mutexChannel, mutexTombstone, unsafeInCluster } from './names.js'
import type { ScriptDefinition } from './script.js'
import * as scripts from './scripts.js'
import { slotOf } from './slot.js'
import { Subscriptions } from './subscriptions.js'

/** How the engine is set up. */
export interface RedisEngineOptions {
  readonly clock: Clock
  /** Opens the subscriber link; undefined: waiters poll. */
  readonly subscriber: ((events: SubscriberEvents) => SubscriberPort) | undefined
}

const FOREIGN: ForeignReply = { outcome: 'foreign' }
const PUBLISH = 'PUBLISH'
/** The server's word, and what proxies say instead. */
const CROSS_SLOT = /CROSSSLOT|same slot/i
const NOT_LIVE: Subscription = { live: Promise.resolve(false), close: () => undefined }

/** The engine on Redis or Valkey: one Lua script per operation, messages by publish and subscribe. */
export class RedisEngine implements Engine {
  readonly name: string
  readonly keyPrefix: string
  readonly #port: ClientPort
  readonly #subscriptions: Subscriptions | undefined
  /** The keys of one script must share a slot. */
  #bySlot: boolean

  constructor(port: ClientPort, options: RedisEngineOptions) {
    this.name = `redis (${port.client})`
    this.keyPrefix = port.keyPrefix
    this.#port = port
    this.#bySlot = port.cluster
    this.#subscriptions =
      options.subscriber === undefined ? undefined : new Subscriptions(options.subscriber, options.clock)
  }

  execute<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    const reply: Promise<Replies[Operation['op']]> =
      this.#port.readiness === 'ready' ? this.#run(operation, passage) : this.#later(operation, passage)
    // The compiler cannot see that the reply belongs to this operation; `#run` pairs them case by case.
    return reply as Promise<ReplyOf<O>>
  }

  subscribe(topic: Topic, listener: (hint: Hint) => void): Subscription {
    const channel = topic.family === 'lock' ? lockChannel(topic.name) : mutexChannel(topic.name)
    return this.#subscriptions?.add(channel, listener) ?? NOT_LIVE
  }

  batchKey(name: string): string {
    return this.#bySlot ? String(slotOf(name)) : ''
  }

  checkName(name: string): void {
    const why = this.#port.cluster ? unsafeInCluster(name) : undefined
    if (why !== undefined) throw new RangeError(`Lock name '${name}' cannot be used in a cluster: ${why}`)
  }

  async close(): Promise<void> {
    await this.#subscriptions?.close()
    await this.#port.close()
  }

  /** Waits until the client takes commands; nothing is left in its offline queue. */
  async #later(operation: Operation, passage: Passage): Promise<Replies[Operation['op']]> {
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

  #run(o: Operation, passage: Passage): Promise<Replies[Operation['op']]> {
    switch (o.op) {
      case 'lock.acquire': {
        const { name, owner, count, leaseMs } = o
        const args = { lock: name, tombstone: lockTombstone(name, owner), owner, count, leaseMs }
        return this.#send(scripts.lockAcquire, args, passage)
      }
      case 'lock.leave':
        return this.#send(scripts.lockLeave, { lock: o.name, owner: o.owner, count: o.count }, passage)
      case 'lock.release': {
        const { name, owner, keepMs, entombMs } = o
        const to = { channel: lockChannel(name), publish: PUBLISH }
        const args = { lock: name, tombstone: lockTombstone(name, owner), owner, ...to, keepMs, entombMs }
        return this.#send(scripts.lockRelease, args, passage)
      }
      case 'lock.renew': {
        const args = { locks: o.holds.map(nameOf), ttlMs: o.ttlMs, owners: o.holds.map(ownerOf) }
        return this.#send(scripts.lockRenew, args, passage).then(renewReply, this.#renewFailed)
      }
      case 'lock.inspect':
        return this.#send(scripts.lockInspect, { lock: o.name }, passage).then(lockInspectReply)
      case 'lock.force': {
        const args = { lock: o.name, channel: lockChannel(o.name), publish: PUBLISH, owners: o.owners }
        return this.#send(scripts.lockForce, args, passage)
      }
      case 'mutex.acquire': {
        const { name, owner, leaseMs } = o
        const args = { mutex: name, tombstone: mutexTombstone(name, owner), owner, leaseMs }
        return this.#send(scripts.mutexAcquire, args, passage)
      }
      case 'mutex.release': {
        const { name, owner, keepMs, entombMs } = o
        const to = { channel: mutexChannel(name), publish: PUBLISH }
        const args = { mutex: name, tombstone: mutexTombstone(name, owner), owner, ...to, keepMs, entombMs }
        return this.#send(scripts.mutexRelease, args, passage)
      }
      case 'mutex.renew': {
        const args = { mutexes: o.holds.map(nameOf), ttlMs: o.ttlMs, owners: o.holds.map(ownerOf) }
        return this.#send(scripts.mutexRenew, args, passage).then(renewReply, this.#renewFailed)
      }
      case 'mutex.inspect':
        return this.#send(scripts.mutexInspect, { mutex: o.name }, passage).then(mutexInspectReply)
      case 'mutex.force':
        return this.#forceMutex(o, passage)
    }
  }

  /** A single address may stand before a cluster; then the next try goes out slot by slot. */
  readonly #renewFailed = (error: unknown): never => {
    if (CROSS_SLOT.test(String(error))) this.#bySlot = true
    throw error
  }

  async #forceMutex(
    operation: { readonly name: string; readonly owners: readonly string[] },
    passage: Passage,
  ): Promise<ForceReply> {
    const { name, owners } = operation
    const [owner] = owners
    if (owner === undefined) return { outcome: 'none' }
    return this.#send(
      scripts.mutexForce,
      { mutex: name, owner, channel: mutexChannel(name), publish: PUBLISH },
      passage,
    )
  }

  #send<A, R>(definition: ScriptDefinition<A, R>, args: A, passage: Passage): Promise<R | ForeignReply> {
    const { keys, args: values } = definition.encode(args)
    return this.#port
      .run({ script: definition.script, keys, args: values }, passage)
      .then(definition.decode, failed)
  }
}

const SUBSCRIBER_HINT =
  'The client is in subscriber mode and takes no other commands: pass a client of its own (Holdfast opens its subscriber itself)'

/** Turns a port's error into the reply or the error that the runtime knows. */
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

function nameOf(hold: Hold): string {
  return hold.name
}

function ownerOf(hold: Hold): string {
  return hold.owner
}

const RENEW_RESULTS: Readonly<Record<number, RenewResult>> = { 1: 'renewed', 0: 'gone' }

function renewReply(reply: { readonly results: readonly number[] } | ForeignReply): RenewReply {
  // The renewal scripts look at each key by itself, so they never fail for a single key's type.
  if (!('results' in reply))
    throw new EngineError('A renewal was answered with WRONGTYPE', {
      kind: 'refused',
      outcome: 'not-applied',
    })
  return { results: reply.results.map((result) => RENEW_RESULTS[result] ?? 'taken') }
}

function lockInspectReply(reply: scripts.LockInspectReply | ForeignReply): InspectReply {
  if (reply.outcome !== 'held') return reply
  const holders = new Map<string, number>()
  for (let i = 0; i + 1 < reply.holders.length; i += 2) {
    const owner = reply.holders[i]
    if (owner !== undefined && owner !== 'mode') holders.set(owner, Number(reply.holders[i + 1]))
  }
  return { outcome: 'held', ttlMs: reply.ttlMs, holders }
}

function mutexInspectReply(reply: scripts.MutexInspectReply | ForeignReply): InspectReply {
  if (reply.outcome !== 'held') return reply
  return { outcome: 'held', ttlMs: reply.ttlMs, holders: new Map([[reply.holder, 1]]) }
}
