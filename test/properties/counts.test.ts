import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change } from './changed-port.js'
import { bothHistories, COUNTS, latchHistories, roundHistories, semaphoreHistories } from './count-history.js'
import type { Act } from './history.js'
import { Sides } from './sides.js'

let sides: Sides
beforeAll(async () => {
  sides = await Sides.open()
})
afterAll(() => sides[Symbol.asyncDispose]())

describe('the scripts do what the model says: replies, keys, TTLs and messages, after every step', () => {
  // On failure fast-check prints the seed and the shortest history that it found.
  const agree = (histories: fc.Arbitrary<Act[]>, numRuns: number) =>
    fc.assert(
      fc.asyncProperty(histories, (history) => sides.run(history, { view: COUNTS })),
      { numRuns },
    )

  test('histories of semaphores', () => agree(semaphoreHistories, 400))
  test('histories of latches', () => agree(latchHistories, 300))
  test('histories of rounds of a latch', () => agree(roundHistories, 300))
  test('histories of both on one name', () => agree(bothHistories, 200))
})

describe('a broken script is found', () => {
  const BROKEN: readonly (readonly [what: string, histories: fc.Arbitrary<Act[]>, change: Change])[] = [
    [
      'a copy of an acquire takes permits again',
      semaphoreHistories,
      { script: 'semaphore/acquire', from: 'if note then', to: 'if note == 0 then' },
    ],
    [
      'an ended request is granted',
      semaphoreHistories,
      { script: 'semaphore/acquire', from: 'return -2', to: 'return {1, 0}' },
    ],
    [
      'too few permits are enough',
      semaphoreHistories,
      { script: 'semaphore/acquire', from: 'count >= permits', to: 'count > 0' },
    ],
    [
      'a request is ended twice',
      semaphoreHistories,
      { script: 'semaphore/end', from: `if note == 'ended' then`, to: `if note == '' then` },
    ],
    [
      'giving back makes a number where there is none',
      semaphoreHistories,
      { script: 'semaphore/end', from: 'if not fits then', to: 'if false then' },
    ],
    [
      'undoing gives back what the caller thinks, not what was taken',
      semaphoreHistories,
      { script: 'semaphore/end', from: 'did and -did or tonumber(ARGV[1])', to: 'tonumber(ARGV[1])' },
    ],
    [
      'a negative number is told',
      semaphoreHistories,
      { script: 'semaphore/add', from: `tonumber(sum) < 0 and '0' or sum`, to: 'sum' },
    ],
    [
      'adding forgets the TTL',
      semaphoreHistories,
      {
        script: 'semaphore/add',
        from: `redis.call('incrby', semaphore, value and ARGV[1] or sum)`,
        to: `redis.call('set', semaphore, sum)`,
      },
    ],
    [
      'draining forgets the TTL',
      semaphoreHistories,
      {
        script: 'semaphore/drain',
        from: `redis.call('decrby', semaphore, permits)`,
        to: `redis.call('set', semaphore, '0')`,
      },
    ],
    [
      'draining fills up what is below zero',
      semaphoreHistories,
      {
        script: 'semaphore/drain',
        from: 'if count <= 0 then',
        to: `if count < 0 then redis.call('set', semaphore, '0') end\nif count <= 0 then`,
      },
    ],
    [
      'a note stays for ever',
      semaphoreHistories,
      {
        script: 'semaphore/acquire',
        from: `redis.call('set', request, '-' .. ARGV[1], 'px', ARGV[3])`,
        to: `redis.call('set', request, '-' .. ARGV[1])`,
      },
    ],
    [
      'setting overwrites',
      semaphoreHistories,
      { script: 'semaphore/set', from: 'if value then\n  return 0', to: 'if false then\n  return 0' },
    ],
    [
      'a copy of a count-down counts again',
      latchHistories,
      { script: 'latch/count-down', from: 'if note then', to: 'if note == 0 then' },
    ],
    [
      'zero stays as a key',
      latchHistories,
      { script: 'latch/count-down', from: `redis.call('del', latch)`, to: `redis.call('set', latch, '0')` },
    ],
    [
      'a count-down of nothing is told',
      latchHistories,
      { script: 'latch/count-down', from: 'if count == 1 then', to: 'if true then' },
    ],
    [
      'an undone count-down that opened shuts again',
      roundHistories,
      { script: 'latch/cancel', from: 'if not count or count < 1 or', to: 'count = count or 0\nif' },
    ],
    [
      'a count-down is undone in the next round',
      roundHistories,
      { script: 'latch/cancel', from: ' or now[1] and now[1] ~= id', to: '' },
    ],
    [
      'a count-down is undone in a round that a peer has begun',
      roundHistories,
      {
        script: 'latch/cancel',
        from: 'if count > tonumber(left)',
        to: 'if false and count > tonumber(left)',
      },
    ],
    [
      'of two count-downs of a round one is undone',
      roundHistories,
      { script: 'latch/cancel', from: `redis.call('hincrby', round, 'undone', 1)`, to: '' },
    ],
    [
      'a new round does not begin',
      roundHistories,
      { script: 'latch/set', from: 'turn(round, request, ARGV[2])', to: '' },
    ],
    [
      'a count of zero leaves a key',
      latchHistories,
      {
        script: 'latch/set',
        from: `if ARGV[1] == '0' then\n  redis.call('del', latch)`,
        to: 'if false then',
      },
    ],
    [
      'deleting tells nobody',
      latchHistories,
      { script: 'latch/delete', from: `redis.pcall(ARGV[3], ARGV[2], '0')`, to: '0' },
    ],
    [
      'deleting tells that the latch is shut',
      latchHistories,
      {
        script: 'latch/delete',
        from: `redis.pcall(ARGV[3], ARGV[2], '0')`,
        to: `redis.pcall(ARGV[3], ARGV[2], '1')`,
      },
    ],
  ]

  test.each(BROKEN)('%s', async (_, histories, change) => {
    const found = await fc.check(
      fc.asyncProperty(histories, (history) => sides.run(history, { view: COUNTS, change })),
      { numRuns: 600, endOnFailure: true },
    )
    expect(found.failed, 'no history told it from the right one').toBe(true)
  })
})
