import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseArguments } from '../safety/arguments.js'
import { writesOf } from '../safety/canary.js'
import { excerpt, judge, judgeSoFar } from '../safety/checker.js'
import type { Entry } from '../safety/history.js'
import { lengthInside, lengthOutside, percentile } from '../safety/intervals.js'
import { Journal, readJournals } from '../safety/journal.js'
import { latenesses } from '../safety/lateness.js'
import { measures, signals } from '../safety/measures.js'
import { BrokenCopy, MUTANTS } from '../safety/mutants.js'
import { overlaps } from '../safety/ownership.js'
import { Random } from '../safety/random.js'
import { A, B, Chronicle, LOCK, TTL } from './safety-chronicle.js'

const chronicle = (): Chronicle => new Chronicle()

describe('beliefs', () => {
  test('one after the other are as they should be', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .seen(20, A)
      .release(30, '1.1#1')
      .seen(35, null)
      .grant(40, '2.1#1', B)
      .seen(50, B)
      .release(60, '2.1#1')
    expect(history.foundAtEnd).toEqual([])
  })

  test('of two owners that meet are found, with the time that they have in common', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .grant(40, '2.1#1', B)
      .release(52.5, '1.1#1')
      .release(60, '2.1#1')
    expect(history.found).toEqual(['overlap'])
    expect(overlaps(history.story)).toMatchObject([{ from: 40, ms: 12.5, excusedMs: 0 }])
  })

  test('end at the local deadline, even if the stopped holder hears of it much later', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .grant(1_010, '2.1#1', B)
      .process(1_500, '1.1', { is: 'stall', from: 100 })
      .call(1_500, '1.1#1', { is: 'lost', reason: 'expired' })
      .release(1_510, '1.1#1', 'expired')
      .release(1_600, '2.1#1')
    expect(history.foundAtEnd).toEqual([])
  })

  test('go on with each renewal that was told', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .call(400, '1.1#1', { is: 'until', until: 1_388 })
      .grant(1_010, '2.1#1', B)
      .release(1_020, '2.1#1')
    expect(history.found).toEqual(['overlap'])
  })

  test('end with the loss signal', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .call(30, '1.1#1', { is: 'lost', reason: 'max-hold' })
      .grant(40, '2.1#1', B)
      .release(50, '2.1#1')
      .release(50, '1.1#1')
    expect(history.found).toEqual([])
  })

  test('do not need a release: a holder that was killed believes until its deadline', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .world(20, { is: 'gone', who: '1.1', killed: true, how: 'signal SIGKILL' })
      .grant(500, '2.1#1', B)
      .release(510, '2.1#1')
    expect(history.found).toEqual(['overlap'])
  })

  test('of one owner have one deadline', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .call(500, '1.1#2', { is: 'invoke', lock: LOCK, waitMs: null, parent: '1.1#1' })
      .call(501, '1.1#2', { is: 'granted', owner: A, until: 1_489, ttlMs: TTL })
      .release(510, '1.1#2', 'still-held')
      .call(1_490, '1.1#1', { is: 'lost', reason: 'expired' })
    expect(latenesses(history.story)).toMatchObject([{ ms: -11 }])
    expect(history.grant(1_100, '2.1#1', B).release(1_110, '2.1#1').found).toEqual(['overlap'])
  })

  test('of one owner, nested, do not compete', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .call(20, '1.1#2', { is: 'invoke', lock: LOCK, waitMs: null, parent: '1.1#1' })
      .call(21, '1.1#2', { is: 'granted', owner: A, until: 998, ttlMs: TTL })
      .release(30, '1.1#2', 'still-held')
      .release(40, '1.1#1')
    expect(history.found).toEqual([])
  })

  test('after theft may meet for one TTL, and no longer', () => {
    const robbed = chronicle()
      .grant(10, '1.1#1', A)
      .world(100, { is: 'forced', from: 99, lock: LOCK, fields: [A] })
      .grant(110, '2.1#1', B)
    const told = chronicle()
    told.entries.push(...robbed.entries)
    told.call(400, '1.1#1', { is: 'lost', reason: 'stolen' }).release(410, '1.1#1', 'stolen')
    expect(told.release(500, '2.1#1').found).toEqual([])
    expect(overlaps(told.story)).toMatchObject([{ ms: 0, excusedMs: 290 }])

    robbed
      .call(900, '1.1#1', { is: 'until', until: 1_888 })
      .call(1_000, '2.1#1', { is: 'until', until: 1_900 })
    expect(robbed.found).toEqual(['overlap'])
    expect(overlaps(robbed.story)).toMatchObject([{ ms: 788, excusedMs: 990 }])
  })

  test('without the server are found, though nobody else was granted', () => {
    const holder = () => chronicle().grant(10, '1.1#1', A)
    expect(holder().seen(500, null).release(600, '1.1#1').found).toEqual(['server'])
    expect(holder().seen(500, 'client-c:7').release(600, '1.1#1').found).toEqual(['server'])
  })

  test('are not judged by looks that may have been before or after', () => {
    const history = chronicle()
      .seen(9.8, null)
      .grant(10, '1.1#1', A)
      .world(600.5, { is: 'seen', from: 599.9, lock: LOCK, holders: [] })
      .release(600, '1.1#1')
    expect(history.found).toEqual([])
  })
})

