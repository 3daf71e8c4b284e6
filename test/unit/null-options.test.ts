/** Null is a value, and no option has it: only undefined means omitted. Refused by name, before any I/O. */
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import {
  constantBackoff,
  exponentialBackoff,
  Holdfast,
  RedisGuard,
  SqlGuard,
  type ExclusiveLock,
} from '../../src/index.js'

const NULL = null as never
const work = (): number => 0

type Call = () => unknown
type Row = readonly [what: string, names: string, call: Call]

const fields = (names: readonly string[], call: (options: never) => unknown): Row[] =>
  names.map((name) => [name, name, () => call({ [name]: null } as never)])

const called = (what: string, rows: readonly Row[]): Row[] =>
  rows.map(([option, names, call]) => [`${what}: ${option}`, names, call])

const ACQUIRING = ['waitTime', 'leaseTime', 'signal', 'within', 'minHold', 'maxHold', 'pollInterval']
const WAITING = ['waitTime', 'signal', 'pollInterval']

function ofLock(what: string, lock: ExclusiveLock): Row[] {
  return called(what, [
    ['acquire(null)', 'acquire options', () => lock.acquire(NULL)],
    ['tryAcquire(null)', 'acquire options', () => lock.tryAcquire(NULL)],
    ['using(null)', 'callback', () => lock.using(NULL)],
    ['using(null, work)', 'acquire options', () => lock.using(NULL, work)],
    ['tryUsing(null, work)', 'acquire options', () => lock.tryUsing(NULL, work)],
    ['using({}, null)', 'callback', () => lock.using({}, NULL)],
    ...fields(ACQUIRING, (options) => lock.acquire(options)),
    ...fields(ACQUIRING, (options) => lock.tryUsing(options, work)),
  ])
}

function ofCounts(holdfast: Holdfast): Row[] {
  const semaphore = holdfast.semaphore('x', { permits: 3 })
  const permits = holdfast.permitSemaphore('x', { permits: 3 })
  const latch = holdfast.countDownLatch('x')
  return [
    ...called('semaphore', [
      ['acquire(null)', 'permits', () => semaphore.acquire(NULL)],
      ['acquire(1, null)', 'wait options', () => semaphore.acquire(1, NULL)],
      ['acquire({}, null)', 'permits and options', () => semaphore.acquire({} as never, NULL)],
      ['tryAcquire(1, null)', 'wait options', () => semaphore.tryAcquire(1, NULL)],
      ['using(null, work)', 'permits', () => semaphore.using(NULL, work)],
      ['using(1, null, work)', 'wait options', () => semaphore.using(1, NULL, work)],
      ['using(1, {}, null)', 'callback', () => semaphore.using(1, {}, NULL)],
      ['tryUsing(1, null, work)', 'wait options', () => semaphore.tryUsing(1, NULL, work)],
      ['release(null)', 'permits', () => semaphore.release(NULL)],
      ['releaseIfExists(null)', 'permits', () => semaphore.releaseIfExists(NULL)],
      ['add(null)', 'permits', () => semaphore.add(NULL)],
      ['trySet(null)', 'permits', () => semaphore.trySet(NULL)],
      ['trySet(1, null)', 'trySet options', () => semaphore.trySet(1, NULL)],
      ['ttl', 'ttl', () => semaphore.trySet(1, { ttl: NULL })],
      ...fields(WAITING, (options) => semaphore.acquire(1, options)),
    ]),
    ...called('permit semaphore', [
      ['acquire(null)', 'permits', () => permits.acquire(NULL)],
      ['acquire(1, null)', 'permit options', () => permits.acquire(1, NULL)],
      ['using(1, null, work)', 'permit options', () => permits.using(1, NULL, work)],
      ['release(null)', 'id', () => permits.release(NULL)],
      ['releaseAll(null)', 'ids', () => permits.releaseAll(NULL)],
      ['updateLeaseTime(id, null)', 'ms', () => permits.updateLeaseTime('0'.repeat(32), NULL)],
      ['set(null)', 'permits', () => permits.set(NULL)],
      ...fields(['waitTime', 'leaseTime', 'signal', 'maxHold', 'pollInterval'], (options) =>
        permits.acquire(1, options),
      ),
    ]),
    ...called('latch', [
      ['wait(null)', 'wait options', () => latch.wait(NULL)],
      ['tryWait(null)', 'wait options', () => latch.tryWait(NULL)],
      ['trySetCount(null)', 'count', () => latch.trySetCount(NULL)],
      ...fields(WAITING, (options) => latch.wait(options)),
      ...fields(WAITING, (options) => latch.tryWait(options)),
    ]),
  ]
}

const FACTORIES = [
  ['lock', 'lock options', ['reentrant']],
  ['fairLock', 'fair lock options', ['reentrant']],
  ['spinLock', 'spin lock options', ['backoff']],
  ['semaphore', 'semaphore options', ['permits']],
  ['permitSemaphore', 'permit semaphore options', ['permits']],
] as const

