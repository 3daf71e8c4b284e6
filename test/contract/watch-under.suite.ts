import { describe, expect, test } from 'vitest'
import type { Change, WatchOptions } from '../../src/index.js'
import { Door } from './together.js'
import type { Watched, WatchStage } from './watch.suite.js'

/** `under`: handlers in one process only. */
export function watchUnder(its: WatchStage): void {
  const { stage } = its
  /** A process with a watch under the lock of this name. */
  const member = async (key: string, lockName: string, options: WatchOptions = {}): Promise<Watched> => {
    const holdfast = await stage.world.holdfast({ lockWatchdogTimeout: 600 })
    return its.watch(key, { under: holdfast.lock(lockName), ...options }, holdfast)
  }

  describe('under a lock', () => {
    test('runs callbacks in the process that holds it, and the next one goes on from there', async () => {
      const [key, lock] = [stage.name(), stage.name()]
      await its.put(key, 'one')
      const first = await member(key, lock)
      const second = await member(key, lock)
      expect(first.watch.mode).toBe(its.mode)
      expect(second.watch.mode).toBe('waiting')
      await its.put(key, 'two')
      await its.told(first.diary, `change ${key}`)
      await stage.world.settled(first.watch.close())
      await stage.world.until(() => second.watch.mode === its.mode, 'the second one leads')
      await its.put(key, 'three')
      await its.told(second.diary, `change ${key}`)
      expect(first.diary.lines).toEqual([`change ${key}`])
      expect([...first.diary.errors, ...second.diary.errors]).toEqual([])
    })

    test('hands what happened while nobody held it to the next holder', async () => {
      const [key, other, lock] = [stage.name(), stage.name(), stage.name()]
      await its.put(key, 'one')
      await its.put(other, 'one', 400)
      const first = await its.watch([key, other], {
        under: (await stage.world.holdfast()).lock(lock),
      })
      await stage.world.settled(first.watch.close())
      await its.put(key, 'two')
      await stage.world.pass(500)
      const second = await its.watch([key, other], {
        under: (await stage.world.holdfast()).lock(lock),
      })
      await stage.world.until(() => second.diary.lines.length === 2, 'both are told')
      expect(second.diary.lines.sort()).toEqual([`change ${key}`, `expire ${other}`])
      await stage.world.settled(second.watch.close())
      const third = await its.watch([key, other], { under: (await stage.world.holdfast()).lock(lock) })
      await its.put(key, 'three')
      await its.told(third.diary, `change ${key}`)
    })

    test('does the same for the keys of a pattern', async () => {
      const [base, lock] = [stage.name(), stage.name()]
      const watch = async () =>
        its.watch({ pattern: `${base}:*` }, { under: (await stage.world.holdfast()).lock(lock) })
      await its.put(`${base}:a`, 'one')
      await its.put(`${base}:b`, 'one')
      const first = await watch()
      await stage.world.settled(first.watch.close())
      await its.put(`${base}:c`, 'one')
      await stage.world.remove(`${base}:a`)
      const second = await watch()
      await stage.world.until(() => second.diary.lines.length === 2, 'both are told')
      expect(second.diary.lines.sort()).toEqual([`create ${base}:c`, `delete ${base}:a`])
    })

    test('a change whose handler did not come to its end when the lock was lost is handled by the next', async () => {
      const [key, lock] = [stage.name(), stage.name()]
      await its.put(key, 'one')
      const door = new Door()
      const begun: Change[] = []
      const first = await member(key, lock, {
        onChange: async (change) => {
          begun.push(change)
          await door.opened
        },
      })
      const second = await member(key, lock)
      await its.put(key, 'two')
      await stage.world.until(() => begun.length === 1, 'the first one has begun')
      expect(begun[0]?.signal.aborted).toBe(false)
      await stage.world.settled((await stage.world.holdfast()).lock(lock).forceRelease())
      await its.told(second.diary, `change ${key}`)
      await stage.world.until(() => begun[0]?.signal.aborted === true, 'the first one is told of the loss')
      await its.put(key, 'three')
      await its.told(second.diary, `change ${key}`, `change ${key}`)
      door.open()
      await stage.world.until(() => first.watch.mode === 'waiting', 'the first one waits')
      // What the first one has come to an end with since is older than what the second one has handled.
      await stage.world.settled(second.watch.close())
      await stage.world.until(() => first.watch.mode === its.mode, 'the first one leads again')
      expect(begun).toHaveLength(1)
      await its.put(key, 'four')
      await stage.world.until(() => begun.length === 2, 'it handles the next change')
    })

    test('a handler that fails has had its turn', async () => {
      const [key, lock] = [stage.name(), stage.name()]
      const failing = await member(key, lock, {
        onChange: () => {
          throw new Error('no')
        },
      })
      await its.put(key, 'one')
      await stage.world.until(() => failing.diary.errors.length === 1, 'it has failed')
      await stage.world.settled(failing.watch.close())
      const second = await member(key, lock)
      await its.put(key, 'two')
      await its.told(second.diary, `change ${key}`)
    })

    test('the lock re-enters in its callbacks', async () => {
      const [key, lock] = [stage.name(), stage.name()]
      const holdfast = await stage.world.holdfast()
      const counts: number[] = []
      await its.watch(
        key,
        {
          under: holdfast.lock(lock),
          onChange: () => holdfast.lock(lock).using((lease) => counts.push(lease.holdCount)),
        },
        holdfast,
      )
      await its.put(key, 'one')
      await stage.world.until(() => counts.length === 1, 'it was called')
      expect(counts).toEqual([2])
    })
  })
}
