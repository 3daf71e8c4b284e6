import { describe, expect, test } from 'vitest'
import type { HoldfastEvents } from '../../src/index.js'
import { hear } from './hear.js'
import { Watched } from './together.js'
import { STRANGER, type KindStage } from './world.js'

const aTime = expect.toSatisfy((ms: unknown) => typeof ms === 'number' && ms >= 0) as number

/** The diagnostics channels: what is told when, in exactly these words. */
export function observing({ stage, kind, lock }: KindStage): void {
  const hearAll = (name: string) => {
    const channels: (keyof HoldfastEvents)[] = [
      'holdfast:acquire:start',
      'holdfast:acquire:wait',
      'holdfast:acquire:granted',
      'holdfast:acquire:timeout',
      'holdfast:acquire:aborted',
      'holdfast:acquire:failed',
      'holdfast:lost',
      'holdfast:release',
    ]
    return Object.fromEntries(
      channels.map((channel) => [channel.slice('holdfast:'.length), hear(channel, name)]),
    )
  }
  const only = (events: Record<string, unknown[]>) =>
    Object.fromEntries(Object.entries(events).filter(([, heard]) => heard.length > 0))

  describe('events tell of', () => {
    test('a grant and a release', async () => {
      const name = stage.name()
      const heard = hearAll(name)
      const mine = await lock(name)
      const lease = await mine.acquire({ waitTime: 500 })
      await lease.release()
      expect(only(heard)).toEqual({
        'acquire:start': [{ lock: name, waitTime: 500 }],
        'acquire:granted': [{ lock: name, owner: lease.owner, waited: aTime, holdCount: 1 }],
        release: [{ lock: name, owner: lease.owner, outcome: 'released', held: aTime }],
      })
    })

    stage.slow('events tell of waiting, and its end in vain', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const mine = await lock(name)
      const heard = hearAll(name)
      expect(await stage.world.settled(mine.tryAcquire({ waitTime: 250 }))).toBeNull()
      expect(only(heard)).toEqual({
        'acquire:start': [{ lock: name, waitTime: 250 }],
        'acquire:wait': [{ lock: name, holder: lease.owner, holderTtl: aTime }],
        'acquire:timeout': [{ lock: name, waited: aTime }],
      })
    })

    test('waiting in line behind another call of the process', async () => {
      const name = stage.name()
      const lease = await (await lock(name)).acquire()
      const mine = await lock(name)
      const heard = hear('holdfast:acquire:wait', name)
      const waiters = [mine.acquire(), mine.acquire()]
      await stage.world.pass(20)
      expect(heard).toHaveLength(2)
      // Only a fair lock's callers all ask for themselves.
      if (kind !== 'fair')
        expect(heard).toContainEqual({ lock: name, holder: undefined, holderTtl: undefined })
      expect(heard).toContainEqual({ lock: name, holder: lease.owner, holderTtl: aTime })
      await lease.release()
      for (const waiter of waiters) await (await stage.world.settled(waiter)).release()
    })

    test('an abort', async () => {
      const name = stage.name()
      await (await lock(name)).acquire()
      const mine = await lock(name)
      const heard = hearAll(name)
      const controller = new AbortController()
      const attempt = new Watched(mine.acquire({ signal: controller.signal }))
      await stage.world.pass(20)
      controller.abort('gone')
      await expect(attempt.promise).rejects.toBe('gone')
      expect(heard['acquire:aborted']).toEqual([{ lock: name, waited: aTime, reason: 'gone' }])
      expect(heard['acquire:failed']).toEqual([])
    })

    test('a failure', async () => {
      const name = stage.name()
      await stage.world.storeData(name, 'list')
      const heard = hearAll(name)
      const error: unknown = await (await lock(name)).acquire().catch((reason: unknown) => reason)
      expect(heard['acquire:failed']).toEqual([{ lock: name, waited: aTime, error }])
    })

    stage.slow('events tell of renewals, with the slack that was left', async () => {
      const name = stage.name()
      const heard = hear('holdfast:renew:ok', name)
      const mine = await lock(name, { lockWatchdogTimeout: 1_500 })
      const lease = await mine.acquire()
      await stage.world.until(() => heard.length >= 2, 'it is renewed')
      for (const event of heard) {
        expect(event).toEqual({ lock: name, owner: lease.owner, slack: aTime })
        expect(event.slack).toBeLessThanOrEqual(1_500)
      }
    })

    stage.slow('events tell of a loss and the outcome of the release after it', async () => {
      const name = stage.name()
      const lease = await (await lock(name, { lockWatchdogTimeout: 1_500 })).acquire()
      const heard = hearAll(name)
      await stage.world.take(name, STRANGER, { kind, ttlMs: 60_000 })
      await stage.world.until(() => !lease.held, 'the loss is found')
      await lease.release()
      expect(only(heard)).toEqual({
        lost: [{ lock: name, owner: lease.owner, reason: 'stolen' }],
        release: [{ lock: name, owner: lease.owner, outcome: 'stolen', held: aTime }],
      })
    })
  })
}
