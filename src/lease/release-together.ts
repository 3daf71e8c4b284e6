import type { ReleaseOutcome } from '../diagnostics.js'
import { newPassage } from '../engine/engine.js'
import { ENTOMB_MS } from './compensation.js'
import type { HeldLease } from './lease.js'
import { endTenure, judge, persist } from './release.js'
import type { Runtime } from './runtime.js'
import type { Tenure } from './tenure.js'

/** An owner of one lock that is ended together with others. */
interface Ending {
  readonly runtime: Runtime
  readonly tenure: Tenure
  readonly settle: (outcome: ReleaseOutcome | Promise<ReleaseOutcome>) => void
}

/** Releases several leases; owners of re-entrant locks whose keys share a slot are ended by one script. Never rejects. */
export function releaseTogether(leases: readonly HeldLease[]): readonly Promise<ReleaseOutcome>[] {
  const groups = new Map<string, Ending[]>()
  const outcomes = leases.map((lease) =>
    lease.releaseBy((runtime, tenure) => {
      if (!plain(tenure)) return endTenure(runtime, tenure)
      return new Promise((settle) => {
        const key = `${runtime.clientId} ${tenure.owner} ${runtime.commands.engine.batchKey(tenure.target.name)}`
        const group = groups.get(key)
        if (group === undefined) groups.set(key, [{ runtime, tenure, settle }])
        else group.push({ runtime, tenure, settle })
      })
    }),
  )
  for (const group of groups.values()) endAll(group)
  return outcomes
}

/** Nothing is special about its end. */
function plain(tenure: Tenure): boolean {
  return (
    tenure.target.family === 'lock' && tenure.lossReason === undefined && tenure.keepMs === 0 && tenure.idle
  )
}

function endAll(group: readonly Ending[]): void {
  const [first] = group
  if (first === undefined) return
  if (group.length === 1) first.settle(endTenure(first.runtime, first.tenure))
  else endByScript(first.runtime, first.tenure.owner, group)
}

function endByScript(runtime: Runtime, owner: string, group: readonly Ending[]): void {
  const { commands, clock } = runtime
  const names = group.map(({ tenure }) => tenure.target.name)
  const entombMs = group.some(({ tenure }) => !tenure.once || tenure.frozen) ? ENTOMB_MS : 0
  const passage = newPassage()
  const send = { deadlineMs: clock.now() + commands.timeoutMs, keepAlive: true }
  commands.send({ op: 'multi.release', names, owner, entombMs }, passage, send).then(
    ({ results }) => {
      const nowMs = clock.now()
      group.forEach(({ tenure, settle }, i) => {
        settle(judge(tenure, { outcome: results[i] ?? 'gone' }, { passage, nowMs }))
      })
    },
    (error: unknown) => {
      // From here on each goes its own way; that something may have been sent stays known.
      for (const { tenure, settle } of group)
        settle(persist({ runtime, tenure, entombMs, passage: { ...passage } }, send, error))
    },
  )
}
