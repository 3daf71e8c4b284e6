import { ClosedError, WrongTypeError } from '../errors.js'
import type { Runtime } from './runtime.js'
import { kindOf, type Target } from './target.js'

/** Who holds a lock. */
export interface Holders {
  /** -1: the key has no TTL. */
  readonly ttlMs: number
  /** Owner → hold count; never empty. */
  readonly holders: ReadonlyMap<string, number>
}

/** Asks who holds the lock; undefined: nobody. @throws UnavailableError, WrongTypeError, ClosedError */
export async function look(runtime: Runtime, target: Target): Promise<Holders | undefined> {
  if (runtime.closed) throw new ClosedError(target.title)
  const operation = kindOf(target).inspect(target)
  if (operation === undefined) return undefined
  const reply = await runtime.commands.ask(operation, target.title)
  if (reply.outcome === 'foreign') throw wrongType(target)
  return reply.outcome === 'held' ? reply : undefined
}

/** Takes the lock from those who hold it now, and only from them. @throws UnavailableError, WrongTypeError */
export async function forceRelease(runtime: Runtime, target: Target): Promise<boolean> {
  const seen = await look(runtime, target)
  if (seen === undefined) return false
  const operation = kindOf(target).force(target, [...seen.holders.keys()])
  if (operation === undefined) return false
  const { outcome } = await runtime.commands.ask(operation, target.title)
  if (outcome === 'foreign') throw wrongType(target)
  return outcome !== 'none'
}

/** Asks for the highest token that a fenced lock has given; 0: none yet. @throws UnavailableError, WrongTypeError, ClosedError */
export async function highestToken(runtime: Runtime, target: Target): Promise<number> {
  if (runtime.closed) throw new ClosedError(target.title)
  const reply = await runtime.commands.ask({ op: 'fenced.token', name: target.name }, target.title)
  if (reply.outcome === 'badToken') throw wrongToken(target, reply.key)
  return reply.token
}

/** What is under the token's name cannot be given out as the next one. */
export function wrongToken(target: Target, key: string): WrongTypeError {
  return new WrongTypeError(target.title, key, 'a fencing token that can grow (a whole number below 2^53−1)')
}

/** Other data is under the lock's name. */
export function wrongType(target: Target): WrongTypeError {
  return new WrongTypeError(target.title, target.name, kindOf(target).what)
}
