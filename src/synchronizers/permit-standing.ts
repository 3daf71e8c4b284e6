import type { Topic } from '../engine/engine.js'
import { worthRetrying } from '../lease/commands.js'
import type { Runtime } from '../lease/runtime.js'
import { PermitLine, type Free, type Waiter } from './permit-line.js'

/** What one attempt came to. */
export interface Tried<G extends object> extends Free {
  /** Undefined: there were too few permits; `void`: it came too late, and was given back. */
  readonly grant: G | 'void' | undefined
}

/** One call in the line of its process. */
export interface Standing<G extends object> {
  readonly runtime: Runtime
  readonly line: PermitLine
  readonly call: Waiter
  /** Tries once. */
  attempt(): Promise<Tried<G>>
  /** Tells that the call waits. */
  waits(): void
  /** What the caller is to see of an error. */
  failed(error: unknown): unknown
}

/** The line of a process for one semaphore; `kind` keeps apart those that have a channel in common. */
export function permitLine(
  runtime: Runtime,
  kind: 'semaphore' | 'permits',
  { name, title }: { readonly name: string; readonly title: string },
): PermitLine {
  return runtime.gathering(`${kind} ${name}`, (onEmpty) => {
    const { commands, clock } = runtime
    const topic: Topic = { family: 'semaphore', name }
    return new PermitLine({ title, topic, engine: commands.engine, clock, onEmpty })
  })
}

/** Waits until permits are granted. Undefined: the waiting is over. @throws what `failed` makes of the last error */
export async function standInLine<G extends object>(standing: Standing<G>): Promise<G | undefined> {
  const { runtime, line, call } = standing
  let mine = line.join(call)
  try {
    for (; ; mine = false) {
      if (!mine) {
        standing.waits()
        mine = await line.turn(call)
      }
      if (!mine) break
      const sinceMs = runtime.clock.now()
      try {
        const tried = await standing.attempt()
        if (tried.grant === 'void') line.tooLate(call)
        else line.answered(call, tried)
        if (typeof tried.grant === 'object') return tried.grant
      } catch (error) {
        noteTrouble(standing, sinceMs, error)
      }
      if (call.overdue) break
    }
    throwLastCause(standing)
    return undefined
  } finally {
    line.leave(call)
  }
}

/** Notes that an attempt was not served. @throws if another one is of no use, or the time for trying is over */
function noteTrouble(standing: Standing<object>, sinceMs: number, error: unknown): void {
  const { runtime, line, call } = standing
  if (call.fired || !worthRetrying(error)) throw standing.failed(error)
  if (cutShort(standing, sinceMs)) return
  line.troubled(call, error, sinceMs)
  const { unavailableAfter } = runtime.settings
  line.dismissHopeless(unavailableAfter)
  if (line.hopeless(call, unavailableAfter)) throw standing.failed(error)
}

/** The end of `waitTime` cut an attempt short before it could mean anything: what was seen before counts. */
function cutShort({ runtime, line, call }: Standing<object>, sinceMs: number): boolean {
  const { clock, commands } = runtime
  return line.served && call.overdue && clock.now() - sinceMs < Math.min(500, commands.timeoutMs)
}

/** The end of the waiting: the last cause decides. */
function throwLastCause(standing: Standing<object>): void {
  const { call, line } = standing
  if (call.fired) throw standing.failed(call.reason)
  if (line.trouble !== undefined) throw standing.failed(line.trouble)
}
