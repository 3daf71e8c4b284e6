import type { Passage } from '../../engine.js'
import type {
  CountReply,
  ForeignReply,
  Handlers,
  SemaphoreAcquireReply,
  SemaphoreOperation,
} from '../../operations.js'
import { requestKey, semaphoreChannel } from '../names.js'
import * as scripts from '../scripts.js'
import type { Wire } from './wire.js'

/** The semaphore's operations as scripts. */
export const semaphoreCommands: Handlers<SemaphoreOperation, [Wire, Passage], true> = {
  'semaphore.acquire': ({ permits, initial, requestMs, ...on }, wire, passage) =>
    wire
      .send(scripts.semaphoreAcquire, { ...keys(on, wire), permits, initial, requestMs }, passage)
      .then(acquireReply),
  'semaphore.end': ({ permits, requestMs, ...on }, wire, passage) =>
    wire.send(scripts.semaphoreEnd, { ...keys(on, wire), permits, requestMs }, passage),
  'semaphore.add': ({ permits, initial, requestMs, ...on }, wire, passage) =>
    wire.send(scripts.semaphoreAdd, { ...keys(on, wire), permits, initial, requestMs }, passage),
  'semaphore.drain': ({ initial, requestMs, ...on }, wire, passage) =>
    wire
      .send(scripts.semaphoreDrain, { ...keys(on, wire), initial, requestMs }, passage)
      .then((reply) => (reply.outcome === 'drained' ? { ...reply, permits: Number(reply.permits) } : reply)),
  'semaphore.set': ({ permits, ttlMs, requestMs, ...on }, wire, passage) =>
    wire.send(scripts.semaphoreSet, { ...keys(on, wire), permits, ttlMs, requestMs }, passage),
  'semaphore.inspect': ({ name }, wire, passage) =>
    wire.send(scripts.semaphoreInspect, { semaphore: name }, passage).then(countReply),
}

function acquireReply(reply: scripts.SemaphoreAcquireReply | ForeignReply): SemaphoreAcquireReply {
  switch (reply.outcome) {
    case 'granted':
      return { outcome: 'granted', left: Number(reply.left) }
    case 'busy':
      return { outcome: 'busy', available: Number(reply.available) }
    default:
      return reply
  }
}

/** Reads what a look at a number answers. */
export function countReply(reply: scripts.SemaphoreInspectReply | ForeignReply): CountReply {
  return reply.outcome === 'counted' ? { outcome: 'counted', count: Number(reply.count) } : reply
}

function keys(
  { name, request }: { readonly name: string; readonly request: string },
  { publish }: Wire,
): {
  readonly semaphore: string
  readonly request: string
  readonly channel: string
  readonly publish: string
} {
  return { semaphore: name, request: requestKey(name, request), channel: semaphoreChannel(name), publish }
}
