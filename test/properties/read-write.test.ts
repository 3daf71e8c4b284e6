import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { READ_WRITE as view, readWriteAndLockHistories, readWriteHistories } from './read-write-history.js'
import { Model, Sides } from './sides.js'

describe('the scripts of the read/write lock', () => {
  let sides: Sides
  beforeAll(async () => {
    sides = await Sides.open()
  })
  afterAll(() => sides[Symbol.asyncDispose]())

  // On failure fast-check prints the seed and the shortest history that it found.
  test('do what the model says: replies, keys, TTLs and messages, after every step', () =>
    fc.assert(
      fc.asyncProperty(readWriteHistories, (history) => sides.run(history, { view })),
      { numRuns: 600 },
    ))

  test('and those of the lock, where both are taken for one name', () =>
    fc.assert(
      fc.asyncProperty(readWriteAndLockHistories, (history) => sides.run(history, { view })),
      { numRuns: 400 },
    ))
})

test('about a third of the steps of time cross an expiry', async () => {
  let steps = 0
  let crossings = 0
  for (const history of fc.sample(readWriteHistories, { numRuns: 500, seed: 1 })) {
    const model = new Model(view)
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
  expect(crossings / steps).toBeLessThan(0.55)
})
