/** Who believed in what, against the others and against the server. */
import type { Finding } from './findings.js'
import { common, lengthOutside, type Span } from './intervals.js'
import { belief, type Hold, type Look, type Story } from './story.js'

/** Two beliefs that met. */
export interface Overlap {
  readonly first: Hold
  readonly second: Hold
  readonly from: number
  /** Without what is excused. */
  readonly ms: number
  /** What is excused, because force was used. */
  readonly excusedMs: number
}

/** Beliefs of different owners in one lock that have time in common. */
export function overlaps(story: Story): Overlap[] {
  return story.terms.locks.flatMap((lock) => {
    const found: Overlap[] = []
    let open: Hold[] = []
    for (const hold of [...story.of(lock)].sort((a, b) => a.grantedAt - b.grantedAt)) {
      open = open.filter((other) => belief(other).to > hold.grantedAt)
      for (const other of open) {
        const overlap = meeting(story, other, hold)
        if (overlap !== undefined) found.push(overlap)
      }
      open.push(hold)
    }
    return found
  })
}

function meeting(story: Story, first: Hold, second: Hold): Overlap | undefined {
  if (first.owner === second.owner) return undefined
  const span = common(belief(first), belief(second))
  if (span.to <= span.from) return undefined
  const excuses = [...excusesOf(story, first), ...excusesOf(story, second)]
  const ms = lengthOutside(span, excuses)
  return { first, second, from: span.from, ms, excusedMs: span.to - span.from - ms }
}

/**
 * When the key was removed by force, its owner finds out at the next renewal, or at its deadline. A renewal sent
 * before the theft may be confirmed after it, none that is sent later: so its belief ends within one TTL.
 */
export function excusesOf(story: Story, { lock, owner, tenure }: Hold): Span[] {
  const thefts = story.thefts.filter((theft) => theft.lock === lock && theft.owners.includes(owner))
  return thefts.map(({ from, to }) => ({ from, to: to + Math.max(...tenure.ttls) }))
}

export function checkOverlap(story: Story): Finding[] {
  return overlaps(story)
    .filter(({ ms }) => ms > 0)
    .map(({ first, second, from, ms }) => ({
      check: 'overlap',
      lock: first.lock,
      at: from,
      ms,
      calls: [first.call, second.call],
      what: `calls ${first.call} and ${second.call} both believe in it for ${ms.toFixed(3)} ms`,
    }))
}

/** A look that lies wholly in a belief must show its owner. */
export function checkServer(story: Story): Finding[] {
  return story.terms.locks.flatMap((lock) => {
    const looks = story.looks.filter((look) => look.lock === lock)
    return story.of(lock).flatMap((hold) => contradiction(story, hold, looks))
  })
}

function contradiction(story: Story, hold: Hold, looks: readonly Look[]): Finding[] {
  const { from, to } = belief(hold)
  for (let place = firstAfter(looks, from); place < looks.length; place++) {
    const look = looks[place]
    if (look === undefined || look.to >= to) break
    if (look.owner === hold.owner || isExcused(story, hold, look)) continue
    const what = `call ${hold.call} believes in it, but the server has ${look.owner ?? 'nobody'}`
    return [{ check: 'server', lock: hold.lock, at: look.from, what, calls: [hold.call] }]
  }
  return []
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
  const robbed = new Set(story.thefts.flatMap(({ owners }) => owners))
  return story.holds
    .filter(({ lost, released }) => lost?.reason === 'stolen' || released?.outcome === 'stolen')
    .filter(({ owner }) => !robbed.has(owner))
    .map(({ call, lock, lost, released, grantedAt }) => ({
      check: 'theft',
      lock,
      at: lost?.at ?? released?.at ?? grantedAt,
      calls: [call],
      what: `call ${call} was told that its lease is stolen, but nobody used force`,
    }))
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
