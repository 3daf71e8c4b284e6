/** Several servers, group J: members that fail, hang, answer late, or are not what they seem. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { Holdfast, QuorumError } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import type { Scene } from './scene.js'
import { watch } from './scene.js'
import { OTHER } from './support/around.js'
import { answers, teach } from './support/sent.js'
import { openServers, redOn, type Servers } from './support/servers.js'

const NAME = 'orders:42'
/** Far longer than any test: whoever waits for a member that hangs does not come through. */
const ENDLESS = { memberTimeout: 3_600_000 }

async function takeAt(servers: Servers, places: readonly number[]): Promise<void> {
  for (const place of places) {
    await servers.at(place).command('HSET', NAME, OTHER, 1)
    await servers.at(place).command('PEXPIRE', NAME, 60_000)
  }
}

test('fault 94: a member that may have granted without our knowing is freed', async () => {
  await using servers = await openServers(3)
  const proxy = await servers.at(1).proxy()
  const members = [
    servers.at(0).holdfast(),
    servers.at(1).holdfast({}, servers.at(1).ioredis({ port: proxy.port })),
    servers.at(2).holdfast(),
  ]
  const red = await redOn(NAME, members)
  await Promise.all(servers.scenes.map(teach))
  await takeAt(servers, [2])
  proxy.dropReply(answers('acquire'))
  // The client cannot ask again.
  proxy.refuse()
  const trouble = await red.tryAcquire().catch((error: unknown) => error)
  expect(trouble).toBeInstanceOf(QuorumError)
  expect(trouble).toMatchObject({
    code: 'HOLDFAST_QUORUM',
    members: [
      { member: 0, outcome: 'granted' },
      { member: 1, outcome: 'error' },
      { member: 2, outcome: 'busy', holder: OTHER },
    ],
  })
  expect(await servers.count(NAME, [1])).toBe(1)
  await proxy.accept()
  // Only the key's own TTL of 30 s would free it otherwise.
  await servers.untilGone(NAME, [0, 1])
  await eventually(() => members.every((member) => member.stats().compensating === 0), 'all is undone')
})

const DOWN: readonly (readonly [string, (scene: Scene) => Promise<unknown>])[] = [
  ['was killed', ({ server }) => server.kill()],
  [
    'hangs',
    ({ server }) => {
      server.pause()
      return Promise.resolve()
    },
  ],
  ['wants a password', (scene) => scene.command('CONFIG', 'SET', 'requirepass', 'secret')],
]

describe.each(DOWN)('while one of three %s', (_what, fail) => {
  test('fault 98: a lock is taken, extended and released without it', async () => {
    await using servers = await openServers(3)
    const members = servers.process()
    const red = await redOn(NAME, members, ENDLESS)
    await fail(servers.at(2))
    // What has not been connected yet is refused by the server.
    const fresh = [...members.slice(0, 2), servers.at(2).holdfast()]
    for (const lock of [red, members[0]?.redLock(NAME, fresh, ENDLESS)]) {
      const lease = await lock?.acquire({ waitTime: 20_000 })
      expect(await servers.count(NAME, [0, 1])).toBe(2)
      await lease?.extend(60_000)
      expect(lease?.remaining).toBeGreaterThan(50_000)
      expect(await lease?.release()).toBe('released')
      await servers.untilGone(NAME, [0, 1])
    }
  })
})

test('fault 98: a member whose host has no address is a vote against', async () => {
  await using servers = await openServers(2)
  const nowhere = new Redis({ host: 'no-such-host.invalid', port: 6379 })
  nowhere.on('error', () => undefined)
  const holdfast = new Holdfast(nowhere)
  const members = [holdfast, ...servers.process()]
  const lease = await members[1]?.redLock(NAME, members, ENDLESS).acquire({ waitTime: 20_000 })
  expect(await lease?.release()).toBe('released')
  nowhere.disconnect()
  await holdfast.close({ drain: 0 })
})

test('fault 98: of five servers a majority is enough, and less is refused', async () => {
  await using servers = await openServers(5)
  const red = await servers.red(NAME, {}, { memberTimeout: 300 })
  for (const [place, left] of [
    [0, 4],
    [1, 3],
  ] as const) {
    await servers.at(place).server.kill()
    const lease = await red.acquire({ waitTime: 20_000 })
    await lease.extend(60_000)
    expect(await lease.release()).toBe('released')
    expect(servers.scenes.filter(({ server }) => server.running)).toHaveLength(left)
  }
  await servers.at(2).server.kill()
  const trouble = await red.acquire({ waitTime: 1_000 }).catch((error: unknown) => error)
  expect(trouble).toMatchObject({ code: 'HOLDFAST_QUORUM', lock: NAME })
  const outcomes = trouble instanceof QuorumError ? trouble.members.map(({ outcome }) => outcome) : []
  expect(outcomes).toEqual(['error', 'error', 'error', 'granted', 'granted'])
  await expect(red.tryAcquire()).rejects.toMatchObject({ code: 'HOLDFAST_QUORUM' })
  await servers.untilGone(NAME, [3, 4])
})

