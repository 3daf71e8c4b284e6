/** The server and its data, group L: the tokens of fenced locks, and the stores that ask for them. */
import { expect, test } from 'vitest'
import { RedisGuard } from '../../src/index.js'
import { raw } from '../support/raw.js'
import { openScene } from './scene.js'

const NAMES = Array.from({ length: 500 }, (_, i) => `order:${i}`)

test('fault 122: there is one counter a name and nothing else is left, however often it is taken', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  for (let round = 1; round <= 3; round += 1) {
    const tokens = await Promise.all(
      NAMES.map((name) => holdfast.fencedLock(name).using((lease) => lease.token)),
    )
    expect(new Set(tokens)).toEqual(new Set([round]))
    expect(await scene.command('DBSIZE')).toBe(NAMES.length)
  }
  expect(await scene.command('PTTL', 'redisson_lock_token:{order:0}')).toBe(-1)
})

test('fault 122: the token is higher after force, expiry and a restart with the data', async () => {
  await using scene = await openScene(['--appendonly', 'yes', '--appendfsync', 'always'])
  const lock = scene.holdfast().fencedLock('order')
  const tokens = [(await lock.acquire()).token]
  await lock.forceRelease()
  const short = await lock.acquire({ leaseTime: 50 })
  tokens.push(short.token)
  await expect(lock.acquire().then((lease) => tokens.push(lease.token) > 0)).resolves.toBe(true)
  expect(short.held).toBe(false)
  await scene.server.kill()
  await scene.server.start()
  const link = await raw(scene.port)
  await link.command('DEL', 'order')
  await link[Symbol.asyncDispose]()
  tokens.push((await lock.acquire()).token)
  expect(tokens).toEqual([1, 2, 3, 4])
})

test('fault 123: what a holder writes after its lease has ended is refused, as soon as the next one has read', async () => {
  await using scene = await openScene()
  const guard = new RedisGuard(scene.ioredis())
  const account = guard.value('account:42')
  const late = await scene.holdfast().fencedLock('lock:account:42').acquire({ leaseTime: 100 })
  await account.write(late.token, '100')
  expect(await account.read(late.token)).toBe('100')
  // The late one is stopped here, and asked nothing of its lease before it goes on.
  const next = await scene.holdfast().fencedLock('lock:account:42').acquire()
  expect(await account.read(next.token)).toBe('100')
  await expect(account.write(late.token, '90')).rejects.toMatchObject({
    code: 'HOLDFAST_STALE_TOKEN',
    token: late.token,
    floor: next.token,
  })
  await account.write(next.token, '110')
  expect(await account.read(next.token)).toBe('110')
})
