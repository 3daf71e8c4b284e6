import { describe, expect, test } from 'vitest'
import type { Look } from '../../src/engine/operations.js'
import { ABSENT, differences, hear, seen, SILENCE, type Heard } from '../../src/watch/compare.js'

const look = (mark: string, ttlMs = -1, exact = true): Look => ({ type: 'string', mark, exact, ttlMs })
const heard = (...events: string[]): Heard => events.reduce(hear, SILENCE)
/** What happened between a look at 1 000 and one at 2 000, in words. */
const between = (was: Look, is: Look, ...events: string[]): string[] =>
  differences(seen(was, 1_000, 1_010), { look: is, heard: heard(...events), byMs: 2_000 }).map(
    ({ event, created, look: { mark } }) => `${created ? 'create' : event} ${mark}`,
  )

describe('by the looks alone', () => {
  test.each([
    ['the same value', look('a'), look('a'), []],
    ['another time to live', look('a', 5_000), look('a', 90_000), []],
    ['another value', look('a'), look('b'), ['change b']],
    ['another type', look('a'), { ...look('a'), type: 'hash' }, ['change a']],
    ['a value that has grown too large', look('a'), look('a', -1, false), ['change a']],
    ['a new key', ABSENT, look('a'), ['create a']],
    ['no key', ABSENT, ABSENT, []],
    ['a key that is gone', look('a'), ABSENT, ['delete a']],
    ['one that had long to live', look('a', 1_003), ABSENT, ['delete a']],
    ['one whose time is over', look('a', 1_000), ABSENT, ['expire a']],
    ['one whose time was over before', look('a', 10), ABSENT, ['expire a']],
  ] as const)('%s', (_what, was, is, told) => {
    expect(between(was, is)).toEqual(told)
  })
})

describe('with what was heard', () => {
  test.each([
    ['an end before its time', look('a', 90_000), ABSENT, ['set', 'expired'], ['expire a']],
    ['a removal at the end of its time', look('a', 1_000), ABSENT, ['del'], ['delete a']],
    ['an eviction', look('a', 1_000), ABSENT, ['evicted'], ['delete a']],
    ['a new name', look('a'), ABSENT, ['rename_from'], ['delete a']],
    ['gone and back', look('a'), look('a'), ['del', 'set'], ['delete a', 'create a']],
    ['expired and back as another', look('a'), look('b'), ['expired', 'set'], ['expire a', 'create b']],
    ['come and gone in between', ABSENT, ABSENT, ['set', 'expire', 'expired'], ['expire ']],
    ['the late word of a removal that was seen', ABSENT, ABSENT, ['del'], []],
    ['a write that changed nothing', look('a'), look('a'), ['set'], []],
    ['a write to a sampled value', look('a', -1, false), look('a', -1, false), ['hset'], ['change a']],
    ['another time to live', look('a', -1, false), look('a', 9, false), ['expire', 'persist'], []],
    ['a reader of a stream', look('a', -1, false), look('a', -1, false), ['xgroup-createconsumer'], []],
  ] as const)('%s', (_what, was, is, events, told) => {
    expect(between(was, is, ...events)).toEqual(told)
  })
})
