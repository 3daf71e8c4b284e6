import { diagnose } from '../diagnostics.js'
import { newPassage } from '../engine/engine.js'
import type { ServerIdentifyReply } from '../engine/operations.js'
import type { Red, RedMember } from './red.js'
import type { Runtime } from './runtime.js'

/** A server that did not say who it is is asked again after this time. */
const ASK_AGAIN_MS = 60_000

interface Asked {
  readonly atMs: number
  readonly identity: Promise<ServerIdentifyReply | undefined>
}

const asked = new WeakMap<Runtime, Asked>()
const checked = new WeakMap<Runtime, WeakSet<Runtime>>()

/** Looks, once and in the background, whether the members are what a majority needs: independent servers, and enough of them. */
export function checkMembers(red: Red): void {
  const { members } = red
  members.forEach((one, i) => {
    members.slice(i + 1).forEach((other, j) => {
      const known = checked.get(one.runtime) ?? new WeakSet<Runtime>()
      if (known.has(other.runtime)) return
      checked.set(one.runtime, known.add(other.runtime))
      void compare(red, { one, i }, { other, j: i + 1 + j })
    })
  })
  const [first] = members
  if (first === undefined || (members.length % 2 === 1 && members.length > 1)) return
  const known = checked.get(first.runtime) ?? new WeakSet<Runtime>()
  if (known.has(first.runtime)) return
  checked.set(first.runtime, known.add(first.runtime))
  diagnose(red.title, 'members', countMessage(members.length))
}

function countMessage(count: number): string {
  return count === 1
    ? 'A lock over one server is no safer than a plain lock, which costs less'
    : `A lock over ${String(count)} servers bears no more failures than one over ${String(count - 1)}`
}

async function compare(
  red: Red,
  { one, i }: { readonly one: RedMember; readonly i: number },
  { other, j }: { readonly other: RedMember; readonly j: number },
): Promise<void> {
  const [mine, theirs] = await Promise.all([identify(one), identify(other)])
  if (mine === undefined || theirs === undefined) {
    // Not answered: it is looked at again with one of the next uses.
    checked.get(one.runtime)?.delete(other.runtime)
    return
  }
  const what =
    mine.runId === theirs.runId ? 'are the same server' : 'have the same data (a primary and its replica)'
  if (mine.runId !== theirs.runId && mine.dataId !== theirs.dataId) return
  const message = `Members ${String(i)} and ${String(j)} of lock '${red.title}' ${what}: a majority of them proves nothing`
  diagnose(red.title, 'members', message)
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_MEMBERS' })
}

function identify({ runtime, target }: RedMember): Promise<ServerIdentifyReply | undefined> {
  const { clock, commands } = runtime
  const before = asked.get(runtime)
  if (before !== undefined && clock.now() - before.atMs < ASK_AGAIN_MS) return before.identity
  const deadlineMs = clock.now() + commands.timeoutMs
  const operation = { op: 'server.identify', name: target.name } as const
  const identity = commands
    .send(operation, newPassage(), { deadlineMs, keepAlive: false })
    .catch(() => undefined)
  asked.set(runtime, { atMs: clock.now(), identity })
  return identity
}
