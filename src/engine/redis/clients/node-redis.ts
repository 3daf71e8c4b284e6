import { errorMonitor, setMaxListeners } from 'node:events'
import { toPortError } from './errors.js'
import { isCluster, isPool, isSentinel, isSingle } from './node-redis-client.js'
import type { AnyNodeRedis, NodeRedisClient, SendOptions } from './node-redis-client.js'
import { Lanes } from './lanes.js'
import { addressOf, nodeRedisLanes, nodeRedisPlaces } from './node-redis-lane.js'
import { nodeRedisSubscriber } from './node-redis-subscriber.js'
import type { ClientPort, Demand, Passage, RawReply, Readiness, ScriptCall } from './port.js'
import type { SubscriberEvents, SubscriberPort, WaitedReply } from './port.js'
import { refreshTopology } from './node-redis-topology.js'
import { ShardedSubscriber } from './sharded-subscriber.js'
import { ReadyWatch } from './ready-watch.js'
import { normalise } from './replies.js'
import { runScript, type ScriptLink } from './script-run.js'

const NO_MAPPING = { typeMapping: undefined } as const

/** Sends one command; the first key decides the node. */
type Send = (firstKey: string | undefined, args: readonly string[]) => Promise<unknown>

/** The port over a client, cluster, Sentinel client or pool of node-redis 5 or 6. */
export class NodeRedisPort implements ClientPort, ScriptLink {
  readonly client = 'node-redis'
  readonly cluster: boolean
  readonly keyPrefix: string
  readonly now: () => number
  readonly #user: AnyNodeRedis
  /** The one link that it is, if it is one plain client. */
  readonly #single: NodeRedisClient | undefined
  readonly #send: Send
  readonly #watch: ReadyWatch
  /** Opened with the first script that has to be waited for. */
  #lanes: Lanes | undefined

  constructor(client: AnyNodeRedis, now: () => number) {
    this.#user = client
    this.now = now
    this.cluster = isCluster(client)
    // Commands that are sent as they are get no prefix from the client.
    this.keyPrefix = client._keyPrefix ?? client.options?.keyPrefix ?? ''
    this.#single = isSingle(client) ? client : undefined
    if (this.cluster) client.on('node-error', this.#onNodeError)
    this.#send = senderOf(client)
    this.#watch = new ReadyWatch(
      () => this.readiness !== 'waiting',
      (changed) => this.#listen(changed),
    )
  }

  get readiness(): Readiness {
    const client = this.#user
    if (!client.isOpen) return 'closed'
    if (client.isReady === false || (this.cluster && !knowsSlots(client))) return 'waiting'
    return this.#single?.isPubSubActive === true && !speaksResp3(this.#single) ? 'subscriber' : 'ready'
  }

  get database(): number {
    return this.#user.options?.database ?? 0
  }

  /** Only a plain client tells. It never sends twice; a call that waited for a new link counts as doubtful. */
  get epoch(): number {
    return this.#single?.socketEpoch ?? NaN
  }

  onceReady(listener: () => void): () => void {
    return this.#watch.add(listener)
  }

  run(call: ScriptCall, passage: Passage): Promise<RawReply> {
    return runScript(this, call, passage)
  }

  runAndWait(call: ScriptCall, passage: Passage, demand: Demand): Promise<WaitedReply> {
    this.#lanes ??= new Lanes(nodeRedisLanes(this.#user, this.now))
    return this.#lanes.run(call, passage, demand)
  }

  placeOf(key: string): string {
    return addressOf(this.#user, key)
  }

  async ask(command: readonly string[], key?: string): Promise<RawReply> {
    try {
      return normalise(await this.#send(key, command))
    } catch (error) {
      throw toPortError({ error, unbroken: false, cluster: this.cluster })
    }
  }

  evalsha({ script, keys, args }: ScriptCall): Promise<unknown> {
    return this.#send(keys[0], ['EVALSHA', script.sha, String(keys.length), ...keys, ...args])
  }

  evaluate({ script, keys, args }: ScriptCall): Promise<unknown> {
    return this.#send(keys[0], ['EVAL', script.source, String(keys.length), ...keys, ...args])
  }

  decode(reply: unknown): RawReply {
    return normalise(reply)
  }

  /** The library has no call that makes an open client look its address up again. */
  onReadonly(): void {}

  subscriber(events: SubscriberEvents, sharded: boolean): SubscriberPort {
    const user = this.#user
    if (!sharded) return nodeRedisSubscriber(user, events)
    const open = (address: string, heard: SubscriberEvents): SubscriberPort =>
      nodeRedisSubscriber(user, heard, address)
    return new ShardedSubscriber({ ...nodeRedisPlaces(user), open }, events)
  }

  /** Subscribers are closed by themselves. */
  close(): Promise<void> {
    this.#lanes?.close()
    this.#user.off('node-error', this.#onNodeError)
    return Promise.resolve()
  }

  readonly #onNodeError = (): void => {
    if (isCluster(this.#user)) refreshTopology(this.#user)
  }

  #listen(changed: () => void): () => void {
    const client = this.#user
    // Clusters say 'connect'. A client that gives reconnecting up says so by an error only; the monitor is not
    // taken for an error handler: whether one is missing stays the user's matter.
    const events = ['ready', 'connect', 'end', errorMonitor]
    for (const event of events) client.on(event, changed)
    return () => {
      for (const event of events) client.off(event, changed)
    }
  }
}

function senderOf(client: AnyNodeRedis): Send {
  if (isCluster(client)) return (firstKey, args) => client.sendCommand(firstKey, false, args, NO_MAPPING)
  if (isSentinel(client)) return (_firstKey, args) => client.sendCommand(false, args, NO_MAPPING)
  if (isPool(client)) return (_firstKey, args) => client.sendCommand(args, NO_MAPPING)
  let unsent: Unsent | undefined
  return (_firstKey, args) => {
    unsent ??= new Unsent(client)
    return client.sendCommand(args, unsent.options)
  }
}

/**
 * Takes back what was handed to the client but not written when the link dropped; by itself the client would
 * send it after the reconnection, however late. One signal serves all commands of a link, where the client's own
 * time-out would make one for each, which costs about as much as the command.
 */
class Unsent {
  options: SendOptions
  #controller: AbortController | undefined

  constructor(client: NodeRedisClient) {
    this.options = this.#renew()
    client.on('reconnecting', () => {
      this.#controller?.abort()
      this.options = this.#renew()
    })
  }

  #renew(): SendOptions {
    const controller = new AbortController()
    setMaxListeners(0, controller.signal)
    this.#controller = controller
    return { typeMapping: undefined, timeout: 0, abortSignal: controller.signal }
  }
}

/** A cluster of version 5 does not say otherwise when it is ready. */
function knowsSlots(client: AnyNodeRedis): boolean {
  return isCluster(client) && client.masters.length > 0
}

/** Version 5 speaks RESP2 unless told otherwise, version 6 RESP3; its notifications are on with RESP3 only. */
function speaksResp3({ options }: NodeRedisClient): boolean {
  if (options?.RESP !== undefined) return options.RESP === 3
  return (options?.maintNotifications ?? 'disabled') !== 'disabled'
}
