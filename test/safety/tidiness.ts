/** What should not be there: owners without a lease, holds too many, leftovers. */
import type { Finding } from './findings.js'
import type { RemainingKey } from './history.js'
import { common, isLong, type Span } from './intervals.js'
import type { Attempt, Hold, Look, Story } from './story.js'
import type { Thing } from './things.js'

/** So long after the call has given up, and after the last trouble, the owner must be gone from the server. */
const GIVE_BACK_MS = 2_500
/** Commands may fail for so long after a fault is over, until the link is there again. */
const AFTERMATH_MS = 1_000
/** Whatever took a permit for nobody was called no earlier than this. */
const LATE_MS = 6_000

/** An owner, or one permit, that the server showed in a lock or in its queue. */
interface Sighting extends Span {
  readonly field: string
  readonly lock: string
  readonly queued: boolean
}

/** What is known about it. */
interface Suspect {
  readonly process: string
  /** Until when it may be there. */
  readonly limit: number
  readonly state: string
  readonly calls: readonly Attempt[]
}

/** Owners that the server has although none of their calls has a lease, or has one any more. */
export function checkGhosts(story: Story): Finding[] {
  const suspectOf = suspects(story)
  return sightings(story.looks).flatMap((sighting) => {
    const suspect = suspectOf(sighting)
    if (suspect === undefined) return []
    const { process, limit, state, calls } = suspect
    const overMs = sighting.to - limit
    if (overMs <= 0) return []
    const where = sighting.queued ? 'in the queue ' : ''
    const what = `${sighting.field} of worker ${process} ${state}, but the server showed it ${where}${overMs.toFixed(0)} ms too long`
    const lock = sighting.lock
    return [
      {
        check: 'ghost' as const,
        lock,
        at: sighting.to,
        what,
        ms: overMs,
        calls: calls.map(({ call }) => call),
      },
    ]
  })
}

/** From the first to the last look that showed it. What is left of a minimum hold is nobody's. */
function sightings(looks: readonly Look[]): Sighting[] {
  const found = new Map<string, Sighting>()
  for (const { holders, queue, lock, from, to } of looks) {
    const shown = [
      ...holders.map(({ field }) => ({ field, queued: false })),
      ...queue.map((field) => ({ field, queued: true })),
    ]
    for (const { field, queued } of shown) {
      if (/:00?$/.test(field)) continue
      const key = `${lock} ${field} ${String(queued)}`
      found.set(key, { field, queued, lock, from: found.get(key)?.from ?? to, to: from })
    }
  }
  return [...found.values()]
}

function suspects(story: Story): (sighting: Sighting) => Suspect | undefined {
  const processes = new Map(story.holds.map(({ owner, process }) => [clientOf(owner), process]))
  const tenures = tenuresOf(story)
  const attempts = attemptsOf(story)
  return (sighting) => {
    const own = attempts.get(sighting.lock) ?? []
    const tenure = tenures.get(`${sighting.lock} ${sighting.field}`)
    if (tenure !== undefined) {
      const { process, calls } = tenure
      const granted = Math.max(...calls.map(({ hold }) => hold?.grantedAt ?? 0))
      return sighting.queued
        ? {
            process,
            calls,
            state: 'was granted',
            limit: givenBack(story, sighting, { process, endedAt: granted }),
          }
        : { process, calls, state: 'has released it', limit: afterRelease(story, sighting, tenure) }
    }
    const process = processes.get(clientOf(sighting.field))
    const state = 'never had a lease'
    if (process !== undefined)
      return { process, calls: [], state, limit: afterCall(story, own, { sighting, process }) }
    // A permit does not tell whose it is.
    return sighting.field.includes(':') ? undefined : ofAnybody(story, own, sighting)
  }
}

function ofAnybody(story: Story, attempts: readonly Attempt[], sighting: Sighting): Suspect | undefined {
  const { from } = sighting
  const callers = attempts.filter(
    ({ invokedAt, endedAt = Infinity }) => invokedAt <= from && endedAt >= from - LATE_MS,
  )
  const limits = [...new Set(callers.map(({ process }) => process))].map((process) =>
    afterCall(story, attempts, { sighting, process }),
  )
  if (limits.length === 0) return undefined
  return { process: 'unknown', calls: [], state: 'never had a lease', limit: Math.max(...limits) }
}

