/** The read/write lock, group G: readers' times and renewals, both ways between the sides, and who waits for whom. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Lease, ReadWriteLock } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { Child } from './child.js'
import { openScene, watch, type Scene } from './scene.js'
import { more, ttl, untilHeard } from './support/around.js'
import { answers, sends, teach, type Step } from './support/sent.js'

const NAME = 'catalogue'
const CHANNEL = 'redisson_rwlock:{catalogue}'
const WATCHDOG = { lockWatchdogTimeout: 600 }

const holdOf = (owner: string, i = 1) => `{catalogue}:${owner}:rwlock_timeout:${i}`

function lockOf(scene: Scene, options = {}) {
  return scene.holdfast(options).readWriteLock(NAME)
}

/** The shortest rest of all holds of these readers. */
async function shortest(scene: Scene, readers: readonly Lease[]): Promise<number> {
  return Math.min(...(await Promise.all(readers.map(({ owner }) => ttl(scene, holdOf(owner))))))
}

test('fault 73: twenty readers are renewed one by one, hold and all, while a writer waits', async () => {
  await using scene = await openScene()
  const lost = scene.hear('holdfast:lost')
  const renewed = scene.hear('holdfast:renew:ok')
  const { read } = lockOf(scene, WATCHDOG)
  const readers = await Promise.all(Array.from({ length: 20 }, () => read.acquire()))
  const writer = lockOf(scene).write.acquire()
  const waiting = watch(writer)
  for (let period = 0; period < 9; period++) {
    await more(renewed, NAME, 20)
    expect(await shortest(scene, readers)).toBeGreaterThan(200)
  }
  expect(lost).toEqual([])
  expect(waiting.settled).toBe(false)
  const outcomes = await Promise.all(readers.map((lease) => lease.release()))
  expect(new Set(outcomes)).toEqual(new Set(['released']))
  expect((await writer).held).toBe(true)
})

test('fault 74: a reader that was killed is kept alive by nobody', async () => {
  await using scene = await openScene()
  await using program = new Child('holds-read', [String(scene.port), '600'])
  await program.printed('reading')
  const [dead = ''] = program.lines
  const { read, write } = lockOf(scene, WATCHDOG)
  const alive = await read.acquire()
  program.kill('SIGKILL')
  await program.ended
  await scene.untilGone(holdOf(dead))
  const writer = lockOf(scene).write.acquire()
  // Three leases later the one that lives still holds, and the dead one is still gone.
  await sleep(1_800)
  expect(await scene.command('EXISTS', holdOf(dead))).toBe(0)
  expect([alive.held, await read.isHeldBy(dead)]).toEqual([true, false])
  expect(await write.tryAcquire()).toBeNull()
  await alive.release()
  expect(await scene.command('HGET', NAME, 'mode')).not.toBe('read')
  expect((await writer).held).toBe(true)
})

test('fault 75: nested reads leave no renewal behind', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast(WATCHDOG, scene.ioredis({ port: proxy.port }))
  const { read } = holdfast.readWriteLock(NAME)
  await read.using(() => read.using(() => read.using(() => sleep(300))))
  expect(proxy.requests.filter(sends('renew')).length).toBeGreaterThan(0)
  const before = proxy.requests.length
  await sleep(700)
  expect(proxy.requests.length).toBe(before)
  expect(holdfast.stats().held).toBe(0)
})

test('fault 76: after a downgrade the read is renewed, readers come in and writers do not', async () => {
  await using scene = await openScene()
  const lost = scene.hear('holdfast:lost')
  const { read, write } = lockOf(scene, WATCHDOG)
  const others = lockOf(scene)
  const reading = await write.using(async (writing) => {
    const inside = await read.acquire()
    expect(await writing.release()).toBe('released')
    return inside
  })
  await sleep(1_800)
  expect([reading.held, lost.length]).toEqual([true, 0])
  expect(await ttl(scene, holdOf(reading.owner))).toBeGreaterThan(200)
  const beside = await others.read.tryAcquire()
  expect(beside?.held).toBe(true)
  expect(await others.write.tryAcquire()).toBeNull()
  await beside?.release()
  expect(await reading.release()).toBe('released')
})

