import { diagnose } from '../diagnostics.js'
import type { Call } from './call.js'
import type { Runtime } from './runtime.js'
import { CallSite, type ScopeNode } from './scope.js'
import { kindOf } from './target.js'

/** `watchSelfWait` and what lies between it and the caller of `acquire`; of `using` it is one less. */
const OUR_FRAMES = 6
const DEPTH = 12

/**
 * Watches a call that may wait for itself: the lock is held by a bare `acquire()` of the same async tree. That
 * is told at once to those who listen, and as a process warning when the wait has lasted one watchdog time-out.
 * Returns the function that stops the watching; undefined: there is nothing to watch.
 */
export function watchSelfWait(
  runtime: Runtime,
  call: Call,
  from: ScopeNode | undefined,
): (() => void) | undefined {
  // Readers do not wait for readers.
  const reading = kindOf(call.target).reading === true
  const holder = runtime.scope.bareHolder(call.target, from, (held) => !reading || held.family !== 'read')
  if (holder === undefined) return undefined
  const site = new CallSite(OUR_FRAMES, DEPTH)
  const message = (): string =>
    `Waiting for lock '${call.target.title}' at ${String(site)}, which the same async tree took at ` +
    `${String(holder.site ?? 'a place that was not noted')} by acquire(): use lease.run(), using(), or the option within`
  diagnose(call.target.title, 'self-wait', message())
  const timer = runtime.clock.setTimer(
    () => {
      if (holder.lease?.live !== true) return
      process.emitWarning(message(), { type: 'HoldfastWarning', code: 'HOLDFAST_SELF_WAIT' })
    },
    runtime.settings.lockWatchdogTimeout,
    false,
  )
  return () => {
    timer.cancel()
  }
}
