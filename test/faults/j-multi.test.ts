/** Several locks as one, group J: nothing is left of an attempt that came to nothing. */
import { describe, expect, test } from 'vitest'
import { multiAcquire } from '../../src/engine/redis/scripts.js'
import { eventually } from '../support/eventually.js'
import type { Request } from '../support/proxy.js'
import { openScene } from './scene.js'
import { IDLE, OTHER } from './support/around.js'
import { openServers } from './support/servers.js'

const NAMES = ['accounts:1', 'accounts:2', 'accounts:3'] as const
const RED = 'orders:42'

describe.each(['ioredis', 'node-redis'] as const)('with %s', (library) => {
  test('fault 93: a call that ends while members are taken gives them back', async () => {
    await using scene = await openScene()
    const client = () => (library === 'ioredis' ? Promise.resolve(scene.ioredis()) : scene.nodeRedis())
    // On clients of their own, so that they are taken one by one.
    const holdfasts = [
      scene.holdfast({ lockWatchdogTimeout: 900 }, await client()),
      scene.holdfast({ lockWatchdogTimeout: 900 }, await client()),
      scene.holdfast({}, await client()),
    ]
    const [first] = holdfasts
    const multi = first?.multiLock(holdfasts.map((holdfast, i) => holdfast.lock(NAMES[i] ?? '')))
    await scene.command('HSET', NAMES[2], OTHER, 1)

    const both = async () => (await scene.command('EXISTS', NAMES[0], NAMES[1])) === 2
    const controller = new AbortController()
    const waiting = multi?.acquire({ signal: controller.signal })
    await eventually(both, 'the first two are taken')
    controller.abort(new Error('gone'))
    await expect(waiting).rejects.toThrow('gone')
    await scene.untilGone(NAMES[0])
    await scene.untilGone(NAMES[1])

    const timed = multi?.tryAcquire({ waitTime: 150 })
    await eventually(both, 'the first two are taken again')
    expect(await timed).toBeNull()
    await scene.untilGone(NAMES[0])
    await scene.untilGone(NAMES[1])
    for (const holdfast of holdfasts) expect(holdfast.stats()).toEqual(IDLE)
    expect(await scene.command('HGETALL', NAMES[2])).toEqual([OTHER, '1'])
  })
})

test('fault 93: closing while members are taken gives them back', async () => {
  await using scene = await openScene()
  const [mine, others] = [scene.holdfast(), scene.holdfast()]
  const multi = mine.multiLock([others.lock(NAMES[0]), others.lock(NAMES[1]), others.mutex(NAMES[2])])
  await scene.command('SET', NAMES[2], 'somebody')
  const waiting = multi.acquire()
  await eventually(async () => (await scene.command('EXISTS', NAMES[0], NAMES[1])) === 2, 'two are taken')
  await mine.close({ drain: 0 })
  await expect(waiting).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  await scene.untilGone(NAMES[0])
  await scene.untilGone(NAMES[1])
})

test('fault 93: after an attempt without an answer the next rounds have another owner', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast({ commandTimeout: 300 }, scene.ioredis({ port: proxy.port }))
  const locks = [holdfast.lock(NAMES[0]), holdfast.lock(NAMES[1])]
  await holdfast.multiLock(locks).using(() => 0)
  const { sha } = multiAcquire.script
  const isAttempt = ({ words }: Request): boolean => words[1] === sha
  const ownerOf = ({ words }: Request): string => words[3 + Number(words[2])] ?? ''
  await scene.command('HSET', NAMES[0], OTHER, 1)
  proxy.requests.length = 0
  const gate = proxy.holdReplies(({ request }) => request !== undefined && isAttempt(request))
  const controller = new AbortController()
  const waiting = holdfast.multiLock(locks).acquire({ signal: controller.signal })
  await eventually(() => proxy.requests.filter(isAttempt).length >= 3, 'a third attempt')
  const [first = '', ...others] = proxy.requests.filter(isAttempt).map(ownerOf)
  controller.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  gate.release()
  expect(first).not.toBe('')
  expect(others).not.toContain(first)
})

test('fault 93: an abort while servers are asked leaves nothing on any of them', async () => {
  await using servers = await openServers(5)
  const members = servers.process()
  const red = await servers.red(RED, {}, { memberTimeout: 3_600_000 })
  for (const place of [3, 4]) await servers.at(place).command('HSET', RED, OTHER, 1)
  servers.at(2).server.pause()
  const controller = new AbortController()
  const waiting = red.acquire({ signal: controller.signal })
  await eventually(async () => (await servers.count(RED, [0, 1])) === 2, 'two have granted')
  controller.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  await servers.untilGone(RED, [0, 1])
  // What the third does when it goes on is undone.
  servers.at(2).server.resume()
  await eventually(async () => (await servers.at(2).command('KEYS', `*latch*${RED}*`)) !== '', 'it answers')
  await servers.untilGone(RED, [0, 1, 2])
  expect(members.every((member) => member.stats().held === 0)).toBe(true)
})

test('fault 34: waitTime 0 is exactly one try per member', async () => {
  await using scene = await openScene()
  const [one, two] = [scene.holdfast(), scene.holdfast()]
  const multi = one.multiLock([one.lock(NAMES[0]), two.lock(NAMES[1]), one.mutex(NAMES[2])])
  await multi.using(() => 0)
  await scene.forgetCalls()
  const lease = await multi.tryAcquire()
  expect(lease).not.toBeNull()
  expect(await scene.scripts()).toBe(3)
  await lease?.release()

  await scene.command('SET', NAMES[2], 'somebody')
  await scene.forgetCalls()
  expect(await multi.tryAcquire()).toBeNull()
  // Three tries, and two that are given back.
  expect(await scene.scripts()).toBe(5)
})
