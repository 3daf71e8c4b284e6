import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change } from './changed-port.js'
import { permitHistories } from './permits-history.js'
import { PermitModel, PermitSides } from './permits-sides.js'

/** What is broken, and how. */
const BREAKAGES: readonly (readonly [what: string, change: Change])[] = [
  ...at('acquire', [
    ['takes what is not there', `available < wanted and`, `available < 0 and`],
    ['takes some of several', `available < wanted and`, `available < 1 and`],
    ['ignores the tombstone', `redis.call('exists', KEYS[3]) == 1`, `false`],
    ['does not find its own permits', `if #held == wanted then`, `if false then`],
    ['a repeated one brings the expiry forward', `tonumber(score or 0)`, `0`],
    ['begins the number without those that are out', `- redis.call('zcard', leases)`, `+ 0`],
    ['takes back one permit too few', `math.max(wanted,`, `math.max(wanted - 1,`],
    ['does not tell what it takes back', `if told and told > 0 then`, `if false then`],
    ['tells what is below zero', `if told and told > 0 then`, `if told then`],
    ['judges by the clock that is ahead', `local pastMs, aheadMs`, `local aheadMs, pastMs`],
    ['tells the wrong wait', `math.max(score - atMs, 0)`, `score`],
  ]),
  ...at('release', [
    ['counts what it did not find', `giveBack(count, available, back)`, `giveBack(count, available, #ids)`],
    ['counts beyond what is exact', `math.min(permits, MOST - available)`, `permits`],
    ['leaves no tombstone', `if ARGV[3] ~= '0' then`, `if false then`],
    ['tells nothing', `local told = back == 0 or`, `local told = true or`],
    ['begins a number', `if back > 0 and available then`, `if back > 0 then available = available or 0`],
  ]),
  ...at('give', [
    ['gives some where all are asked for', `and ARGV[4] == '1'`, `and ARGV[4] == '2'`],
    ['gives what has expired', `if score and tonumber(score) > pastMs then`, `if score then`],
  ]),
  ...at('renew', [
    ['brings an expiry forward', `elseif tonumber(score) < untilMs then`, `else`],
    ['renews what has expired', `or tonumber(score) <= pastMs then`, `then`],
    ['renews a part', `if results[i] == 1 and #words > 0 then`, `if #words > 0 then`],
  ]),
  ...at('count', [['counts the expired as taken', `'(' .. string.format('%.0f', pastMs)`, `'-inf'`]]),
  ...at('set', [
    ['forgets those that are out', `- redis.call('zcard', KEYS[2])`, `+ 0`],
    ['is applied twice', `if redis.call('exists', request) == 1 then`, `if false then`],
    ['leaves no note where nothing changes', `redis.call('set', request, 'set', 'px', ARGV[4])`, ``],
    ['counts the difference', `redis.call('decrby', count, available)`, `wanted = wanted - available`],
  ]),
  ...at('try-set', [
    ['answers a copy differently', `if note then`, `if false then`],
    [
      'leaves no note of a refusal',
      `redis.call('set', request, available and 'exists' or 'set', 'px', ARGV[4])`,
      ``,
    ],
  ]),
  ...at('add', [
    ['is applied twice', `if note then`, `if false then`],
    ['counts beyond what is exact', `sum < -MOST or sum + out > MOST`, `false`],
    ['forgets that those that are out come back', `sum + out > MOST`, `sum > MOST`],
    ['leaves no note of a refusal', `redis.call('set', request, 'overflow', 'px', ARGV[5])`, ``],
  ]),
  ...at('update', [
    ['finds what has expired', `or tonumber(score) <= pastMs`, ``],
    ['is applied twice', `if redis.call('exists', request) == 1 then`, `if false then`],
  ]),
  ...at('count', [
    ['takes any digits for a number', `text and whole(text)`, `text and (tonumber(text) or nil)`],
  ]),
  ...at('rest', [['finds what has expired', `score <= pastMs`, `score == 0`]]),
]

describe('the scripts of permits', () => {
  let sides: PermitSides
  beforeAll(async () => {
    sides = await PermitSides.open()
  })
  afterAll(() => sides[Symbol.asyncDispose]())

  // On failure fast-check prints the seed and the shortest history that it found.
  test('do what the model says: replies, keys, times and messages, after every step', () =>
    fc.assert(
      fc.asyncProperty(permitHistories, (history) => sides.run(history)),
      { numRuns: 500 },
    ))

  test.for(BREAKAGES)('are found out when broken: %s', async ([, change]) => {
    const { failed, errorInstance } = await fc.check(
      fc.asyncProperty(permitHistories, (history) => sides.run(history, change)),
      { numRuns: 1_000, seed: 42, endOnFailure: true },
    )
    expect(failed).toBe(true)
    expect(String(errorInstance)).toContain('after step')
  })
})

test('many steps of time cross an expiry', () => {
  let steps = 0
  let crossings = 0
  for (const history of fc.sample(permitHistories, { numRuns: 500, seed: 1 })) {
    const model = new PermitModel()
    for (const act of history) {
      const before = model.expired
      model.act(act)
      if (act.op !== 'time' || (model.state.permits?.size ?? 0) === before) continue
      steps += 1
      if (model.expired > before) crossings += 1
    }
  }
  expect(steps).toBeGreaterThan(300)
  expect(crossings / steps).toBeGreaterThan(0.25)
})

test('all the permits there are: what is available and what is out make the total, whatever happens to each', () => {
  const kept = fc.property(permitHistories, (history) => {
    const model = new PermitModel()
    const total = () => {
      const { value, permits } = model.state
      return value?.kind === 'count' ? value.count + (permits?.size ?? 0) : undefined
    }
    for (const act of history) {
      const before = total()
      model.act(act)
      // What another program has set too high is not counted exactly.
      const exact = before !== undefined && before <= Number.MAX_SAFE_INTEGER
      if (exact && !/set|add|other/.test(act.op)) expect(total(), JSON.stringify(act)).toBe(before)
    }
  })
  fc.assert(kept, { numRuns: 1_000 })
})

function at(script: string, ways: readonly (readonly [string, string, string])[]): [string, Change][] {
  return ways.map(([what, from, to]) => [`${script} ${what}`, { script: `permits/${script}`, from, to }])
}