describe('losses', () => {
  test('by theft need a thief', () => {
    const lost = () => chronicle().grant(10, '1.1#1', A).call(50, '1.1#1', { is: 'lost', reason: 'stolen' })
    expect(lost().release(60, '1.1#1', 'stolen').found).toEqual(['theft'])
    const robbed = lost().world(40, { is: 'forced', from: 39, lock: LOCK, fields: [A] })
    expect(robbed.release(60, '1.1#1', 'stolen').found).toEqual([])
  })

  test('are final', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .call(50, '1.1#1', { is: 'lost', reason: 'max-hold' })
      .call(60, '1.1#1', { is: 'until', until: 1_048 })
      .release(70, '1.1#1')
    expect(history.found).toEqual(['revival'])
  })

  test('are told before the server can free the lock, unless the process could not run', () => {
    const lost = (at: number) =>
      chronicle()
        .grant(10, '1.1#1', A, 1_000)
        .call(at, '1.1#1', { is: 'lost', reason: 'expired' })
        .release(at + 1, '1.1#1', 'expired')
    expect(lost(1_005).foundAtEnd).toEqual([])
    expect(lost(1_040).foundAtEnd).toEqual(['lateness'])
    expect(latenesses(lost(1_040).story)).toMatchObject([{ ms: 28, runningMs: 28 }])
    const stalled = lost(1_040).process(1_038, '1.1', { is: 'stall', from: 900 })
    expect(stalled.foundAtEnd).toEqual([])
    expect(signals(stalled.story)).toMatchObject({ count: 1, max: 28, runningMax: -10 })
  })
})

describe('the resource', () => {
  const inside = (found: string | null) =>
    chronicle()
      .grant(10, '1.1#1', A)
      .call(12, '1.1#1', { is: 'entered', from: 11, found: null })
      .call(900, '2.1#1', { is: 'invoke', lock: LOCK, waitMs: null })
      .call(950, '2.1#1', { is: 'granted', owner: B, until: 1_900, ttlMs: TTL })
      .call(953, '2.1#1', { is: 'entered', from: 951, found })

  test('must not be entered while a believer is inside', () => {
    expect(inside(A).found).toEqual(['overlap', 'canary'])
  })

  test('may be entered when a dead or lost holder has left its canary', () => {
    const history = inside(A)
    const late = new Chronicle()
    late.entries.push(...history.entries.map((entry) => ({ ...entry, t: shifted(entry) })))
    expect(late.found).toEqual([])
  })

  /** The second caller comes after the first one's deadline. */
  function shifted({ t, process }: Entry): number {
    return process === '2.1' ? t + 200 : t
  }

  test('must still show the holder when it leaves', () => {
    const leaving = (until: number) =>
      chronicle()
        .grant(10, '1.1#1', A, until)
        .call(52, '1.1#1', { is: 'left', from: 51, intact: false })
        .release(60, '1.1#1')
    expect(leaving(900).found).toEqual(['canary'])
    expect(leaving(50).found).toEqual([])
  })

  test('may be entered late by somebody who was stopped since the grant', () => {
    const history = chronicle()
      .grant(10, '2.1#1', B)
      .grant(1_010, '1.1#1', A)
      .call(1_020, '1.1#1', { is: 'entered', from: 1_019, found: null })
      .call(1_030, '2.1#1', { is: 'entered', from: 1_029, found: A })
      .release(1_035, '2.1#1', 'expired')
      .call(1_040, '1.1#1', { is: 'left', from: 1_039, intact: false })
      .release(1_041, '1.1#1')
    expect(history.found).toEqual([])
  })

  test('may be entered by somebody from whom the lock was taken by force, and who does not know it yet', () => {
    const history = chronicle()
      .grant(10, '2.1#1', B)
      .world(20, { is: 'forced', from: 19, lock: LOCK, fields: [B] })
      .grant(30, '1.1#1', A)
      .call(32, '1.1#1', { is: 'entered', from: 31, found: null })
      .call(34, '2.1#1', { is: 'entered', from: 33, found: A })
      .release(36, '2.1#1', 'stolen')
      .call(40, '1.1#1', { is: 'left', from: 39, intact: false })
      .release(41, '1.1#1')
    expect(history.found).toEqual([])
  })

  test('must not lose an update of somebody who wrote in time', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .wrote(20, '1.1#1', 'first')
      .release(30, '1.1#1')
      .grant(40, '2.1#1', B)
      .wrote(50, '2.1#1', 'first')
      .release(60, '2.1#1')
    expect(history.found).toEqual(['update'])
  })

  test('may lose one to a late write, which is counted', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .wrote(20, '1.1#1', 'first', 1_500)
      .release(1_600, '1.1#1', 'expired')
      .grant(1_040, '2.1#1', B)
      .wrote(1_050, '2.1#1', 'first')
      .release(1_060, '2.1#1')
    expect(history.found).toEqual([])
    expect(writesOf(history.story, history.story.holds)).toEqual({
      inTime: 1,
      late: 1,
      coveredByLate: 1,
      refused: 0,
    })
  })

  test('takes a write without an answer for a late one', () => {
    const history = chronicle()
      .grant(10, '1.1#1', A)
      .call(20, '1.1#1', { is: 'read', saw: 'first' })
      .call(21, '1.1#1', { is: 'write' })
      .grant(1_040, '2.1#1', B)
      .wrote(1_050, '2.1#1', 'first')
      .release(1_060, '2.1#1')
    expect(history.found).toEqual([])
  })
})