test('fault 98: a lease lives as long as a majority of its servers', async () => {
  await using servers = await openServers(5)
  const red = await servers.red(NAME, { lockWatchdogTimeout: 900 })
  const lease = await red.acquire()
  await eventually(async () => (await servers.count(NAME)) === 5, 'all have granted')
  await servers.at(0).server.kill()
  servers.at(1).server.pause()
  const endMs = performance.now() + 1_800
  await eventually(() => performance.now() > endMs, 'two watchdog time-outs have passed')
  expect(lease.held).toBe(true)
  expect(await servers.count(NAME, [2, 3, 4])).toBe(3)
  await servers.at(2).server.kill()
  await eventually(() => lease.signal.aborted, 'the loss of the third is told')
  expect(lease.signal.reason).toMatchObject({ reason: 'expired', lock: NAME })
  expect(lease.held).toBe(false)
  await lease.release()
  await servers.untilGone(NAME, [3, 4])
})

test('fault 99: a server that hangs is not waited for', async () => {
  await using servers = await openServers(5)
  const red = await servers.red(NAME, { commandTimeout: 3_600_000 }, ENDLESS)
  servers.at(0).server.pause()
  servers.at(3).server.pause()
  for (let turn = 0; turn < 20; turn++) expect(await red.using((lease) => lease.held)).toBe(true)
  await takeAt(servers, [1, 2, 4])
  // Three say no: that is an answer, whatever the others would say.
  expect(await red.tryAcquire()).toBeNull()
})

test('fault 99: a server that hangs and has the deciding vote is waited for, and no longer than it may take', async () => {
  await using servers = await openServers(5)
  const red = await servers.red(NAME, {}, { memberTimeout: 200 })
  await servers.at(0).server.kill()
  await servers.at(1).server.kill()
  servers.at(2).server.pause()
  await expect(red.tryAcquire()).rejects.toMatchObject({ code: 'HOLDFAST_QUORUM' })
  await servers.untilGone(NAME, [3, 4])
  const waiting = red.acquire({ waitTime: 20_000 })
  const seen = watch(waiting)
  await expect(red.tryAcquire({ waitTime: 300 })).rejects.toMatchObject({ code: 'HOLDFAST_QUORUM' })
  expect(seen.settled).toBe(false)
  servers.at(2).server.resume()
  const lease = await waiting
  await eventually(async () => (await servers.count(NAME, [2, 3, 4])) === 3, 'all that are left have it')
  expect(await lease.release()).toBe('released')
  await servers.untilGone(NAME, [2, 3, 4])
})

test('fault 101: a member that was never taken does not spoil the release', async () => {
  await using servers = await openServers(3)
  const red = await servers.red(NAME)
  await takeAt(servers, [1])
  const lease = await red.acquire()
  expect(await lease.release()).toBe('released')
  await servers.untilGone(NAME, [0, 2])
  expect(await servers.at(1).command('HGETALL', NAME)).toEqual([OTHER, '1'])
})

/** The process warnings about members of a lock. */
function hearWarnings(scene: Scene): string[] {
  const heard: string[] = []
  const listener = (warning: Error & { readonly code?: string }): void => {
    if (warning.code === 'HOLDFAST_MEMBERS') heard.push(warning.message)
  }
  process.on('warning', listener)
  scene.atEnd(() => process.off('warning', listener))
  return heard
}

test('fault 102: members that are one server are told', async () => {
  await using servers = await openServers(2)
  const heard = hearWarnings(servers.at(0))
  const members = [servers.at(0).holdfast(), servers.at(1).holdfast(), servers.at(0).holdfast()]
  const red = await redOn(NAME, members)
  // Both are the same key: one of them is always in the way of the other, or stands for both.
  await red.tryAcquire()
  await eventually(() => heard.length > 0, 'the warning is emitted')
  expect(heard).toEqual([expect.stringContaining(`Members 0 and 2 of lock '${NAME}' are the same server`)])
})

test('fault 102: members that are a primary and its replica are told', async () => {
  await using servers = await openServers(3)
  const heard = hearWarnings(servers.at(0))
  await servers.at(1).command('REPLICAOF', '127.0.0.1', servers.at(0).port)
  await eventually(
    async () => String(await servers.at(1).command('INFO', 'replication')).includes('master_link_status:up'),
    'the replica follows',
  )
  const red = await servers.red(NAME)
  expect((await red.acquire({ waitTime: 20_000 })).held).toBe(true)
  await eventually(() => heard.length > 0, 'the warning is emitted')
  expect(heard).toEqual([expect.stringContaining('Members 0 and 1')])
  expect(heard[0]).toContain('a primary and its replica')
})

test('fault 102: members that are independent are not told of', async () => {
  await using servers = await openServers(3)
  const heard = hearWarnings(servers.at(0))
  const diagnoses = servers.at(0).hear('holdfast:diagnosis')
  const red = await servers.red(NAME)
  await red.using(() => 0)
  const info = async (place: number) => String(await servers.at(place).command('INFO', 'commandstats'))
  await eventually(async () => (await info(0)).includes('cmdstat_info'), 'they were asked')
  const before = await Promise.all(
    [0, 1, 2].map(async (place) => /cmdstat_info:calls=(\d+)/.exec(await info(place))?.[1]),
  )
  expect(before.every((calls) => calls !== undefined)).toBe(true)
  await red.using(() => 0)
  expect(heard).toEqual([])
  expect(diagnoses).toEqual([])
})
