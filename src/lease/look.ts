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
  const reply = await runtime.commands.ask(kindOf(target).inspect(target), target.title)
  if (reply.outcome === 'foreign') throw wrongType(target)
  return reply.outcome === 'held' ? reply : undefined
}

/** Takes the lock from those who hold it now, and only from them. @throws UnavailableError, WrongTypeError */
export async function forceRelease(runtime: Runtime, target: Target): Promise<boolean> {
  const seen = await look(runtime, target)
  if (seen === undefined) return false
  const { outcome } = await runtime.commands.ask(
    kindOf(target).force(target, [...seen.holders.keys()]),
    target.title,
  )
  if (outcome === 'foreign') throw wrongType(target)
  return outcome !== 'none'
}

/** Other data is under the lock's name. */
export function wrongType(target: Target): WrongTypeError {
  return new WrongTypeError(target.title, target.name, kindOf(target).what)
}
