/**
 * What all stand-ins for Redisson share. Everything in this folder is written from the description of the wire
 * (docs/protocol.md) and from nothing else: it must never use a script or a name of the library.
 */
import type { Raw } from '../support/raw.js'
import type { Value } from '../support/resp.js'

/** What Redisson takes where the caller gives no lease. */
export const WATCHDOG_TIMEOUT = 30_000
/** The life of an unlock latch. */
export const LATCH_TTL = 16_000
/** The wait of a fair waiter that gives none. */
export const FAIR_WAIT = 300_000
/** The score of a permit without a lease. */
export const NO_LEASE = '922337203685477'

/** `prefix:{n}`, or `prefix:n` where the name has a brace. */
export function prefixed(prefix: string, name: string): string {
  return name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`
}

/** `{n}:suffix`, or `n:suffix` where the name has a brace. */
export function suffixed(name: string, suffix: string): string {
  return name.includes('{') ? `${name}:${suffix}` : `{${name}}:${suffix}`
}

/** A script of ours, with its keys and arguments. */
export interface Call {
  readonly script: string
  readonly keys: readonly string[]
  readonly args: readonly (string | number)[]
}

/** Runs it. Rejects with the server's words. */
export function run(raw: Raw, { script, keys, args }: Call): Promise<Value> {
  return raw.command('EVAL', script, keys.length, ...keys, ...args)
}

/** Undefined for nil. */
export function maybeNumber(reply: Value): number | undefined {
  return reply === null ? undefined : Number(reply)
}

/** The items of a list as texts. */
export function texts(reply: Value): readonly string[] {
  return Array.isArray(reply) ? reply.map(String) : []
}
