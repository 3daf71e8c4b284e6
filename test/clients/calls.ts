/** Scripts and passages for the adapter tests. */
import { createHash } from 'node:crypto'
import type { ClientPort, Passage, PortError, RawReply, Script } from '../../src/engine/redis/clients/port.js'
import type { RedisServer } from '../support/server.js'

export function script(source: string): Script {
  return { name: 'test', source, sha: createHash('sha1').update(source).digest('hex') }
}

export function passage(): Passage {
  return { abandoned: false, sends: 0, firstSentAtMs: 0, lastSentAtMs: 0, once: false }
}

export const INCR = script("return redis.call('incr', KEYS[1])")
export const SET = script("return redis.call('set', KEYS[1], ARGV[1])")
export const HGET = script("return redis.call('hget', KEYS[1], 'field')")
export const ECHO = script('return {KEYS, ARGV}')

/** Runs a script once and forgets how it travelled. */
export function run(
  port: ClientPort,
  { source }: Script,
  keys: readonly string[] = ['key'],
  args: readonly string[] = [],
) {
  return port.run({ script: script(source), keys, args }, passage())
}

/** The error that a run ends with. */
export async function failure(result: Promise<RawReply>): Promise<PortError> {
  const settled = await result.then(
    (reply) => new Error(`resolved with ${JSON.stringify(reply)}`),
    (error: unknown) => error as PortError,
  )
  if (!('kind' in settled)) throw settled
  return settled
}

export type Counts = Readonly<Record<string, number>>

/** How often the server was given each command since the last reset. */
export async function commandCounts(server: RedisServer): Promise<Counts> {
  const text = String(await server.send('INFO', 'commandstats'))
  const entries = [...text.matchAll(/^cmdstat_(\S+?):calls=(\d+),.*?(?:rejected_calls=(\d+))?/gm)]
  return Object.fromEntries(entries.map(([, name = '', calls]) => [name, Number(calls)] as const))
}