test('fault 76: a write around a read is renewed when the read is gone', async () => {
  await using scene = await openScene()
  const { read, write } = lockOf(scene, WATCHDOG)
  await write.using(async (writing) => {
    await read.using(() => 0)
    await sleep(1_800)
    expect(writing.held).toBe(true)
    expect(await ttl(scene, NAME)).toBeGreaterThan(200)
  })
})

test('fault 77: a short reader that dies does not cut the time of a long one', async () => {
  await using scene = await openScene()
  const long = await lockOf(scene).read.acquire({ leaseTime: 2_000 })
  const brief = await lockOf(scene).read.acquire({ leaseTime: 400 })
  const { write } = lockOf(scene)
  await scene.untilGone(holdOf(brief.owner))
  expect(await write.tryAcquire()).toBeNull()
  expect(long.held).toBe(true)
  const lease = await write.acquire()
  expect([lease.held, long.held]).toEqual([true, false])
})

test('fault 77: a reader that leaves does not cut the time of one that needs longer', async () => {
  await using scene = await openScene()
  const { read } = lockOf(scene)
  const long = await read.acquire({ leaseTime: 60_000 })
  for (const leaseTime of [1_000, 5_000, 59_000]) {
    await (await read.acquire({ leaseTime })).release()
    expect(await ttl(scene, NAME)).toBeGreaterThan(55_000)
  }
  expect(await long.release()).toBe('released')
})

test("fault 77: another program's renewal that cuts the time of all is made good before it matters", async () => {
  await using scene = await openScene()
  const renewed = scene.hear('holdfast:renew:ok')
  const { read } = lockOf(scene, { lockWatchdogTimeout: 900 })
  const lease = await read.acquire({ leaseTime: 60_000 })
  for (let cut = 0; cut < 3; cut++) {
    // What Redisson's watchdog does for a reader of its own.
    await scene.command('PEXPIRE', NAME, 900)
    expect(lease.remaining).toBeLessThan(900)
    await more(renewed, NAME, 1)
    expect(await ttl(scene, NAME)).toBeGreaterThan(50_000)
  }
  expect(lease.held).toBe(true)
  await scene.command('DEL', holdOf(lease.owner))
  await eventually(() => !lease.held, 'without its hold key the read is over')
  expect(await lease.release()).toBe('stolen')
})

test('fault 78: a write inside a read is refused at once, for one and for two that would wait for each other', async () => {
  await using scene = await openScene()
  const { read, write } = lockOf(scene)
  const refused = { code: 'HOLDFAST_UPGRADE' }
  await read.using(() => expect(write.acquire()).rejects.toMatchObject(refused))
  const one = await read.acquire()
  const other = await read.acquire()
  const upgrades = [one, other].map((lease) => lease.run(() => write.using(() => 0)))
  for (const upgrade of upgrades) await expect(upgrade).rejects.toMatchObject(refused)
  expect([one.held, other.held]).toEqual([true, true])
})

test('fault 79: two writers and the readers behind them all come in by messages', async () => {
  await using scene = await openScene()
  const wakeups = scene.hear('holdfast:wakeup')
  const first = await lockOf(scene).write.acquire()
  const writers = [lockOf(scene), lockOf(scene)].map(({ write }) => write.using(() => 'written'))
  const { read } = lockOf(scene)
  const readers = [0, 1, 2].map(() => read.using(() => 'read'))
  await eventually(async () => {
    const [, count] = (await scene.command('PUBSUB', 'NUMSUB', CHANNEL)) as [string, number]
    return count === 3
  }, 'all listen')
  await sleep(100)
  wakeups.length = 0
  await first.release()
  expect(await Promise.all([...writers, ...readers])).toEqual(['written', 'written', 'read', 'read', 'read'])
  // Nobody had to look by himself: that is done after five seconds.
  expect(wakeups.filter(({ cause }) => cause === 'poll')).toEqual([])
})

