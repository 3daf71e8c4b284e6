import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lockHistories, mixedHistories, mutexHistories, type Act } from './history.js'
import { Model, Sides } from './sides.js'

describe('the scripts do what the model says: replies, keys, TTLs and messages, after every step', () => {
  let sides: Sides
  beforeAll(async () => {
    sides = await Sides.open()
  })
  afterAll(() => sides[Symbol.asyncDispose]())

  // On failure fast-check prints the seed and the shortest history that it found.
  const agree = (histories: fc.Arbitrary<Act[]>, numRuns: number) =>
    fc.assert(
      fc.asyncProperty(histories, (history) => sides.run(history)),
      { numRuns },
    )

  test('histories of re-entrant locks', () => agree(lockHistories, 500))
  test('histories of mutexes', () => agree(mutexHistories, 400))
  test('histories of both on one name', () => agree(mixedHistories, 200))
})

test('about a third of the steps of time cross an expiry', async () => {
  let steps = 0
  let crossings = 0
  for (const history of fc.sample(fc.oneof(lockHistories, mutexHistories), { numRuns: 500, seed: 1 })) {
    const model = new Model()
    for (const act of history) {
      const before = model.size
      await model.act(act)
      if (act.op !== 'time' || before === 0) continue
      steps += 1
      if (model.size < before) crossings += 1
    }
  }
  expect(steps).toBeGreaterThan(500)
  expect(crossings / steps).toBeGreaterThan(0.25)
  expect(crossings / steps).toBeLessThan(0.45)
})
