/** The checks of the safety run that are about one kind of object, on histories that are good and bad on purpose. */
import { describe, expect, test } from 'vitest'
import { overlaps } from '../safety/ownership.js'
import type { Thing } from '../safety/things.js'
import { A, B, Chronicle, LOCK } from './safety-chronicle.js'

const C = 'client-c:1'
const about = (thing: Omit<Thing, 'name'>): Chronicle => new Chronicle([{ name: LOCK, ...thing }])

describe('readers and writers', () => {
  const locks = (): Chronicle => about({ kind: 'read-write' })
  const reads = { side: 'read' } as const
  const writes = { side: 'write' } as const

  test('readers may be inside together', () => {
    const history = locks()
      .take(10, '1.1#1', { owner: A, ...reads })
      .take(20, '2.1#1', { owner: B, ...reads })
      .shows(25, [
        { field: A, count: 1 },
        { field: B, count: 1 },
      ])
      .release(30, '1.1#1')
      .release(40, '2.1#1')
    expect(history.foundAtEnd).toEqual([])
  })

  test.each([
    ['a writer beside a reader', reads, writes],
    ['a reader beside a writer', writes, reads],
    ['two writers', writes, writes],
  ])('%s is found', (_what, first, second) => {
    const history = locks()
      .take(10, '1.1#1', { owner: A, ...first })
      .take(40, '2.1#1', { owner: B, ...second })
      .release(50, '1.1#1')
      .release(60, '2.1#1')
    expect(history.found).toEqual(['overlap'])
    expect(overlaps(history.story)).toMatchObject([{ from: 40, ms: 10 }])
  })

  test('a read inside the own write is none', () => {
    const history = locks()
      .take(10, '1.1#1', { owner: A, ...writes })
      .take(20, '1.1#2', { owner: A, ...reads, parent: '1.1#1' })
      .shows(25, [
        { field: `${A}:write`, count: 1 },
        { field: A, count: 1 },
      ])
      .release(30, '1.1#2', 'still-held')
      .release(40, '1.1#1')
    expect(history.found).toEqual([])
  })

  test('a writer whom the server shows as a reader only is found', () => {
    const history = locks()
      .take(10, '1.1#1', { owner: A, ...writes })
      .seen(20, A)
      .release(30, '1.1#1')
    expect(history.found).toContain('server')
  })

  test('a reader without its hold on the server is found', () => {
    const history = locks()
      .take(10, '1.1#1', { owner: A, ...reads })
      .seen(20, A, 0)
      .release(30, '1.1#1')
    expect(history.found).toContain('server')
  })
})

describe('permits', () => {
  const three = (): Chronicle => about({ kind: 'permits', permits: 3 })
  const taking = (id: string, permits = 1) => ({
    owner: id,
    permits,
    ids: Array.from({ length: permits }, (_, i) => `${id}${String(i)}`),
  })

  test('as many as there are may be out', () => {
    const history = three()
      .take(10, '1.1#1', taking('a'))
      .take(20, '2.1#1', taking('b', 2))
      .release(30, '1.1#1')
      .take(40, '3.1#1', taking('c'))
      .release(50, '2.1#1')
      .release(60, '3.1#1')
    expect(history.found).toEqual([])
  })

  test('one too many is found, from the last grant until one is back', () => {
    const history = three()
      .take(10, '1.1#1', taking('a'))
      .take(20, '2.1#1', taking('b', 2))
      .take(40, '3.1#1', taking('c'))
      .release(55, '1.1#1')
      .release(70, '2.1#1')
      .release(80, '3.1#1')
    expect(history.found).toEqual(['overlap'])
    expect(overlaps(history.story)).toMatchObject([{ from: 40, ms: 15 }])
  })

  test('all of a lease must be on the server', () => {
    const taken = (): Chronicle => three().take(10, '1.1#1', taking('b', 2))
    const shown = (fields: readonly string[]) => fields.map((field) => ({ field, count: 1 }))
    expect(
      taken()
        .shows(20, shown(['b0', 'b1', 'x']))
        .release(30, '1.1#1').found,
    ).not.toContain('server')
    expect(
      taken()
        .shows(20, shown(['b0']))
        .release(30, '1.1#1').found,
    ).toContain('server')
  })

  test('that are missing at the end are found', () => {
    const left = (value: string) =>
      three().world(10, { is: 'remains', keys: [{ key: LOCK, ttlMs: -1, value }], channels: [] }).foundAtEnd
    expect(left('3')).toEqual([])
    expect(left('2')).toEqual(['remains'])
    expect(left('4')).toEqual(['remains'])
  })
})

describe('several locks as one', () => {
  const members = [
    { kind: 'lock', name: LOCK },
    { kind: 'mutex', name: 'second' },
  ] as const
  const together = (): Chronicle => new Chronicle([{ kind: 'multi', name: 'both', members }])
  const both = (history: Chronicle, t: number, call: string, owner: string): Chronicle =>
    history
      .take(t, call, { owner, lock: 'both' })
      .take(t, `${call}/1`, { owner: `${owner}1`, whole: call })
      .take(t, `${call}/2`, { owner: `${owner}2`, whole: call, lock: 'second' })
  const released = (history: Chronicle, t: number, call: string): Chronicle =>
    ['', '/1', '/2'].reduce((told, part) => told.release(t, call + part), history)

  test('are judged member by member', () => {
    const history = both(together(), 10, '1.1#1', A)
    released(history, 40, '1.1#1')
    history.take(30, '2.1#1', { owner: B, lock: 'second' }).release(50, '2.1#1')
    expect(history.found).toEqual(['overlap'])
    expect(history.story.of('both')).toHaveLength(1)
  })

  test('may be held beside a lock that is no member', () => {
    const history = both(together(), 10, '1.1#1', A)
    released(history, 20, '1.1#1')
    history.take(30, '2.1#1', { owner: B, lock: 'second' }).release(50, '2.1#1')
    expect(history.found).toEqual([])
  })

  test('are stolen with one of them', () => {
    const history = both(together(), 10, '1.1#1', A)
    for (const part of ['', '/1', '/2']) history.call(50, `1.1#1${part}`, { is: 'lost', reason: 'stolen' })
    expect(history.found).toEqual(['theft'])
    history.world(40, { is: 'forced', from: 39, lock: 'second', fields: [`${A}2`] })
    expect(history.found).toEqual([])
  })
})