/** By the locks that they are about: those of a multi-lock are about all its members. */
function attemptsOf(story: Story): Map<string, Attempt[]> {
  const found = new Map<string, Attempt[]>()
  for (const attempt of story.attempts.values()) {
    const members = story.thing(attempt.lock)?.members ?? []
    for (const lock of [attempt.lock, ...members.map(({ name }) => name)]) {
      const others = found.get(lock)
      if (others === undefined) found.set(lock, [attempt])
      else others.push(attempt)
    }
  }
  return found
}

/** Until when a call without a lease may have an owner on the server. */
function afterCall(
  story: Story,
  attempts: readonly Attempt[],
  { sighting, process }: { readonly sighting: Sighting; readonly process: string },
): number {
  const ends = attempts
    .filter((attempt) => attempt.process === process)
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

/** The client's id, which all owners of one process have in common; of a permit nothing. */
function clientOf(owner: string): string {
  return owner.slice(0, Math.max(0, owner.indexOf(':')))
}

/** Counts on the server against the nested calls that the worker knows of. */
export function checkCounts(story: Story): Finding[] {
  const tenures = tenuresOf(story)
  return story.looks.flatMap((look) =>
    look.holders.flatMap(({ field, count }) => {
      const tenure = count <= 1 ? undefined : tenures.get(`${look.lock} ${field}`)
      if (tenure === undefined || count <= knownHolds(story, tenure, look)) return []
      const what = `the server counts ${String(count)} holds of ${field}, and its worker knows of fewer`
      const calls = tenure.calls.map(({ call }) => call)
      return [{ check: 'count' as const, lock: look.lock, at: look.from, what, calls }]
    }),
  )
}

/** The calls of one owner. */
interface Tenure {
  readonly process: string
  readonly calls: readonly Attempt[]
}

function tenuresOf(story: Story): Map<string, Tenure> {
  const calls = new Map<string, Attempt[]>()
  for (const attempt of story.attempts.values()) {
    for (const field of fieldsOf(story, attempt)) {
      const key = `${attempt.lock} ${field}`
      const others = calls.get(key)
      if (others === undefined) calls.set(key, [attempt])
      else others.push(attempt)
    }
  }
  const entries = [...calls].map(([owner, list]) => [owner, { process: list[0]?.process ?? '', calls: list }])
  return new Map(entries as [string, Tenure][])
}

/** A call inside of another's lease may enter that one's owner once more. */
function fieldsOf(story: Story, { hold, parent, lock, side }: Attempt): readonly string[] {
  if (hold !== undefined) return hold.fields
  const around = parent === undefined ? undefined : story.attempts.get(parent)
  return around?.lock === lock && around.side === side ? (around.hold?.fields ?? []) : []
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

export function checkRemains(story: Story): Finding[] {
  const { remains, terms } = story
  if (remains === undefined) return []
  const finding = (what: string): Finding => ({
    check: 'remains',
    lock: undefined,
    at: remains.t,
    what,
    calls: [],
  })
  return [
    ...remains.keys.filter((left) => !mayRemain(terms.locks, left)).map((left) => finding(toldOf(left))),
    ...remains.channels.map((channel) => finding(`a subscription of ${channel}`)),
  ]
}

function toldOf({ key, ttlMs, value }: RemainingKey): string {
  const details = [ttlMs < 0 ? 'without a TTL' : '', value === undefined ? '' : `that is ${value}`]
  return ['key', key, ...details.filter((detail) => detail !== '')].join(' ')
}

/** Marks of ended owners for a time; the last token and the number of permits, all of them given back, for ever. */
export function mayRemain(locks: readonly Thing[], { key, ttlMs, value }: RemainingKey): boolean {
  return locks.some(({ name, kind, permits }) => {
    if (kind === 'permits' && key === name) return ttlMs < 0 && value === String(permits)
    if (kind === 'fenced' && key === `redisson_lock_token:{${name}}`) return ttlMs < 0
    const tombstone = kind === 'mutex' ? 'holdfast_mutex_tombstone' : 'redisson_unlock_latch'
    return key.startsWith(`${tombstone}:{${name}}:`) && ttlMs >= 0
  })
}
