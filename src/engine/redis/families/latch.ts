import type { Passage } from '../../engine.js'
import type { Handlers, LatchOperation } from '../../operations.js'
import { latchChannel, requestKey, roundKey } from '../names.js'
import * as scripts from '../scripts.js'
import { countReply } from './semaphore.js'
import type { Wire } from './wire.js'

/** The latch's operations as scripts. */
export const latchCommands: Handlers<LatchOperation, [Wire, Passage], true> = {
  'latch.set': ({ count, requestMs, ...on }, wire, passage) =>
    wire.send(scripts.latchSet, { ...keys(on, wire), count, requestMs }, passage),
  'latch.countDown': ({ requestMs, ...on }, wire, passage) =>
    wire
      .send(scripts.latchCountDown, { ...keys(on, wire), requestMs }, passage)
      .then((reply) => (reply.outcome === 'counted' ? { ...reply, left: Number(reply.left) } : reply)),
  'latch.cancel': ({ requestMs, ...on }, wire, passage) =>
    wire.send(scripts.latchCancel, { ...keys(on, wire), requestMs }, passage),
  'latch.delete': ({ requestMs, ...on }, wire, passage) =>
    wire.send(scripts.latchDelete, { ...keys(on, wire), requestMs }, passage),
  'latch.inspect': ({ name }, wire, passage) =>
    wire.send(scripts.latchInspect, { latch: name }, passage).then(countReply),
}

function keys(
  { name, request }: { readonly name: string; readonly request: string },
  { publish }: Wire,
): {
  readonly latch: string
  readonly request: string
  readonly round: string
  readonly channel: string
  readonly publish: string
} {
  return {
    latch: name,
    request: requestKey(name, request),
    round: roundKey(name),
    channel: latchChannel(name),
    publish,
  }
}
