import { EngineError, type Passage } from '../../engine.js'
import type { Handlers, MultiOperation, MultiReleaseReply } from '../../operations.js'
import { lockChannel, lockTombstone } from '../names.js'
import * as scripts from '../scripts.js'
import type { Wire } from './wire.js'

type Result = MultiReleaseReply['results'][number]

const RESULTS: Readonly<Record<number, Result>> = {
  1: 'released',
  2: 'unannounced',
  0: 'gone',
  [-1]: 'taken',
}

/** The operations on several re-entrant locks as scripts. */
export const multiCommands: Handlers<MultiOperation, [Wire, Passage], true> = {
  'multi.acquire': ({ names, owner, leaseMs }, wire, passage) =>
    wire
      .send(scripts.multiAcquire, { keys: keysOf(names, owner), owner, leaseMs }, passage)
      .then((reply) => (reply.outcome === 'foreign' && !('index' in reply) ? neverForeign() : reply)),
  'multi.release': ({ names, owner, entombMs }, wire, passage) => {
    const to = { publish: wire.publish, channels: names.map(lockChannel) }
    return wire
      .send(scripts.multiRelease, { keys: keysOf(names, owner), owner, entombMs, ...to }, passage)
      .then((reply) => ('results' in reply ? { results: reply.results.map(resultOf) } : neverForeign()))
  },
}

/** The locks, then their tombstones. */
function keysOf(names: readonly string[], owner: string): readonly string[] {
  return [...names, ...names.map((name) => lockTombstone(name, owner))]
}

function resultOf(result: number): Result {
  return RESULTS[result] ?? 'foreign'
}

/** The scripts look at each key's type by themselves, so they never fail for it. */
function neverForeign(): never {
  throw new EngineError('A script on several locks was answered with WRONGTYPE', {
    kind: 'refused',
    outcome: 'unknown',
  })
}
