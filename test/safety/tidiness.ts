/** What should not be there: owners without a lease, holds too many, leftovers. */
import type { Finding } from './findings.js'
import { common, type Span } from './intervals.js'
import type { Attempt, Hold, Look, Story } from './story.js'

/** So long after the call has given up, and after the last trouble, the owner must be gone from the server. */
const GIVE_BACK_MS = 2_500
/** A process that did not run for so long may have missed replies, as in a fault. */
const LONG_STALL_MS = 100
/** Commands may fail for so long after a fault is over, until the link is there again. */
const AFTERMATH_MS = 1_000

interface Sighting extends Span {
  readonly owner: string
  readonly lock: string
}

/** Owners that the server has although none of their calls has a lease, or has one any more. */
export function checkGhosts(story: Story): Finding[] {
  const processes = new Map(story.holds.map(({ owner, process }) => [clientOf(owner), process]))
  const tenures = tenuresOf(story)
  return sightings(story.looks).flatMap((sighting) => {
    const { owner, lock } = sighting
    const process = processes.get(clientOf(owner))
    if (process === undefined) return []
    const tenure = tenures.get(owner)
    const limit =
      tenure === undefined ? afterCall(story, sighting, process) : afterRelease(story, sighting, tenure)
    const overMs = sighting.to - limit
    if (overMs <= 0) return []
    const state = tenure === undefined ? 'never had a lease' : 'has released it'
    const what = `${owner} of worker ${process} ${state}, but the server showed it ${overMs.toFixed(0)} ms too long`
    const calls = tenure?.calls.map(({ call }) => call) ?? []
    return [{ check: 'ghost' as const, lock, at: sighting.to, what, ms: overMs, calls }]
  })
}

/** From the first to the last look that showed the owner. */
function sightings(looks: readonly Look[]): Sighting[] {
  const found = new Map<string, Sighting>()
  for (const { owner, lock, from, to } of looks) {
    if (owner === null) continue
    const key = `${lock} ${owner}`
    const first = found.get(key)?.from ?? to
    found.set(key, { owner, lock, from: first, to: from })
  }
  return [...found.values()]
}

/** Until when a call without a lease may have an owner on the server. */
function afterCall(story: Story, sighting: Sighting, process: string): number {
  const ends = [...story.attempts.values()]
    .filter((attempt) => attempt.process === process && attempt.lock === sighting.lock)
    .filter(({ invokedAt, endedAt = Infinity }) => invokedAt <= sighting.from && endedAt >= sighting.from)
    .map(({ endedAt = Infinity }) => endedAt)
  return givenBack(story, sighting, { process, endedAt: Math.max(sighting.from, ...ends) })
}

/** Until when an owner may be on the server after its last release. */
function afterRelease(story: Story, sighting: Sighting, { process, calls }: Tenure): number {
  const ends = calls.map((call) => lifeOf(call).to)
  const endedAt = Math.max(...ends)
  const last = calls[ends.indexOf(endedAt)]
  if (endedAt === Infinity || calls.some(({ keeps }) => keeps)) return Infinity
  if (last?.hold?.released?.outcome === 'released') return endedAt
  return givenBack(story, sighting, { process, endedAt })
}

function givenBack(
  story: Story,
  sighting: Sighting,
  { process, endedAt }: { readonly process: string; readonly endedAt: number },
): number {
  const ending = story.endings.get(process)
  // Nobody can give back for the dead: the server does when the TTL is over.
  if (ending !== undefined && ending.at <= sighting.to) return Infinity
  const stalls = [...story.stalls(process), ...story.stalls('world')].filter(isLong)
  const troubles = [...story.faultsOn(process), ...stalls]
    .filter(({ from }) => from <= sighting.to)
    .map(({ to }) => to)
  return Math.max(endedAt, ...troubles) + GIVE_BACK_MS
}

/** The client's id, which all owners of one process have in common. */
function clientOf(owner: string): string {
  return owner.slice(0, owner.lastIndexOf(':'))
}

