import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Schedule, type Scheduled } from '../../src/lease/schedule.js'

class Item implements Scheduled {
  dueAtMs = NaN
  place = -1
}

/** Takes out the first until there is none. */
function drained(schedule: Schedule<Item>): number[] {
  const taken: number[] = []
  for (let first = schedule.first; first !== undefined; first = schedule.first) {
    taken.push(first.dueAtMs)
    schedule.remove(first)
  }
  return taken
}

type Step = readonly ['put' | 'remove', item: number, dueAtMs: number]

const steps = fc.array(
  fc.tuple(
    fc.constantFrom('put', 'put', 'put', 'remove'),
    fc.nat(47),
    fc.oneof(fc.nat(20), fc.constant(Infinity)),
  ),
  { maxLength: 200, size: 'max' },
) as fc.Arbitrary<Step[]>

test('the first is always one that is due first, whatever is added, moved and taken out', () => {
  fc.assert(
    fc.property(steps, (history) => {
      const schedule = new Schedule<Item>()
      const items = Array.from({ length: 48 }, () => new Item())
      const expected = new Map<Item, number>()
      for (const [step, index, dueAtMs] of history) {
        const item = items[index]
        if (item === undefined) continue
        if (step === 'put') {
          schedule.put(item, dueAtMs)
          expected.set(item, dueAtMs)
        } else {
          schedule.remove(item)
          expected.delete(item)
        }
        expect(schedule.size).toBe(expected.size)
        expect(new Set(schedule.entries())).toEqual(new Set(expected.keys()))
        expect(schedule.first?.dueAtMs).toBe(expected.size === 0 ? undefined : Math.min(...expected.values()))
        if (items.some((other) => other.place >= 0 !== expected.has(other))) throw new Error('a wrong place')
      }
      expect(new Set(schedule.entries())).toEqual(new Set(expected.keys()))
      expect(drained(schedule)).toEqual([...expected.values()].sort((a, b) => a - b))
    }),
  )
})

test('takes all out in order', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1_000), { maxLength: 100 }), (times) => {
      const schedule = new Schedule<Item>()
      for (const time of times) schedule.put(new Item(), time)
      expect(drained(schedule)).toEqual([...times].sort((a, b) => a - b))
    }),
  )
})

test('the list of entries is a copy', () => {
  const schedule = new Schedule<Item>()
  schedule.put(new Item(), 1)
  for (const item of schedule.entries()) schedule.remove(item)
  expect(schedule.size).toBe(0)
  schedule.remove(new Item())
})
