import { diagnose } from '../diagnostics.js'
import type { Call } from './call.js'
import type { Runtime } from './runtime.js'
import type { CallSite, ScopeNode } from './scope.js'

/** Where a call comes from. */
export interface Origin {
  /** The path of the calling code before this call. */
  readonly node: ScopeNode | undefined
  /** The caller's line; undefined where it is not kept. */
  readonly site: CallSite | undefined
}

/**
 * Watches a call that may wait for itself: the lock is held by a bare `acquire()` of the same async tree. That
 * is told at once to those who listen, and as a process warning when the wait has lasted one watchdog time-out.
 * Returns the function that stops the watching; undefined: there is nothing to watch.
 */
export function watchSelfWait(runtime: Runtime, call: Call, from: Origin): (() => void) | undefined {
  const holder = runtime.scope.bareHolder(call.target, from.node)
  if (holder === undefined) return undefined
  const message = (): string =>
    `Waiting for lock '${call.target.title}' at ${String(from.site ?? 'an unknown place')}, which the same async tree took at ` +
    `${String(holder.site)} by acquire(): use lease.run(), using(), or the option within`
  diagnose(call.target.title, 'self-wait', message())
  const timer = runtime.clock.setTimer(
    () => {
      process.emitWarning(message(), { type: 'HoldfastWarning', code: 'HOLDFAST_SELF_WAIT' })
    },
    runtime.settings.lockWatchdogTimeout,
    false,
  )
  return () => {
    timer.cancel()
  }
}