describe('fencing', () => {
  const fenced = (): Chronicle => about({ kind: 'fenced' })

  test('tokens grow from holder to holder, and may stay within one', () => {
    const history = fenced()
      .take(10, '1.1#1', { owner: A, token: 7 })
      .take(20, '1.1#2', { owner: A, token: 7, parent: '1.1#1' })
      .release(25, '1.1#2', 'still-held')
      .release(30, '1.1#1')
      .take(40, '2.1#1', { owner: B, token: 9 })
      .release(50, '2.1#1')
    expect(history.found).toEqual([])
  })

  test.each([
    ['lower', 6],
    ['the same', 7],
    ['missing', undefined],
  ])('a token that is %s is found', (_what, token) => {
    const history = fenced()
      .take(10, '1.1#1', { owner: A, token: 7 })
      .release(30, '1.1#1')
      .take(40, '2.1#1', { owner: B, token })
      .release(50, '2.1#1')
    expect(history.found).toEqual(['token'])
  })

  test('a late write that the fence refuses is as it should be, one that it lets through is found', () => {
    const late = (): Chronicle =>
      fenced()
        .take(10, '1.1#1', { owner: A, token: 7 })
        .call(20, '1.1#1', { is: 'read', saw: '0.1#0' })
        .take(1_100, '2.1#1', { owner: B, token: 8 })
        .call(1_110, '2.1#1', { is: 'read', saw: '0.1#0' })
        .call(1_120, '2.1#1', { is: 'write', fenced: true })
        .call(1_121, '2.1#1', { is: 'wrote' })
        .release(1_130, '2.1#1')
        .call(1_200, '1.1#1', { is: 'write', fenced: true })
    expect(late().call(1_201, '1.1#1', { is: 'stale' }).found).toEqual([])
    expect(late().call(1_201, '1.1#1', { is: 'wrote' }).found).toEqual(['fence'])
  })

  test('the last token stays on the server, without a TTL', () => {
    const left = (key: string, ttlMs: number) =>
      fenced().world(10, { is: 'remains', keys: [{ key, ttlMs }], channels: [] }).foundAtEnd
    expect(left(`redisson_lock_token:{${LOCK}}`, -1)).toEqual([])
    expect(left(`redisson_lock_token:{${LOCK}}`, 500)).toEqual(['remains'])
    expect(left('redisson_lock_token:{other}', -1)).toEqual(['remains'])
  })
})

describe('a fair lock', () => {
  const fair = (): Chronicle => about({ kind: 'fair' })
  const held = [{ field: A, count: 1 }]
  const granted = (owner: string) => ({ is: 'granted', owner, until: 900, ttlMs: 1_000 }) as const
  const waiting = (): Chronicle =>
    fair()
      .grant(10, '1.1#1', A)
      .call(15, '2.1#1', { is: 'invoke', lock: LOCK, waitMs: null })
      .call(16, '3.1#1', { is: 'invoke', lock: LOCK, waitMs: null })
      .shows(20, held, [B, C])

  test('serves its queue', () => {
    const history = waiting()
      .release(30, '1.1#1')
      .call(40, '2.1#1', granted(B))
      .release(50, '2.1#1')
      .call(60, '3.1#1', granted(C))
      .release(70, '3.1#1')
    expect(history.found).toEqual([])
  })

  test('that lets somebody overtake is found', () => {
    const history = waiting()
      .release(30, '1.1#1')
      .call(40, '3.1#1', granted(C))
      .release(50, '3.1#1')
      .call(60, '2.1#1', granted(B))
      .release(70, '2.1#1')
    expect(history.found).toEqual(['order'])
  })

  test('that lets a newcomer in past the queue is found', () => {
    const history = fair()
      .grant(10, '1.1#1', A)
      .call(15, '2.1#1', { is: 'invoke', lock: LOCK, waitMs: null })
      .shows(20, held, [B])
      .release(30, '1.1#1')
      .grant(40, '3.1#1', C)
      .release(50, '3.1#1')
      .call(60, '2.1#1', { is: 'granted', owner: B, until: 900, ttlMs: 1_000 })
      .release(70, '2.1#1')
    expect(history.found).toEqual(['order'])
  })

  test('may let others pass who lost their place while they were cut off', () => {
    const history = waiting()
      .fault(25, 45, '2.1')
      .release(30, '1.1#1')
      .call(40, '3.1#1', granted(C))
      .release(50, '3.1#1')
      .call(60, '2.1#1', granted(B))
      .release(70, '2.1#1')
    expect(history.found).not.toContain('order')
  })

  test('shows nobody in its queue who has given up', () => {
    const history = waiting()
      .call(5, '2.1#1', { is: 'invoke', lock: LOCK, waitMs: 100 })
      .call(105, '2.1#1', { is: 'refused', why: 'HOLDFAST_WAIT_TIMEOUT' })
      .call(106, '2.1#2', { is: 'invoke', lock: LOCK, waitMs: 0 })
      .call(107, '2.1#2', { is: 'granted', owner: 'client-b:2', until: 500, ttlMs: 1_000 })
      .shows(9_000, [], [B])
    expect(history.found).toContain('ghost')
  })
})
