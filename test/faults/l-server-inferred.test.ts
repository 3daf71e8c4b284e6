/** What may go wrong in the server, from our own thinking (rows I). */
import { describe, expect, test } from 'vitest'
import { IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { channelOf, openScene } from './scene.js'

const NAME = 'orders:42'

test('fault I13: the holder of a lock that was moved away is told', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 600 })
  const moves = [
    ['SWAPDB', 0, 1],
    ['MOVE', NAME, 2],
    ['RENAME', NAME, 'another name'],
  ] as const
  for (const move of moves) {
    const lease = await holdfast.lock(NAME).acquire()
    const lost = new Promise((resolve) => {
      lease.signal.addEventListener('abort', () => {
        resolve(lease.signal.reason)
      })
    })
    await scene.command(...move)
    expect(await lost).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
    expect(await lease.release()).toBe('stolen')
  }
  // What was moved is not touched there.
  expect(await scene.command('EXISTS', 'another name')).toBe(1)
})

describe.each([IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6])('with $name', (variant) => {
  test('fault I21: a password that changes under a lease is told before the lease ends', async () => {
    await using scene = await openScene()
    const user = ['ACL', 'SETUSER', 'app', 'on', 'allkeys', 'allchannels', 'allcommands', 'resetpass']
    await scene.command(...user, '>first')
    const client = await open(variant, scene.port, { username: 'app', password: 'first' })
    scene.atEnd(() => client.destroy())
    const failed = scene.hear('holdfast:renew:failed')
    const settings = { lockWatchdogTimeout: 1_800, commandTimeout: 200 }
    const holdfast = scene.holdfast(settings, client.raw as object)
    const lease = await holdfast.lock(NAME).acquire()

    await scene.command(...user, '>second')
    await scene.command('CLIENT', 'KILL', 'USER', 'app')
    await new Promise((resolve) => {
      lease.signal.addEventListener('abort', resolve)
    })
    expect(lease.signal.reason).toMatchObject({ reason: 'expired' })
    expect(failed.length).toBeGreaterThan(0)
    await expect(holdfast.lock('another').acquire({ waitTime: 100 })).rejects.toMatchObject({
      code: 'HOLDFAST_UNAVAILABLE',
    })
  })
})

test('fault I21: a lease outlives a short time without access', async () => {
  await using scene = await openScene()
  const user = ['ACL', 'SETUSER', 'app', 'on', 'allkeys', 'allchannels', 'allcommands', 'resetpass']
  await scene.command(...user, '>first')
  const client = await open(IOREDIS_6, scene.port, { username: 'app', password: 'first' })
  scene.atEnd(() => client.destroy())
  const failed = scene.hear('holdfast:renew:failed')
  const renewed = scene.hear('holdfast:renew:ok')
  const lease = await scene
    .holdfast({ lockWatchdogTimeout: 4_500, commandTimeout: 100 }, client.raw as object)
    .lock(NAME)
    .acquire()
  await scene.command(...user, '>second')
  await scene.command('CLIENT', 'KILL', 'USER', 'app')
  await eventually(() => failed.length > 0, 'a renewal has failed')
  await scene.command(...user, '>first')
  await eventually(() => renewed.length > 0, 'it is renewed again')
  expect(lease.held).toBe(true)
})

test('fault I22: a subscriber that is cut off for a flood of messages listens again', async () => {
  await using scene = await openScene()
  await scene.command('CONFIG', 'SET', 'client-output-buffer-limit', 'pubsub 1k 1k 1')
  const LONG = { lockWatchdogTimeout: 3_600_000 }
  const held = await scene.holdfast(LONG).lock(NAME).acquire()
  const woken = scene.hear('holdfast:wakeup')
  const links = async (): Promise<string> => {
    const list = String(await scene.command('CLIENT', 'LIST', 'TYPE', 'pubsub'))
    return /^id=\d+/m.exec(list)?.[0] ?? ''
  }
  const got = scene.holdfast(LONG).lock(NAME).acquire({ pollInterval: 3_600_000 })
  await eventually(
    async () => (await links()) !== '' && woken.some(({ cause }) => cause === 'resync'),
    'it listens',
  )
  const first = await links()
  for (let times = 0; times < 20; times++)
    await scene.command('PUBLISH', channelOf(NAME), 'x'.repeat(100_000))
  await eventually(async () => !['', first].includes(await links()), 'it listens over another link')
  await held.release()
  expect((await got).held).toBe(true)
})
