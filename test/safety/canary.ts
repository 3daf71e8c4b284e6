/**
 * What the critical sections did to a shared resource: a canary that each sets and takes out, and a value that each
 * reads and, after a pause, writes.
 *
 * Both have a limit that no lock removes: a holder that is stopped between its last look at the lease and its write
 * writes late. Such writes are counted, and are no fault of the lock as long as beliefs do not overlap; to refuse
 * them is what fencing tokens are for.
 */
import type { Finding } from './findings.js'
import { excusesOf } from './ownership.js'
import { belief, type Hold, type Story } from './story.js'

/** Somebody else sat there for the whole time of a look, and believed in the lock meanwhile. */
export function checkCanary(story: Story): Finding[] {
  return story.holds.flatMap((hold) => [...intruded(story, hold), ...disturbed(story, hold)])
}

function intruded(story: Story, hold: Hold): Finding[] {
  const { entered } = hold
  if (entered?.found == null || entered.found === hold.owner) return []
  // One that was stopped between its grant and its entering comes late, like a late write.
  if (belief(hold).to <= entered.to || robbed(story, hold)) return []
  const other = story.of(hold.lock).find((candidate) => {
    const { from, to } = belief(candidate)
    return candidate.owner === entered.found && from < entered.from && to > entered.to
  })
  // A canary of a holder that was killed, or that lost the lease, may still sit there.
  if (other === undefined || robbed(story, other)) return []
  const what = `call ${hold.call} entered while ${other.call} was inside and believed in it`
  return [{ check: 'canary', lock: hold.lock, at: entered.from, what, calls: [hold.call, other.call] }]
}

function disturbed(story: Story, hold: Hold): Finding[] {
  const { left } = hold
  if (left === undefined || left.intact || belief(hold).to <= left.to || robbed(story, hold)) return []
  if (story.of(hold.lock).some((other) => other !== hold && isStray(story, other, hold))) return []
  const what = `call ${hold.call} believed in it to the end, but its canary was gone`
  return [{ check: 'canary', lock: hold.lock, at: left.from, what, calls: [hold.call] }]
}

/** Came in while the holder was there, but when its own lease was over, or taken by force and not yet known to be. */
function isStray(story: Story, other: Hold, { entered: since, left: until }: Hold): boolean {
  const { entered } = other
  if (entered === undefined || since === undefined || until === undefined) return false
  if (entered.from >= until.to || entered.to <= since.from) return false
  return belief(other).to <= entered.to || robbed(story, other)
}

/** Writes, and what became of them. */
export interface Writes {
  /** Acknowledged while the writer believed in the lock. */
  readonly inTime: number
  /** Sent in time (`assertHeld` passed), but acknowledged later, or never. */
  readonly late: number
  /** Updates that a late write or its like has covered. */
  readonly coveredByLate: number
  /** By a fence. */
  readonly refused: number
}

export function writesOf(story: Story, holds: readonly Hold[]): Writes {
  const writers = holds.filter(({ writeAt, stale }) => writeAt !== undefined && !stale)
  const late = writers.filter((hold) => !isInTime(story, hold)).length
  const groups = byBase(writers).filter((group) => group.length > 1)
  const covered = groups.map((group) => group.length - 1)
  return {
    inTime: writers.length - late,
    late,
    coveredByLate: covered.reduce((a, b) => a + b, 0),
    refused: holds.filter(({ stale }) => stale).length,
  }
}

/** Two writes on top of the same one: one of the two updates is lost. */
export function checkUpdates(story: Story): Finding[] {
  return story.singles.flatMap((lock) => {
    const inTime = story.of(lock).filter((hold) => hold.writeAt !== undefined && isInTime(story, hold))
    return byBase(inTime)
      .filter((group) => group.length > 1)
      .map((group) => ({
        check: 'update',
        lock,
        calls: group.map(({ call }) => call),
        at: Math.max(...group.map(({ writeAt = 0 }) => writeAt)),
        what: `calls ${group.map(({ call }) => call).join(' and ')} wrote on top of the same update`,
      }))
  })
}

function isInTime(story: Story, hold: Hold): boolean {
  return hold.wroteAt !== undefined && hold.wroteAt <= belief(hold).to && !robbed(story, hold)
}

function robbed(story: Story, hold: Hold): boolean {
  return excusesOf(story, hold).length > 0
}

/** By what they were written on top of. */
export function byBase(writers: readonly Hold[]): readonly (readonly Hold[])[] {
  const groups = new Map<string, Hold[]>()
  for (const hold of writers) {
    const base = `${hold.lock} ${hold.saw ?? ''}`
    groups.set(base, [...(groups.get(base) ?? []), hold])
  }
  return [...groups.values()]
}
