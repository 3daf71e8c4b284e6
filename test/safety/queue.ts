/** The order of service of fair locks, against the queue as the server showed it. */
import type { Finding } from './findings.js'
import { isLong } from './intervals.js'
import type { Hold, Look, Story } from './story.js'

/** The last look that showed one waiter before another. */
interface Place {
  readonly first: string
  readonly second: string
  readonly look: Look
}

/**
 * Who was seen in front is granted first, if nothing was in its way: whoever does not answer for longer than its place
 * is kept stands in the queue again, at the end.
 */
export function checkOrder(story: Story): Finding[] {
  return story.terms.locks
    .filter(({ kind }) => kind === 'fair')
    .flatMap(({ name }) => {
      const holds = outermost(story.of(name))
      const byOwner = new Map(holds.map((hold) => [hold.owner, hold]))
      const looks = story.looks.filter(({ lock }) => lock === name)
      const inside = placesOf(looks).flatMap(({ first, second, look }) =>
        overtaking(story, { first: byOwner.get(first), second: byOwner.get(second), look }),
      )
      return [...inside, ...newcomers(story, holds, looks)]
    })
}

/** The first lease of each owner. */
function outermost(holds: readonly Hold[]): Hold[] {
  return holds.filter(({ attempt }) => attempt.parent === undefined)
}

function placesOf(looks: readonly Look[]): Place[] {
  const places = new Map<string, Place>()
  for (const look of looks) {
    look.queue.forEach((first, i) => {
      for (const second of look.queue.slice(i + 1)) {
        places.set(`${first} ${second}`, { first, second, look })
        places.delete(`${second} ${first}`)
      }
    })
  }
  return [...places.values()]
}

/** Who came when somebody stood there already, whatever the queue showed later. */
function newcomers(story: Story, holds: readonly Hold[], looks: readonly Look[]): Finding[] {
  const firstSeen = new Map<string, Look>()
  for (const look of looks)
    for (const owner of look.queue) if (!firstSeen.has(owner)) firstSeen.set(owner, look)
  return holds.flatMap((first) => {
    const look = firstSeen.get(first.owner)
    if (look === undefined) return []
    const second = holds.find(
      ({ attempt, grantedAt }) => attempt.invokedAt > look.to && grantedAt < first.grantedAt,
    )
    return overtaking(story, { first, second, look })
  })
}

interface Pair {
  readonly first: Hold | undefined
  readonly second: Hold | undefined
  readonly look: Look
}

function overtaking(story: Story, { first, second, look }: Pair): Finding[] {
  if (first === undefined || second === undefined || first.grantedAt <= second.grantedAt) return []
  const troubles = [...story.faultsOn(first.process), ...story.stalls(first.process).filter(isLong)]
  if (troubles.some(({ from, to }) => from <= first.grantedAt && to >= look.from)) return []
  const what = `call ${second.call} was granted before ${first.call}, which was in front of it in the queue`
  return [{ check: 'order', lock: first.lock, at: second.grantedAt, what, calls: [first.call, second.call] }]
}
