/** What waiting for a fair lock costs: commands that clients send, and who sends them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { IOREDIS_6, NODE_REDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { openScene, type Scene } from './scene.js'
import { OTHER } from './support/around.js'
import { teach } from './support/sent.js'

const NAME = 'orders:42'
const QUEUE = `redisson_lock_queue:{${NAME}}`
const DEADLINES = `redisson_lock_timeout:{${NAME}}`
const LONG = { lockWatchdogTimeout: 3_600_000 }

/** What clients send, in lower case; what a script runs is not among it. */
async function monitor(scene: Scene): Promise<string[]> {
  const listener = await scene.ioredis().monitor()
  scene.atEnd(() => {
    listener.disconnect()
  })
  const words: string[] = []
  listener.on('monitor', (_time: string, args: string[], source: string) => {
    if (source !== 'lua') words.push(String(args[0]).toLowerCase())
  })
  return words
}

describe.each([IOREDIS_6, NODE_REDIS_6])('with $name', (variant) => {
  test('a hand-over of the fair lock is one release and one try, besides the message', async () => {
    await using scene = await openScene()
    await teach(scene)
    const make = async () => {
      const client = await open(variant, scene.port)
      scene.atEnd(() => {
        client.destroy()
      })
      return scene.holdfast(LONG, client.raw as object).fairLock(NAME)
    }
    const locks = await Promise.all(Array.from({ length: 6 }, make))
    const held = await locks[0]?.acquire()
    const woken = scene.hear('holdfast:wakeup')
    const terms = { pollInterval: 3_600_000 }
    const served: number[] = []
    const waiters: Promise<unknown>[] = []
    for (const [i, lock] of locks.slice(1).entries()) {
      waiters.push(
        lock.using(terms, async () => {
          served.push(i)
          // Long enough for a look that nobody needs.
          await sleep(30)
        }),
      )
      await eventually(async () => (await scene.command('LLEN', QUEUE)) === waiters.length, 'it stands there')
    }
    await eventually(
      () => woken.filter(({ cause }) => cause === 'resync').length === 5,
      'all have subscribed',
    )
    await sleep(50)
    const words = await monitor(scene)
    await held?.release()
    await Promise.all(waiters)
    expect(served).toEqual([0, 1, 2, 3, 4])
    // The holder's release; then five times a try and a release.
    await eventually(() => words.filter((word) => word.startsWith('eval')).length >= 11, 'all is sent')
    await sleep(50)
    expect(words.filter((word) => word.startsWith('eval'))).toHaveLength(11)
  })
})

test('behind a silent head of the fair queue nobody spins', async () => {
  await using scene = await openScene()
  await scene.command('RPUSH', QUEUE, OTHER)
  await scene.command('ZADD', DEADLINES, Date.now() + 60_000, OTHER)
  const locks = Array.from({ length: 5 }, () => scene.holdfast().fairLock(NAME))
  const waiting = locks.map((lock) => lock.tryAcquire({ waitTime: 1_500 }))
  await eventually(async () => (await scene.command('LLEN', QUEUE)) === 6, 'all stand behind it')
  await sleep(300)
  await scene.forgetCalls()
  await sleep(1_000)
  expect(await scene.scripts()).toBe(0)
  expect(await Promise.all(waiting)).toEqual([null, null, null, null, null])
})

test('only the head of the fair queue looks at the end of a TTL, the others sleep on', async () => {
  await using scene = await openScene()
  const holder = scene.holdfast({ lockWatchdogTimeout: 600 })
  const lease = await holder.fairLock(NAME).acquire()
  const locks = Array.from({ length: 4 }, () => scene.holdfast().fairLock(NAME))
  const waiting: Promise<unknown>[] = []
  for (const lock of locks) {
    waiting.push(lock.using(() => undefined))
    await eventually(async () => (await scene.command('LLEN', QUEUE)) === waiting.length, 'it stands there')
  }
  await sleep(300)
  const woken = scene.hear('holdfast:wakeup')
  await eventually(() => woken.length >= 3, 'the head looks')
  // Each waiter has a lock of the same name, so only the number of looks tells: one waiter's, about every 600 ms.
  const [before, startMs] = [woken.length, performance.now()]
  await sleep(1_000)
  expect(woken.length - before).toBeLessThanOrEqual((performance.now() - startMs) / 300)
  await lease.release()
  await Promise.all(waiting)
})
