import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Change } from './changed-port.js'
import { multiHistories } from './history.js'
import { Sides } from './sides.js'

let sides: Sides
beforeAll(async () => {
  sides = await Sides.open()
})
afterAll(() => sides[Symbol.asyncDispose]())

test('histories of several locks at once: the scripts do what the model says', () =>
  fc.assert(
    fc.asyncProperty(multiHistories, (history) => sides.run(history)),
    { numRuns: 400 },
  ))

const BROKEN: readonly (readonly [what: string, change: Change])[] = [
  [
    'takes the free ones of several',
    {
      script: 'multi/acquire',
      from: "return {0, i - 1, redis.call('pttl', lock), holder}",
      to: "held[i] = '0'",
    },
  ],
  ['sets the lease anew', { script: 'multi/acquire', from: '< leaseMs', to: '~= leaseMs' }],
  [
    'does not look for tombstones',
    { script: 'multi/acquire', from: "redis.call('exists', KEYS[size + i]) == 1", to: 'false' },
  ],
  ['leaves no tombstones', { script: 'multi/release', from: "ARGV[2] ~= '0'", to: 'false' }],
  [
    'tells of what was not there',
    { script: 'multi/release', from: 'results[i] == 1 and', to: 'results[i] and' },
  ],
  [
    'leaves what stands for a minimum hold',
    { script: 'multi/release', from: "owner .. ':0'", to: "owner .. ':1'" },
  ],
]

test.for(BROKEN)('the comparison finds a script that %s', async ([, change]) => {
  const broken = fc.asyncProperty(multiHistories, (history) => sides.run(history, { change }))
  const { failed } = await fc.check(broken, { numRuns: 400, endOnFailure: true })
  expect(failed).toBe(true)
})
