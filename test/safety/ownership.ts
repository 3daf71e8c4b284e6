/** Who believed in what, against the others and against the server. */
import type { Finding } from './findings.js'
import { common, lengthOutside, type Span } from './intervals.js'
import { belief, type Attempt, type Hold, type Look, type Story, type Theft } from './story.js'
import { isShared } from './things.js'

/** Beliefs that met and must not. */
export interface Overlap {
  readonly holds: readonly Hold[]
  readonly from: number
  /** Without what is excused. */
  readonly ms: number
  /** What is excused, because force was used. */
  readonly excusedMs: number
}

/** Beliefs of different owners in one lock that have time in common, or in more permits than there are. */
export function overlaps(story: Story): Overlap[] {
  return story.singles.flatMap((lock) => {
    const permits = story.thing(lock)?.permits
    const found: Overlap[] = []
    let open: Hold[] = []
    for (const hold of [...story.of(lock)].sort((a, b) => a.grantedAt - b.grantedAt)) {
      open = open.filter((other) => belief(other).to > hold.grantedAt)
      found.push(
        ...(permits === undefined ? meetings(story, open, hold) : excess(story, [...open, hold], permits)),
      )
      open.push(hold)
    }
    return found
  })
}

function meetings(story: Story, open: readonly Hold[], hold: Hold): Overlap[] {
  return open
    .filter((other) => compete(story, other, hold))
    .map((other) => overlapOf(story, [other, hold], common(belief(other), belief(hold))))
    .filter(({ ms, excusedMs }) => ms + excusedMs > 0)
}

/** Readers do not, and neither does what one caller does inside of one lease. */
function compete(story: Story, first: Hold, second: Hold): boolean {
  if (first.owner === second.owner) return false
  if (first.attempt.side === 'read' && second.attempt.side === 'read') return false
  return story.root(first.attempt) !== story.root(second.attempt)
}

/** From the grant of the last one until so many of them have ended that the permits suffice. */
function excess(story: Story, holds: readonly Hold[], permits: number): Overlap[] {
  const wanted = (some: readonly Hold[]): number =>
    some.reduce((sum, { attempt }) => sum + attempt.permits, 0)
  const byEnd = [...holds].sort((a, b) => belief(a).to - belief(b).to)
  const place = byEnd.findIndex((_, i) => wanted(byEnd.slice(i)) <= permits)
  const last = byEnd[place - 1]
  const from = holds.at(-1)?.grantedAt ?? 0
  if (last === undefined || belief(last).to <= from) return []
  return [overlapOf(story, holds, { from, to: belief(last).to })]
}

function overlapOf(story: Story, holds: readonly Hold[], span: Span): Overlap {
  const ms = lengthOutside(
    span,
    holds.flatMap((hold) => excusesOf(story, hold)),
  )
  return { holds, from: span.from, ms, excusedMs: Math.max(0, span.to - span.from - ms) }
}

/**
 * When the key was removed by force, its owner finds out at the next renewal, or at its deadline. A renewal sent
 * before the theft may be confirmed after it, none that is sent later: so its belief ends within one TTL.
 */
export function excusesOf({ thefts }: Story, hold: Hold): Span[] {
  const { tenure } = hold
  return thefts
    .filter((theft) => isRobbed(hold, theft))
    .map(({ from, to }) => ({ from, to: to + Math.max(...tenure.ttls) }))
}

function isRobbed({ lock, fields }: Hold, theft: Theft): boolean {
  return theft.lock === lock && fields.some((field) => theft.fields.includes(field))
}

export function checkOverlap(story: Story): Finding[] {
  return overlaps(story)
    .filter(({ ms }) => ms > 0)
    .map(({ holds, from, ms }) => ({
      check: 'overlap',
      lock: holds[0]?.lock,
      at: from,
      ms,
      calls: holds.map(({ call }) => call),
      what: `calls ${holds.map(({ call }) => call).join(' and ')} believe in it together for ${ms.toFixed(3)} ms`,
    }))
}

/** A look that lies wholly in a belief must show its owner. */
export function checkServer(story: Story): Finding[] {
  return story.singles.flatMap((lock) => {
    const looks = story.looks.filter((look) => look.lock === lock)
    return story.of(lock).flatMap((hold) => contradiction(story, hold, looks))
  })
}

function contradiction(story: Story, hold: Hold, looks: readonly Look[]): Finding[] {
  const { from, to } = belief(hold)
  for (let place = firstAfter(looks, from); place < looks.length; place++) {
    const look = looks[place]
    if (look === undefined || look.to >= to) break
    if (isShown(story, hold, look) || isExcused(story, hold, look)) continue
    const shown = look.holders.map(({ field }) => field).join(' and ')
    const what = `call ${hold.call} believes in it, but the server has ${shown === '' ? 'nobody' : shown}`
    return [{ check: 'server', lock: hold.lock, at: look.from, what, calls: [hold.call] }]
  }
  return []
}

function isShown(story: Story, { lock, fields }: Hold, { holders }: Look): boolean {
  const there = fields.every((field) => holders.some((holder) => holder.field === field && holder.count > 0))
  // More than one is a state that no operation of a lock for one leaves behind.
  return there && (holders.length === fields.length || isShared(story.thing(lock)))
}

/** The place of the first look that began later. Looks are made one after the other. */
function firstAfter(looks: readonly Look[], at: number): number {
  let low = 0
  let high = looks.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((looks[middle]?.from ?? Infinity) > at) high = middle
    else low = middle + 1
  }
  return low
}

function isExcused(story: Story, hold: Hold, look: Span): boolean {
  return excusesOf(story, hold).some(({ from, to }) => look.to > from && look.from < to)
}

/** "Stolen" is only for those from whom it was stolen. */
export function checkTheft(story: Story): Finding[] {
  const robbed = story.holds.filter((hold) => story.thefts.some((theft) => isRobbed(hold, theft)))
  const calls = new Set(robbed.map(({ attempt }) => wholeOf(attempt)))
  return story.holds
    .filter(({ lost, released }) => lost?.reason === 'stolen' || released?.outcome === 'stolen')
    .filter(({ attempt }) => !calls.has(wholeOf(attempt)))
    .map(({ call, lock, lost, released, grantedAt }) => ({
      check: 'theft',
      lock,
      at: lost?.at ?? released?.at ?? grantedAt,
      calls: [call],
      what: `call ${call} was told that its lease is stolen, but nobody used force`,
    }))
}

/** A multi-lock is stolen with any of its members. */
function wholeOf({ whole, call }: Attempt): string {
  return whole ?? call
}

export function checkRevival(story: Story): Finding[] {
  return story.revived.map(({ hold, at }) => ({
    check: 'revival',
    lock: hold.lock,
    at,
    calls: [hold.call],
    what: `call ${hold.call} is held again after its loss was told`,
  }))
}