test('fault 79: a writer that waits for readers is woken by the last of them', async () => {
  await using scene = await openScene()
  const wakeups = scene.hear('holdfast:wakeup')
  const readers = [await lockOf(scene).read.acquire(), await lockOf(scene).read.acquire()]
  const writer = lockOf(scene).write.acquire()
  await untilHeard(scene, CHANNEL)
  await sleep(100)
  wakeups.length = 0
  for (const reader of readers) await reader.release()
  expect((await writer).held).toBe(true)
  expect(wakeups.map(({ cause }) => cause)).toEqual(['message'])
})

test('fault I18: readers of one process that never leave a gap do not keep its writer out', async () => {
  await using scene = await openScene()
  const { read, write } = lockOf(scene)
  let stop = false
  const stream = async (workMs: number): Promise<void> => {
    while (!stop) await read.using({ waitTime: 60_000 }, () => sleep(workMs))
  }
  // Of different lengths, so that they do not end together by chance.
  const readers = [31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79].map(stream)
  await sleep(200)
  for (let turn = 0; turn < 3; turn++) await write.using({ waitTime: 10_000 }, () => sleep(1))
  stop = true
  await Promise.all(readers)
})

/** What is done, whose answer is lost in it, and what that comes to. */
const LOSSES: readonly (readonly [
  string,
  Step,
  (lock: ReadWriteLock, lose: () => void) => Promise<unknown>,
])[] = [
  ['a read begins', 'acquire', ({ read }, lose) => (lose(), read.using(countIs(read, 1)))],
  ['a write begins', 'acquire', ({ write }, lose) => (lose(), write.using(countIs(write, 1)))],
  [
    'a read inside a read begins',
    'acquire',
    ({ read }, lose) => read.using(() => (lose(), read.using(countIs(read, 2)))),
  ],
  [
    'a write inside a write begins',
    'acquire',
    ({ write }, lose) => write.using(() => (lose(), write.using(countIs(write, 2)))),
  ],
  [
    'a read inside a write begins',
    'acquire',
    ({ read, write }, lose) => write.using(() => (lose(), read.using(countIs(read, 1)))),
  ],
  ['a read ends', 'release', async ({ read }, lose) => endsAs('released', await read.acquire(), lose)],
  ['a write ends', 'release', async ({ write }, lose) => endsAs('released', await write.acquire(), lose)],
  [
    'a write ends before the read inside',
    'release',
    async ({ read, write }, lose) => {
      const writing = await write.acquire()
      const reading = await writing.run(() => read.acquire())
      const downgraded = await endsAs('released', writing, lose)
      return downgraded && reading.held && (await reading.release()) === 'released'
    },
  ],
]

/** Whether the server counts as often as that. */
function countIs(side: ReadWriteLock['read'], count: number): (lease: Lease) => Promise<boolean> {
  return async ({ owner }) => (await side.holdCount(owner)) === count
}

async function endsAs(outcome: string, lease: Lease, lose: () => void): Promise<boolean> {
  lose()
  return (await lease.release()) === outcome
}

test.each(LOSSES)(
  'an answer is lost while %s: it counts once, and nothing is left',
  async (_what, step, act) => {
    await using scene = await openScene()
    const proxy = await scene.proxy()
    const lock = scene.holdfast({}, scene.ioredis({ port: proxy.port })).readWriteLock(NAME)
    await teach(scene)
    let lost = 0
    const lose = () => {
      lost += 1
      proxy.dropReply(answers(step))
    }
    expect(await act(lock, lose)).toBe(true)
    expect(lost).toBe(1)
    await eventually(async () => (await scene.command('EXISTS', NAME)) === 0, 'the lock is free')
    const other = await lockOf(scene).write.tryAcquire()
    expect(await other?.release()).toBe('released')
    const left = (await scene.command('KEYS', '*rwlock_timeout*')) as string[]
    expect(left).toEqual([])
  },
)
