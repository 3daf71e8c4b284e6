import { systemClock, type Clock } from '../../../clock.js'
import { isIoredis } from './ioredis-client.js'
import { ioredisSubscriberFrom } from './ioredis-subscriber.js'
import { IoredisPort } from './ioredis.js'
import { isNodeRedis, isSingle } from './node-redis-client.js'
import { nodeRedisSubscriberFrom } from './node-redis-subscriber.js'
import { NodeRedisPort } from './node-redis.js'
import type { ClientPort, SubscriberEvents, SubscriberPort } from './port.js'

const EXPECTED = 'a client of ioredis 5 or 6, or of node-redis (the package redis) 5 or 6'

/**
 * Recognises a client by its shape and makes the port over it. No I/O: a client that is closed or in
 * subscriber mode shows in the port's `readiness`.
 *
 * @param clock - what passages are stamped with
 * @throws TypeError for anything that is not a client that is known
 */
export function createPort(client: unknown, clock: Clock = systemClock): ClientPort {
  const now = clock.now.bind(clock)
  if (isObject(client)) {
    if (isIoredis(client)) return new IoredisPort(client, now)
    if (isNodeRedis(client)) return new NodeRedisPort(client, now)
  }
  throw new TypeError(`Expected ${EXPECTED}, got ${describe(client)}`)
}

/**
 * Makes a subscriber over a client that the user keeps for messages. The client is never closed; it
 * reconnects by its own settings.
 *
 * @throws TypeError for anything that is not a client that is known
 */
export function subscriberFrom(client: unknown, events: SubscriberEvents): SubscriberPort {
  if (isObject(client)) {
    if (isIoredis(client)) return ioredisSubscriberFrom(client, events)
    if (isNodeRedis(client) && isSingle(client)) return nodeRedisSubscriberFrom(client, events)
  }
  throw new TypeError(`Expected ${EXPECTED} as subscriber, got ${describe(client)}`)
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function describe(value: unknown): string {
  if (value instanceof Promise) return 'a promise: await it first'
  if (typeof value === 'string') return 'a string: to connect by address, use Holdfast.connect'
  if (typeof value === 'function') return 'a function or class: give an instance'
  if (!isObject(value)) return value === null ? 'null' : `a value of type ${typeof value}`
  const made: unknown = Reflect.get(value, 'constructor')
  return typeof made !== 'function' || made === Object ? 'a plain object' : `an object of class ${made.name}`
}