describe('liveness', () => {
  test('wants a grant after each fault, within a TTL and some slack', () => {
    const again = (t: number) =>
      chronicle()
        .fault(0, 100)
        .grant(t, '1.1#1', A)
        .release(t + 10, '1.1#1')
    expect(again(9_000).foundAtEnd).toEqual([])
    expect(again(11_000).foundAtEnd).toEqual(['regrant'])
  })

  test('does not count what is held, and what is broken by something else', () => {
    const held = chronicle()
      .grant(10, '1.1#1', A, 9_000)
      .fault(20, 100)
      .grant(12_000, '2.1#1', B)
      .release(12_010, '2.1#1')
    expect(held.foundAtEnd).toEqual([])
    const broken = chronicle().fault(0, 100).fault(200, 9_000).grant(12_000, '2.1#1', B)
    expect(broken.release(12_010, '2.1#1').foundAtEnd).toEqual([])
  })

  const asked = (waitMs: number | null, abortMs?: number) =>
    chronicle().call(0, '1.1#1', { is: 'invoke', lock: LOCK, waitMs, abortMs })
  const refused = { is: 'refused', why: 'busy' } as const

  test('wants every call answered in its own time', () => {
    expect(asked(100).call(5_500, '1.1#1', refused).foundAtEnd).toEqual([])
    expect(asked(100).call(6_000, '1.1#1', refused).foundAtEnd).toEqual(['waiting'])
    expect(asked(null, 100).call(6_000, '1.1#1', refused).foundAtEnd).toEqual(['waiting'])
    expect(asked(null).call(39_000, '1.1#1', refused).foundAtEnd).toEqual([])
    expect(asked(null).call(41_000, '1.1#1', refused).foundAtEnd).toEqual(['waiting'])
  })

  test('does not count the time in which the process could not run', () => {
    const stalled = asked(100).process(5_000, '1.1', { is: 'stall', from: 100 })
    expect(stalled.call(6_000, '1.1#1', refused).foundAtEnd).toEqual([])
  })

  test('counts faults for waits without end only', () => {
    const unlimited = asked(null).fault(1_000, 9_000).grant(44_000, '2.1#1', B).release(44_010, '2.1#1')
    expect(unlimited.call(45_000, '1.1#1', refused).foundAtEnd).not.toContain('waiting')
    const limited = asked(100).fault(0, 9_000).call(8_000, '1.1#1', refused)
    expect(limited.foundAtEnd).toContain('waiting')
  })

  test('finds a call that has no answer when its process has ended by itself, not when it was killed', () => {
    const gone = (killed: boolean) =>
      asked(null)
        .process(10, '1.1', { is: 'ended', left: 0 })
        .world(11, { is: 'gone', who: '1.1', killed, how: 'exit 0' })
    expect(gone(false).foundAtEnd).toEqual(['waiting'])
    expect(gone(true).foundAtEnd).toEqual([])
  })

  test('wants every lock once more at the end', () => {
    const end = () =>
      chronicle()
        .world(0, { is: 'drain', who: ['1.1'] })
        .process(50, '1.1', { is: 'ended', left: 0 })
        .world(60, { is: 'gone', who: '1.1', killed: false, how: 'exit 0' })
    const last = (history: Chronicle) =>
      history
        .call(9, '1.1#1', { is: 'invoke', lock: LOCK, waitMs: 15_000, final: true })
        .call(10, '1.1#1', { is: 'granted', owner: A, until: 998, ttlMs: TTL })
        .release(20, '1.1#1')
    expect(end().foundAtEnd).toEqual(['final'])
    expect(last(end()).foundAtEnd).toEqual([])
  })
})