function ofMaking(holdfast: Holdfast, client: object): Row[] {
  const own = [
    'keyPrefix',
    'nameMapper',
    'lockWatchdogTimeout',
    'fairLockWaitTimeout',
    'commandTimeout',
    'unavailableAfter',
    'maxHold',
    'clockDrift',
    'subscriber',
    'replication',
    'shardedPubSub',
    'defaults',
    'clock',
  ]
  return [
    ['new Holdfast(null)', 'client', () => new Holdfast(NULL)],
    ['new Holdfast(client, null)', 'Holdfast options', () => new Holdfast(client, NULL)],
    ['connect(null)', 'address', () => Holdfast.connect(NULL)],
    ['connect(memory, null)', 'Holdfast options', () => Holdfast.connect('memory:', NULL)],
    ['close(null)', 'close options', () => holdfast.close(NULL)],
    ['drain', 'drain', () => holdfast.close({ drain: NULL })],
    ...called(
      'Holdfast',
      fields(own, (options) => new Holdfast(client, options)),
    ),
    ['defaults.waitTime', 'defaults.waitTime', () => new Holdfast(client, { defaults: { waitTime: NULL } })],
    [
      'defaults.leaseTime',
      'defaults.leaseTime',
      () => new Holdfast(client, { defaults: { leaseTime: NULL } }),
    ],
    ...FACTORIES.flatMap(([make, words, options]): Row[] => [
      [`${make}(null)`, 'name', () => holdfast[make](NULL)],
      [`${make}(name, null)`, words, () => holdfast[make]('x', NULL)],
      ...called(
        make,
        fields(options, (given) => holdfast[make]('x', given)),
      ),
    ]),
    ['multiLock(null)', 'locks', () => holdfast.multiLock(NULL)],
    ['multiLock([null])', 'locks', () => holdfast.multiLock([NULL])],
    ['redLock(name, null)', 'members', () => holdfast.redLock('x', NULL)],
    ['redLock(name, [null])', 'members', () => holdfast.redLock('x', [NULL])],
    ['redLock options', 'red lock options', () => holdfast.redLock('x', [holdfast], NULL)],
    ['memberTimeout', 'memberTimeout', () => holdfast.redLock('x', [holdfast], { memberTimeout: NULL })],
  ]
}

function ofWatching(holdfast: Holdfast): Row[] {
  const own = [
    'onChange',
    'onDelete',
    'onExpire',
    'onError',
    'interval',
    'notifications',
    'exactUpTo',
    'buffer',
    'signal',
    'keepAlive',
    'under',
  ]
  return called('watch', [
    ['keys', 'watched', () => holdfast.watch(NULL)],
    ['a key', 'key', () => holdfast.watch([NULL])],
    ['a pattern', 'pattern', () => holdfast.watch({ pattern: NULL })],
    ['options', 'watch options', () => holdfast.watch('x', NULL)],
    ...fields(own, (options) => holdfast.watch('x', options)),
    ['a callback of several', 'onChange', () => holdfast.watch('x', { onChange: [work, NULL] })],
  ])
}

function ofTheRest(client: object): Row[] {
  return [
    ['new RedisGuard(null)', 'client', () => new RedisGuard(NULL)],
    ['new RedisGuard(client, null)', 'RedisGuard options', () => new RedisGuard(client, NULL)],
    ...called(
      'RedisGuard',
      fields(['commandTimeout'], (options) => new RedisGuard(client, options)),
    ),
    ['new SqlGuard(null)', 'SqlGuard options', () => new SqlGuard(NULL)],
    ...called(
      'SqlGuard',
      fields(['table'], (options) => new SqlGuard(options)),
    ),
    ['exponentialBackoff(null)', 'back-off options', () => exponentialBackoff(NULL)],
    ...called('back-off', fields(['initial', 'factor', 'max'], exponentialBackoff)),
    ['constantBackoff(null)', 'ms', () => constantBackoff(NULL)],
  ]
}

test('null is refused wherever an option or an argument can be given', async () => {
  const client = new Redis({ lazyConnect: true })
  const holdfast = new Holdfast(client)
  onTestFinished(async () => {
    await holdfast.close({ drain: 0 })
    client.disconnect()
  })
  const rows = [
    ...ofLock('lock', holdfast.lock('x')),
    ...ofLock('mutex', holdfast.mutex('x')),
    ...ofLock('fenced lock', holdfast.fencedLock('x')),
    ...ofLock('reader', holdfast.readWriteLock('x').read),
    ...ofLock('multi-lock', holdfast.multiLock([holdfast.lock('x')])),
    ...ofLock('red lock', holdfast.redLock('x', [holdfast])),
    ...ofCounts(holdfast),
    ...ofMaking(holdfast, client),
    ...ofWatching(holdfast),
    ...ofTheRest(client),
  ]
  const wrong: string[] = []
  for (const [what, names, call] of rows) {
    const error = await settled(call)
    const fine = error instanceof TypeError && error.message.includes(names)
    if (!fine) wrong.push(`${what}: ${error instanceof Error ? error.message : 'taken'}`)
  }
  expect(wrong).toEqual([])
  expect(client.status).toBe('wait')
  expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
})

/** What a call throws or rejects with, or undefined. One that goes on has taken what it was given. */
async function settled(call: Call): Promise<unknown> {
  const over = (async () => {
    await call()
    return undefined
  })().catch((error: unknown) => error)
  const open = new Promise((resolve) => setTimeout(resolve, 50))
  return Promise.race([over, open])
}
