import { EngineError, type Passage } from '../../engine.js'
import type { ForeignReply, Hold, RenewReply, RenewResult } from '../../operations.js'
import type { ScriptDefinition } from '../script.js'

/** What the operations of a family are sent by. */
export interface Wire {
  /** The command by which scripts publish. */
  readonly publish: string
  /** The client's wall clock in whole epoch milliseconds, for times that are compared between processes. */
  now(): number
  /** A setting of the server; undefined: it refuses to tell. Rejects with `EngineError` only. */
  setting(name: string): Promise<string | undefined>
  /** Runs a script. `foreign`: the server said WRONGTYPE. Rejects with `EngineError` only. */
  send<A, R>(definition: ScriptDefinition<A, R>, args: A, passage: Passage): Promise<R | ForeignReply>
}

const RENEW_RESULTS: Readonly<Record<number, RenewResult>> = { 1: 'renewed', 0: 'gone' }

/** Reads what a renewal script answers: 1 renewed, 0 gone, anything else taken. */
export function renewReply(reply: { readonly results: readonly number[] } | ForeignReply): RenewReply {
  // The renewal scripts look at each key by itself, so they never fail for a single key's type.
  if (!('results' in reply))
    throw new EngineError('A renewal was answered with WRONGTYPE', {
      kind: 'refused',
      outcome: 'not-applied',
    })
  return { results: reply.results.map((result) => RENEW_RESULTS[result] ?? 'taken') }
}

/** The name of a hold. */
export function nameOf(hold: Hold): string {
  return hold.name
}

/** The owner of a hold. */
export function ownerOf(hold: Hold): string {
  return hold.owner
}
