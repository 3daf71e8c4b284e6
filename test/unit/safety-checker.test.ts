/** The checker of the safety run, on histories made by hand: it must find what is wrong and nothing else. */
import { expect, it } from 'vitest'
import { judgeSoFar } from '../safety/checker.js'
import type { Check } from '../safety/findings.js'
import type { Entry } from '../safety/history.js'
import { Story } from '../safety/story.js'

const LOCK = 'a'
const TERMS = { locks: [LOCK], longestTtlMs: 1_000, commandTimeoutMs: 500 }

/** One lease of a worker, from its call to the end of its release. */
function lease(call: string, owner: string, times: readonly [granted: number, release: number]): Entry[] {
  const [granted, release] = times
  const process = call.slice(0, 3)
  const until = granted + 1_000
  return [
    { t: granted - 5, process, call, is: 'invoke', lock: LOCK, waitMs: 1_000 },
    { t: granted, process, call, is: 'granted', owner, until, ttlMs: 1_000 },
    { t: release, process, call, is: 'release' },
    { t: release + 2, process, call, is: 'released', outcome: 'released' },
  ]
}

function found(...parts: readonly Entry[][]): Check[] {
  const entries = parts.flat().sort((a, b) => a.t - b.t)
  return [...new Set(judgeSoFar(new Story(entries, TERMS)).map(({ check }) => check))].sort()
}

const without = (entries: readonly Entry[], ...kinds: readonly Entry['is'][]): Entry[] =>
  entries.filter(({ is }) => !kinds.includes(is))

it('finds nothing in leases that follow one another', () => {
  expect(found(lease('1.1#1', 'one:1', [100, 200]), lease('2.1#1', 'two:1', [201, 300]))).toEqual([])
})

it('finds two owners who believe in one lock at the same time', () => {
  expect(found(lease('1.1#1', 'one:1', [100, 200]), lease('2.1#1', 'two:1', [199, 300]))).toContain('overlap')
})

it('lets nested leases of one owner overlap', () => {
  expect(found(lease('1.1#1', 'one:1', [100, 300]), lease('1.1#2', 'one:1', [150, 200]))).not.toContain(
    'overlap',
  )
})

it('counts a belief up to the local deadline when the worker says nothing more', () => {
  const silent = without(lease('1.1#1', 'one:1', [100, 200]), 'release', 'released')
  expect(found(silent, lease('2.1#1', 'two:1', [1_101, 1_200]))).not.toContain('overlap')
  expect(found(silent, lease('2.1#1', 'two:1', [1_050, 1_200]))).toContain('overlap')
})

it('counts a belief up to the loss signal', () => {
  const lost: Entry[] = [
    ...without(lease('1.1#1', 'one:1', [100, 900]), 'release', 'released'),
    { t: 400, process: '1.1', call: '1.1#1', is: 'lost', reason: 'expired' },
  ]
  expect(found(lost, lease('2.1#1', 'two:1', [401, 500]))).not.toContain('overlap')
  expect(found(lost, lease('2.1#1', 'two:1', [399, 500]))).toContain('overlap')
})

it('finds another owner on the server than the one who believes', () => {
  const look: Entry = {
    t: 151,
    process: 'world',
    is: 'seen',
    from: 150,
    lock: LOCK,
    owner: 'two:1',
    count: 1,
  }
  expect(found(lease('1.1#1', 'one:1', [100, 200]), [look])).toContain('server')
  expect(found(lease('1.1#1', 'one:1', [100, 200]), [{ ...look, owner: 'one:1' }])).toEqual([])
})

it('finds a hold count above what the holder knows of', () => {
  const look: Entry = {
    t: 151,
    process: 'world',
    is: 'seen',
    from: 150,
    lock: LOCK,
    owner: 'one:1',
    count: 2,
  }
  expect(found(lease('1.1#1', 'one:1', [100, 200]), [look])).toContain('count')
})

it('finds somebody inside when a holder enters', () => {
  const entered: Entry = { t: 111, process: '1.1', call: '1.1#1', is: 'entered', from: 110, found: 'two:1' }
  expect(found(lease('2.1#1', 'two:1', [50, 150]), lease('1.1#1', 'one:1', [100, 200]), [entered])).toContain(
    'canary',
  )
})