describe('what is left behind', () => {
  const GHOST = 'client-a:9'

  /** A call of A's process that gave up at 100, and whose owner the server still shows. */
  const gaveUp = (shownUntil: number) =>
    chronicle()
      .grant(10, '1.1#1', A)
      .release(20, '1.1#1')
      .call(50, '1.1#2', { is: 'invoke', lock: LOCK, waitMs: 0 })
      .seen(60, GHOST)
      .call(100, '1.1#2', { is: 'refused', why: 'HOLDFAST_UNAVAILABLE' })
      .seen(shownUntil, GHOST)

  test('by a call that gave up must be gone soon', () => {
    expect(gaveUp(2_500).found).toEqual([])
    expect(gaveUp(2_700).found).toEqual(['ghost'])
  })

  test('may stay while the link is broken, or nobody is there any more', () => {
    expect(gaveUp(2_700).fault(90, 500, '1.1').found).toEqual([])
    expect(gaveUp(2_700).fault(90, 500, '2.1').found).toEqual(['ghost'])
    const killed = { is: 'gone', who: '1.1', killed: true, how: 'signal SIGKILL' } as const
    expect(gaveUp(2_700).world(110, killed).found).toEqual([])
  })

  test('by a release is nothing at all, unless it may keep the lock', () => {
    const back = (keeps?: true) =>
      chronicle()
        .call(9, '1.1#1', { is: 'invoke', lock: LOCK, waitMs: 0, keeps })
        .call(10, '1.1#1', { is: 'granted', owner: A, until: 990, ttlMs: TTL })
        .release(20, '1.1#1')
        .seen(30, A)
    expect(back().found).toEqual(['ghost'])
    expect(back(true).found).toEqual([])
  })

  test('by a release of unknown outcome must be gone soon', () => {
    const history = (shownUntil: number) =>
      chronicle().grant(10, '1.1#1', A).release(20, '1.1#1', 'unknown').seen(shownUntil, A)
    expect(history(2_000).found).toEqual([])
    expect(history(3_000).found).toEqual(['ghost'])
  })

  test('counts no more than the holder knows of', () => {
    const nested = () =>
      chronicle()
        .grant(10, '1.1#1', A)
        .call(20, '1.1#2', { is: 'invoke', lock: LOCK, waitMs: null, parent: '1.1#1' })
        .call(25, '1.1#2', { is: 'granted', owner: A, until: 998, ttlMs: TTL })
        .release(40, '1.1#2', 'still-held')
        .release(60, '1.1#1')
    expect(nested().seen(22, A, 2).found).toEqual([])
    expect(nested().seen(30, A, 3).found).toEqual(['count'])
    expect(nested().seen(50, A, 2).found).toEqual(['count'])
    expect(nested().fault(38, 45).seen(50, A, 2).found).toEqual([])
  })

  test('by a worker is nothing, and it ends by itself', () => {
    const ends = (left: number, how = 'exit 0', killed = false) =>
      chronicle().process(10, '1.1', { is: 'ended', left }).world(20, { is: 'gone', who: '1.1', killed, how })
    expect(ends(0).foundAtEnd).toEqual([])
    expect(ends(1).foundAtEnd).toEqual(['exit'])
    expect(ends(0, 'exit 1: TypeError').foundAtEnd).toEqual(['exit'])
    const stays = chronicle()
      .world(0, { is: 'drain', who: ['1.1'] })
      .world(20, { is: 'gone', who: '1.1', killed: true, how: 'signal SIGKILL' })
    expect(stays.foundAtEnd).toContain('exit')
  })

  test('on the server is nothing but tombstones that go away', () => {
    const tombstone = `redisson_unlock_latch:{${LOCK}}:${A}`
    const remains = (key: string, ttlMs: number, channels: string[] = []) =>
      chronicle().world(10, { is: 'remains', keys: [{ key, ttlMs }], channels }).foundAtEnd
    expect(remains(tombstone, 50_000)).toEqual([])
    const ofMutex = { key: `holdfast_mutex_tombstone:{${LOCK}}:${A}`, ttlMs: 50_000 }
    const mutex = new Chronicle([{ kind: 'mutex', name: LOCK }])
    expect(mutex.world(10, { is: 'remains', keys: [ofMutex], channels: [] }).foundAtEnd).toEqual([])
    expect(remains(ofMutex.key, 50_000)).toEqual(['remains'])
    expect(remains(tombstone, -1)).toEqual(['remains'])
    expect(remains(LOCK, 900)).toEqual(['remains'])
    expect(remains(tombstone, 50_000, ['redisson_lock__channel:{stock}'])).toEqual(['remains'])
  })
})