/** Counts on the server against the nested calls that the worker knows of. */
export function checkCounts(story: Story): Finding[] {
  const tenures = tenuresOf(story)
  return story.looks.flatMap((look) => {
    const tenure = look.owner === null ? undefined : tenures.get(look.owner)
    if (tenure === undefined || look.count === 1 || look.count <= knownHolds(story, tenure, look)) return []
    const what = `the server counts ${String(look.count)} holds of ${String(look.owner)}, and its worker knows of fewer`
    const calls = tenure.calls.map(({ call }) => call)
    return [{ check: 'count', lock: look.lock, at: look.from, what, calls }]
  })
}

/** The calls of one owner. */
interface Tenure {
  readonly process: string
  readonly calls: readonly Attempt[]
}

function tenuresOf(story: Story): Map<string, Tenure> {
  const calls = new Map<string, Attempt[]>()
  for (const attempt of story.attempts.values()) {
    const owner = ownerOf(story, attempt)
    if (owner !== undefined) calls.set(owner, [...(calls.get(owner) ?? []), attempt])
  }
  const entries = [...calls].map(([owner, list]) => [owner, { process: list[0]?.process ?? '', calls: list }])
  return new Map(entries as [string, Tenure][])
}

function ownerOf(story: Story, { hold, parent }: Attempt): string | undefined {
  return hold?.owner ?? (parent === undefined ? undefined : story.attempts.get(parent)?.hold?.owner)
}

/**
 * After a nested command of unknown outcome the count on the server stays as it is, and the last release removes the
 * owner whatever its count: so after trouble the most that ever was counts.
 */
function knownHolds(story: Story, { process, calls }: Tenure, look: Look): number {
  const begun = Math.min(...calls.map(({ invokedAt }) => invokedAt))
  const troubles = [...story.faultsOn(process), ...story.stalls(process).filter(isLong)]
  const troubled = troubles.some(({ from, to }) => from <= look.to && to + AFTERMATH_MS >= begun)
  const at = (moment: Span): number => calls.filter((call) => meets(lifeOf(call), moment)).length
  if (!troubled) return at(look)
  return Math.max(...calls.map(({ invokedAt }) => at({ from: invokedAt, to: invokedAt })))
}

function isLong({ from, to }: Span): boolean {
  return to - from >= LONG_STALL_MS
}

function meets(a: Span, b: Span): boolean {
  const { from, to } = common(a, b)
  return to >= from
}

/** From the call until the worker knows that its hold is over. */
function lifeOf({ invokedAt, endedAt, hold }: Attempt): Span {
  return { from: invokedAt, to: (hold === undefined ? endedAt : overAt(hold)) ?? Infinity }
}

function overAt({ released }: Hold): number | undefined {
  return released?.at
}

export function checkExits(story: Story): Finding[] {
  const died = [...story.endings]
    .filter(([, { killed }]) => !killed)
    .flatMap(([process, { at, how }]) => {
      const left = story.ended.get(process)
      if (how === 'exit 0' && left === 0) return []
      const what =
        left === undefined || left === 0
          ? `worker ${process} ended with ${how}`
          : `worker ${process} ended with ${String(left)} things pending`
      return [{ check: 'exit' as const, lock: undefined, at, what, calls: [] }]
    })
  const stayed = (story.drain?.who ?? []).filter((process) => story.endings.get(process)?.killed !== false)
  return [
    ...died,
    ...stayed.map((process) => ({
      check: 'exit' as const,
      lock: undefined,
      at: story.end,
      calls: [],
      what: `worker ${process} did not end by itself`,
    })),
  ]
}

export function checkRemains({ remains, terms }: Story): Finding[] {
  if (remains === undefined) return []
  const finding = (what: string): Finding => ({
    check: 'remains',
    lock: undefined,
    at: remains.t,
    what,
    calls: [],
  })
  return [
    ...remains.keys
      .filter(({ key }) => !isTombstone(key, terms.locks))
      .map(({ key }) => finding(`key ${key}`)),
    ...remains.keys.filter(({ ttlMs }) => ttlMs < 0).map(({ key }) => finding(`key ${key} without a TTL`)),
    ...remains.channels.map((channel) => finding(`a subscription of ${channel}`)),
  ]
}

function isTombstone(key: string, locks: readonly string[]): boolean {
  return locks.some((lock) =>
    [`redisson_unlock_latch:{${lock}}:`, `holdfast_mutex_tombstone:{${lock}}:`].some((start) =>
      key.startsWith(start),
    ),
  )
}
