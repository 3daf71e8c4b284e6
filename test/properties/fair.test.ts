import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change } from './changed-port.js'
import { fairHistories, touchedHistories, type FairAct } from './fair-history.js'
import { FairModel, FairSides } from './fair-sides.js'

describe('the scripts of the fair lock', () => {
  let sides: FairSides
  beforeAll(async () => {
    sides = await FairSides.open()
  })
  afterAll(() => sides[Symbol.asyncDispose]())

  // On failure fast-check prints the seed and the shortest history that it found.
  const agree = (histories: fc.Arbitrary<FairAct[]>, numRuns: number) =>
    fc.assert(
      fc.asyncProperty(histories, (history) => sides.run(history)),
      { numRuns },
    )

  test('do what the model says: replies, keys, deadlines, TTLs and messages, after every step', () =>
    agree(fairHistories, 400))

  test('also after others have touched lock and queue', () => agree(touchedHistories, 400))

  const broken: readonly (readonly [what: string, change: Change])[] = [
    [
      'a late copy joins again',
      { script: 'fair/acquire', from: `redis.call('exists', KEYS[2]) == 1`, to: 'false' },
    ],
    ['a newcomer overtakes', { script: 'fair/acquire', from: `not head or head == owner`, to: 'true' }],
    ['a second one moves its deadline', { script: 'fair/acquire', from: `terms.head == owner and`, to: '' }],
    ['nobody moves up', { script: 'fair/abandon', from: `-waitMs, other`, to: '0, other' }],
    [
      'those before it move up, too',
      {
        script: 'fair/abandon',
        from: `local behind = false`,
        to: `local behind = true`,
      },
    ],
    [
      'the head is not told',
      {
        script: 'fair/release',
        from: `local mute = head and tell(head, ARGV[2], ARGV[3])`,
        to: 'local mute = false',
      },
    ],
    [
      'an expired lock wakes nobody',
      {
        script: 'fair/release',
        from: `if news == 0 and (found == 1 or taken) then`,
        to: `if news == 0 then if found == 0 and not taken then return 0 end`,
      },
    ],
    ['the dead are kept', { script: 'fair/acquire', from: `leftMs > 0 or`, to: 'true or' }],
    ['the living are dropped', { script: 'fair/acquire', from: `or head == caller then`, to: 'then' }],
    [
      'a new head is not told',
      {
        script: 'fair/acquire',
        from: `if changed and head and head ~= owner and cannotWait(ttlMs, headMs, lookMs) then`,
        to: 'if false then',
      },
    ],
  ]
  test.each(broken)('a broken one is found: %s', async (_, change) => {
    const found = fc.check(
      fc.asyncProperty(fairHistories, (history) => sides.run(history, change)),
      { numRuns: 800, endOnFailure: true, seed: 3 },
    )
    expect((await found).failed).toBe(true)
  })
})

/** What the model itself promises, whatever happens. */
describe('the model', () => {
  const FAIR = fc.sample(fairHistories, { numRuns: 400, seed: 7 })

  test('list and deadlines always agree, and nobody in the queue holds the lock', async () => {
    for (const history of FAIR) {
      const model = new FairModel()
      for (const act of history) {
        await model.act(act)
        const { owners, deadlines } = model.queue
        expect(new Set(owners)).toEqual(new Set(deadlines.keys()))
        expect(owners.length).toBe(deadlines.size)
      }
    }
  })

  test('only the head is granted the lock, and nobody who comes later stands before', async () => {
    let grants = 0
    for (const history of FAIR) {
      const model = new FairModel()
      for (const act of history) {
        const before = model.queue.owners
        const held = model.state.value !== undefined
        const reply = (await model.act(act)) as { readonly outcome?: string } | null
        const after = model.queue.owners
        if (act.op === 'fair.acquire' && !held && reply?.outcome === 'granted' && before.length > 0) {
          grants += 1
          // All that stood before it were dead.
          const rest = before.slice(before.indexOf(act.owner) + 1)
          expect(after).toEqual(before.includes(act.owner) ? rest : [])
        }
        const stayed = after.filter((owner) => before.includes(owner))
        expect(stayed).toEqual(before.filter((owner) => after.includes(owner)))
      }
    }
    expect(grants).toBeGreaterThan(100)
  })

  test('about a third of the steps of time cross an expiry or a deadline', async () => {
    let [steps, crossings] = [0, 0]
    for (const history of FAIR) {
      const model = new FairModel()
      for (const act of history) {
        const wallMs = model.clock.wall()
        const before = Object.keys(model.keys()).length
        await model.act(act)
        if (act.op !== 'time' || before === 0) continue
        steps += 1
        const due = [...model.queue.deadlines.values()].some((ms) => ms > wallMs && ms <= model.clock.wall())
        if (due || Object.keys(model.keys()).length < before) crossings += 1
      }
    }
    expect(steps).toBeGreaterThan(500)
    expect(crossings / steps).toBeGreaterThan(0.25)
    expect(crossings / steps).toBeLessThan(0.6)
  })
})
