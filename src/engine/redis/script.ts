/**
 * What the generated `scripts.ts` is made of: the type of a script with its encoding and decoding, and
 * the few functions that read replies. A reply that no header declares is a bug and throws.
 */
import type { RawReply, Script } from './clients/port.js'

/** The arguments of one run as they go to the server: the keys (the first decides the slot), then the rest. */
export interface EncodedArguments {
  readonly keys: readonly string[]
  readonly args: readonly string[]
}

/** A script with its arguments `A` and its outcomes `R`. */
export interface ScriptDefinition<A, R> {
  readonly script: Script
  readonly encode: (args: A) => EncodedArguments
  /** Throws an `Error` that names script and reply when the reply is none of the declared ones. */
  readonly decode: (reply: RawReply) => R
}

/** Whether the reply is a list that begins with this status and has exactly this many elements. */
export function hasStatus(reply: RawReply, status: number, length: number): reply is readonly RawReply[] {
  return isList(reply) && reply[0] === status && reply.length === length
}

/** Whether the reply is a list that begins with this status and has at least this many elements. */
export function hasOpenStatus(reply: RawReply, status: number, least: number): reply is readonly RawReply[] {
  return isList(reply) && reply[0] === status && reply.length >= least
}

/** The integer at `index` of a list. */
export function integerAt(script: string, reply: readonly RawReply[], index: number): number {
  const value = reply[index]
  if (typeof value !== 'number') throw unexpected(script, reply)
  return value
}

/** The string at `index` of a list. */
export function stringAt(script: string, reply: readonly RawReply[], index: number): string {
  const value = reply[index]
  if (typeof value !== 'string') throw unexpected(script, reply)
  return value
}

/** The integers of a list from `start` on. */
export function integersFrom(script: string, reply: RawReply, start: number): readonly number[] {
  if (!isList(reply)) throw unexpected(script, reply)
  const values: number[] = []
  for (let index = start; index < reply.length; index += 1) values.push(integerAt(script, reply, index))
  return values
}

/** The strings of a list from `start` on. */
export function stringsFrom(script: string, reply: RawReply, start: number): readonly string[] {
  if (!isList(reply)) throw unexpected(script, reply)
  const values: string[] = []
  for (let index = start; index < reply.length; index += 1) values.push(stringAt(script, reply, index))
  return values
}

/** The error for a reply that the script's header does not declare. */
export function unexpected(script: string, reply: RawReply): Error {
  return new Error(`The script ${script} gave a reply that it does not declare: ${JSON.stringify(reply)}`)
}

function isList(reply: RawReply): reply is readonly RawReply[] {
  return typeof reply === 'object' && reply !== null
}
