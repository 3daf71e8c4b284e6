/** The fair lock, group F: processes that die in the queue, and the order across those that live. */
import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.js'
import { Child } from './child.js'
import { openScene, type Scene } from './scene.js'

const NAME = 'orders:42'
const QUEUE = `redisson_lock_queue:{${NAME}}`

const queued = async (scene: Scene): Promise<number> => Number(await scene.command('LLEN', QUEUE))
const keys = async (scene: Scene): Promise<readonly string[]> => {
  const reply = await scene.command('KEYS', '*')
  return Array.isArray(reply) ? reply.map(String).filter((key) => !key.includes('unlock_latch')) : []
}

test('fault 69: the places of killed processes end by themselves, and nothing is left of them', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 600 })
  const lease = await holdfast.fairLock(NAME).acquire()
  await using dying = new Child('fair-waiters', [String(scene.port), '20', '40'])
  await dying.printed('queued')
  dying.kill('SIGKILL')
  await dying.ended
  const next = holdfast.fairLock(NAME).acquire()
  await lease.release()
  // Twenty places of 40 ms each, after the last TTL that they knew of.
  expect((await next).held).toBe(true)
  expect(await keys(scene)).toEqual([NAME])
  await (await next).release()
  expect(await keys(scene)).toEqual([])
})

test('fault 69: a process that dies at the head does not take the wake-up with it', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 1_000 })
  const lease = await holdfast.fairLock(NAME).acquire()
  await using dying = new Child('fair-waiters', [String(scene.port), '1', '200'])
  await dying.printed('queued')
  dying.kill('SIGKILL')
  await dying.ended
  const next = holdfast.fairLock(NAME).acquire()
  await eventually(async () => (await queued(scene)) === 2, 'it stands behind the dead one')
  await lease.release()
  expect((await next).held).toBe(true)
})

describe('order', () => {
  test('several processes are served in the order of their coming', async () => {
    await using scene = await openScene()
    const lease = await scene.holdfast().fairLock(NAME).acquire()
    const children: Child[] = []
    const next = async (count: number): Promise<void> => {
      const first = children.length * 10
      const child = new Child('fair-waiters', [String(scene.port), String(count), '300000', String(first)])
      scene.atEnd(() => child[Symbol.asyncDispose]())
      children.push(child)
      await child.printed('queued')
    }
    for (const count of [3, 2, 4]) await next(count)
    await lease.release()
    await Promise.all(children.map(({ ended }) => ended))
    const served = await scene.command('LRANGE', 'served', 0, -1)
    expect(served).toEqual(['0', '1', '2', '10', '11', '20', '21', '22', '23'])
  })
})