test('a run in which nothing happens is none', () => {
  expect(judge(chronicle().story).map(({ check }) => check)).toEqual(['coverage'])
})

test('the excerpt shows what the calls of the finding did and what moved the lock, but nothing twice', () => {
  const history = chronicle()
    .call(5, '2.1#1', { is: 'invoke', lock: LOCK, waitMs: 0 })
    .grant(10, '1.1#1', A)
    .call(15, '1.1#1', { is: 'until', until: 998 })
    .call(16, '1.1#1', { is: 'until', until: 1_050 })
    .seen(20, A)
    .seen(30, A)
    .seen(40, null)
    .release(900, '1.1#1')
  const [finding] = judgeSoFar(history.story)
  if (finding === undefined) throw new Error('nothing was found')
  const shown = excerpt(history.story, finding).map(({ is, t }) => `${is} ${String(t)}`)
  expect(shown).toEqual([
    ...['invoke 9', 'granted 10', 'until 16', 'seen 20.5'],
    ...['seen 40.5', 'release 900', 'released 901'],
  ])
})

test('the table sorts what happened by fault', () => {
  const history = chronicle()
    .fault(0, 10)
    .grant(40, '1.1#1', A)
    .grant(50, '2.1#1', B)
    .release(60, '1.1#1')
    .release(70, '2.1#1')
  const [row] = measures(history.story)
  expect(row).toMatchObject({
    fault: 'links cut',
    lock: 'all',
    times: 1,
    sections: 2,
    overlapMs: 10,
    idleMs: 30,
  })
})

test('a history on disk is complete but for the line that a killed process was writing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-journal-'))
  try {
    new Journal(folder, '2.1').write({ t: 2, is: 'began', client: 'ioredis' })
    new Journal(folder, '1.1').write({ t: 1, is: 'began', client: 'ioredis' })
    writeFileSync(join(folder, '1.1.jsonl'), '{"t":3,"is":"sta', { flag: 'a' })
    expect(readJournals(folder)).toEqual([
      { t: 1, process: '1.1', is: 'began', client: 'ioredis' },
      { t: 2, process: '2.1', is: 'began', client: 'ioredis' },
    ])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('spans of time', () => {
  const span = { from: 0, to: 100 }
  const others = [
    { from: 50, to: 70 },
    { from: -10, to: 10 },
    { from: 60, to: 80 },
    { from: 99, to: Infinity },
  ]
  expect(lengthOutside(span, others)).toBe(59)
  expect(lengthInside(span, others)).toBe(41)
  expect(lengthInside({ from: 5, to: 1 }, others)).toBe(0)
  expect(percentile([3, 1, 2], 0.5)).toBe(2)
})

test('the same seed gives the same chance', () => {
  const draw = (seed: string) => {
    const random = new Random(seed)
    return Array.from({ length: 200 }, () => random.between(1, 6))
  }
  expect(draw('a')).toEqual(draw('a'))
  expect(draw('a')).not.toEqual(draw('b'))
  expect(new Set(draw('a'))).toEqual(new Set([1, 2, 3, 4, 5, 6]))
})

test('arguments are checked', () => {
  expect(parseArguments(['--help'])).toBeUndefined()
  expect(parseArguments(['--short'])).toMatchObject({ short: true, seconds: undefined, workers: 5 })
  expect(parseArguments(['--object', 'mutex', '--workers', '3'])).toMatchObject({
    objects: ['mutex'],
    workers: 3,
  })
  for (const wrong of [
    ['--object', 'door'],
    ['--workers', '1'],
    ['--seconds', 'many'],
    ['--mutant', 'x'],
    ['-z'],
  ])
    expect(() => parseArguments(wrong)).toThrow(TypeError)
})

test.for(MUTANTS.map(({ name }) => name))('the mutant %s can still be made', (name) => {
  const mutant = MUTANTS.find((candidate) => candidate.name === name)
  if (mutant === undefined) throw new Error(`there is no mutant ${name}`)
  using copy = new BrokenCopy(mutant)
  expect(readdirSync(new URL('.', copy.source))).toContain('index.ts')
})
