/** Renewal, group A: holders whose process stands still, and what trouble does to a process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.js'
import { Child } from './child.js'
import { channelOf, openScene, type Scene } from './scene.js'
import { block, ttl, untilHeard } from './support/around.js'
import { sends } from './support/sent.js'

const NAME = 'orders:42'
const LEASE = 900
const STRICT = ['--unhandled-rejections=strict']

/** A holder in a process of its own. */
function startHolder(port: number, lease: number = LEASE): Child {
  return new Child('a-holder', [String(port), String(lease)], STRICT)
}

test('fault 1: after a block longer than the lease nothing of it is left', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast({ lockWatchdogTimeout: LEASE }, scene.ioredis({ port: proxy.port }))
  const lost = scene.hear('holdfast:lost')
  const lease = await holdfast.lock(NAME).acquire()
  const other = await holdfast.lock('another').acquire()
  const { signal } = lease
  // The next owner, who does not stand still.
  await using second = startHolder(scene.port, 30_000)
  await untilHeard(scene, channelOf(NAME))

  const before = proxy.count(sends('renew'))
  block(2 * LEASE)
  // The clock says so before any timer had its turn.
  expect(other.held).toBe(false)
  expect(() => other.assertHeld()).toThrow(expect.objectContaining({ code: 'HOLDFAST_LEASE_LOST' }) as Error)
  expect(signal.aborted).toBe(false)
  // A timer that is set after the block comes behind those that are overdue.
  await sleep(0)
  expect(signal.aborted).toBe(true)
  expect(signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'expired', lock: NAME })

  await second.printed('holding')
  expect(await lease.release()).toBe('expired')
  expect(await other.release()).toBe('expired')
  expect(proxy.count(sends('renew'))).toBe(before)
  expect(lost.map(({ lock }) => lock).sort()).toEqual(['another', NAME])
  expect(await scene.command('HKEYS', NAME)).toEqual([second.lines[0]])
  expect(await ttl(scene, NAME)).toBeGreaterThan(LEASE)
})

test('fault 2: a process that was stopped and goes on knows that it lost the lock', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  await using child = startHolder(proxy.port)
  await child.printed('holding')
  child.kill('SIGSTOP')
  const second = await scene.holdfast().lock(NAME).acquire()
  const before = proxy.count(sends('renew'))

  // Asked in its first moment, before the timers that are overdue.
  child.kill('SIGUSR2')
  child.kill('SIGCONT')
  await eventually(() => child.lines.length > 2, 'it was asked')
  expect(child.lines.slice(2)).toEqual(['held false'])
  child.kill('SIGTERM')
  expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(child.lines.slice(3)).toEqual(['release expired'])
  expect(proxy.count(sends('renew'))).toBe(before)
  expect(second.held).toBe(true)
  expect(await scene.command('HKEYS', NAME)).toEqual([second.owner])
})

interface Trouble {
  readonly trouble: string
  /** Lasts longer than the lease. */
  readonly make: (scene: Scene, child: Child) => Promise<unknown>
  readonly outcome: string
}

const TROUBLES: readonly Trouble[] = [
  {
    trouble: 'a block (row 1)',
    make: (_scene, child) => {
      child.kill('SIGHUP')
      return child.printed('held false')
    },
    outcome: 'expired',
  },
  {
    trouble: 'a busy server (row 3)',
    make: async (scene, child) => {
      await scene.command('CONFIG', 'SET', 'busy-reply-threshold', 10)
      scene.server.send('EVAL', 'while true do end', 0).catch(() => undefined)
      await untilLost(child)
      await scene.command('SCRIPT', 'KILL')
    },
    outcome: 'expired',
  },
  {
    trouble: 'a frozen server (row 9)',
    make: async (scene, child) => {
      scene.server.pause()
      await untilLost(child)
      scene.server.resume()
    },
    outcome: 'expired',
  },
  {
    trouble: 'a removed key (row 7)',
    make: async (scene, child) => {
      await scene.command('DEL', NAME)
      await untilLost(child)
    },
    outcome: 'stolen',
  },
  {
    trouble: 'an outage',
    make: async (scene, child) => {
      await scene.server.kill()
      await untilLost(child)
      await scene.server.start()
    },
    outcome: 'expired',
  },
]

/** Asks again and again until it says no. */
async function untilLost(child: Child): Promise<void> {
  await eventually(async () => {
    child.kill('SIGUSR2')
    await sleep(50)
    return child.lines.includes('held false')
  }, 'it knows that the lock is lost')
}

test.concurrent.each(TROUBLES)(
  'fault 11: a process without listeners lives on through $trouble',
  async (row) => {
    await using scene = await openScene()
    await using child = startHolder(scene.port)
    await child.printed('holding')
    await row.make(scene, child)
    child.kill('SIGTERM')
    expect(await child.ended).toEqual({ code: 0, signal: null })
    expect(child.lines.at(-1)).toBe(`release ${row.outcome}`)
    expect(child.errors).not.toMatch(/UnhandledPromiseRejection|Uncaught|triggerUncaughtException/)
  },
)
