/** Waiting for a latch in one process: one subscription and one look for all. */
import { describe, expect, it } from 'vitest'
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { Runtime } from '../../src/lease/runtime.js'
import { resolveHoldfastOptions, type HoldfastOptions } from '../../src/options.js'
import { CountedLatch } from '../../src/synchronizers/count-down-latch.js'
import { noConnection, stage, unavailable, watched, type Stage } from '../support/staged-engine.js'

const IDLE = { held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 }

function scene(options: HoldfastOptions = {}) {
  const staged = stage(options)
  const latch = () => new CountedLatch(staged.runtime, { name: 'x', title: 'x' })
  return {
    ...staged,
    latch,
    looks: () => staged.engine.asked.filter(({ op }) => op === 'latch.inspect').length,
  }
}

function elsewhere({ store, clock }: Stage) {
  const runtime = new Runtime(new MemoryEngine(store), resolveHoldfastOptions({ clock }))
  return new CountedLatch(runtime, { name: 'x', title: 'x' })
}

function silent({ store }: Stage, count: number | undefined): void {
  const value = count === undefined ? undefined : ({ kind: 'count', count } as const)
  store.write('x', { ...store.read('x'), value, expiresAtMs: Infinity })
}

describe('waiting', () => {
  it('a hundred waiters share their looks, and all go through', async () => {
    const s = scene()
    await elsewhere(s).trySetCount(2)
    const waits = Array.from({ length: 100 }, () => watched(s.latch().wait()))
    await s.clock.advance(60_000)
    // Two for the coming, one for the subscription, then one each five seconds.
    expect(s.looks()).toBeLessThan(20)
    expect(s.runtime.stats()).toMatchObject({ waiting: 100, contests: 1 })
    await elsewhere(s).countDown()
    await s.clock.advance(0)
    expect(waits.some(({ settled }) => settled)).toBe(false)
    await elsewhere(s).countDown()
    await s.clock.advance(0)
    expect(waits.every(({ settled, error }) => settled && error === undefined)).toBe(true)
    expect(s.runtime.stats()).toEqual(IDLE)
  })

  it('zero that nobody heard of is found within five seconds', async () => {
    const s = scene()
    await elsewhere(s).trySetCount(1)
    const wait = watched(s.latch().wait())
    await s.clock.advance(100)
    silent(s, undefined)
    await s.clock.advance(5_000)
    expect(wait.settled).toBe(true)
  })

  it('zero between the first look and the subscription is found at once', async () => {
    const s = scene()
    await elsewhere(s).trySetCount(1)
    s.engine.direction = async (operation, run) => {
      const reply = await run()
      if (operation.op === 'latch.inspect' && s.looks() === 1) silent(s, undefined)
      return reply
    }
    const wait = watched(s.latch().wait())
    await s.clock.advance(0)
    expect(wait.settled).toBe(true)
  })

  it('a caller that came after a look was begun does not go by it', async () => {
    const s = scene()
    let answer = (): void => undefined
    s.engine.direction = async (_operation, run) => {
      const reply = await run()
      await new Promise<void>((resolve) => (answer = resolve))
      return reply
    }
    const early = watched(s.latch().wait())
    await s.clock.advance(0)
    // The latch was open when that look was made; it is not any more when the next one comes.
    silent(s, 3)
    const late = watched(s.latch().wait())
    s.engine.direction = (_operation, run) => run()
    answer()
    await s.clock.advance(0)
    expect([early.settled, late.settled]).toEqual([true, false])
    await elsewhere(s).delete()
    await s.clock.advance(0)
    expect(late.settled).toBe(true)
  })

  it('ends at its time, each by itself', async () => {
    const s = scene()
    await elsewhere(s).trySetCount(4)
    const [short, long] = [
      watched(s.latch().wait({ waitTime: 1_000 })),
      watched(s.latch().tryWait({ waitTime: 2_000 })),
    ]
    const once = watched(s.latch().tryWait())
    await s.clock.advance(0)
    expect(once.value).toBe(false)
    await s.clock.advance(1_000)
    expect(short.error).toMatchObject({ code: 'HOLDFAST_WAIT_TIMEOUT' })
    expect(String(short.error)).toContain('4 to go')
    expect(long.settled).toBe(false)
    await s.clock.advance(1_000)
    expect(long.value).toBe(false)
    expect(s.runtime.stats()).toEqual(IDLE)
  })

  it('looks again as often as pollInterval says', async () => {
    const s = scene()
    await elsewhere(s).trySetCount(1)
    void watched(s.latch().wait({ pollInterval: 100, waitTime: 10_000 }))
    await s.clock.advance(1_000)
    expect(s.looks()).toBeGreaterThan(8)
    await s.clock.advance(10_000)
  })
})

describe('trouble', () => {
  it('goes on when the engine is back', async () => {
    const s = scene()
    s.engine.direction = () => unavailable('not-applied')
    const wait = watched(s.latch().wait())
    await s.clock.advance(5_000)
    expect(wait.settled).toBe(false)
    s.engine.direction = (_operation, run) => run()
    await s.clock.advance(2_000)
    expect(wait.settled).toBe(true)
  })

  it('ends after unavailableAfter, or at its own time, and tells why', async () => {
    const s = scene({ unavailableAfter: 4_000, commandTimeout: 1_000 })
    s.engine.direction = noConnection
    const waits = [
      watched(s.latch().wait()),
      watched(s.latch().wait({ waitTime: 500 })),
      watched(s.latch().tryWait()),
    ]
    await s.clock.advance(10_000)
    for (const { error } of waits)
      expect(error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'not-applied' })
    expect(s.runtime.stats()).toEqual(IDLE)
  })

  it('a count-down whose answer is lost is counted once', async () => {
    const s = scene()
    await elsewhere(s).trySetCount(3)
    let lost = 0
    s.engine.direction = async (operation, run, passage) => {
      if (operation.op !== 'latch.countDown' || lost++ > 2) return run()
      await run()
      passage.once = false
      return unavailable('unknown')
    }
    const down = watched(s.latch().countDown())
    await s.clock.advance(2_000)
    expect(down.value).toBe(2)
    expect(await elsewhere(s).getCount()).toBe(2)
  })

  it('one that is given up is undone, unless it opened the latch', async () => {
    const s = scene()
    s.engine.direction = async (operation, run) => {
      if (operation.op !== 'latch.countDown') return run()
      await run()
      return unavailable('unknown')
    }
    await elsewhere(s).trySetCount(2)
    const first = watched(s.latch().countDown())
    await s.clock.advance(4_000)
    expect(first.error).toMatchObject({ outcome: 'unknown' })
    expect(await elsewhere(s).getCount()).toBe(2)
    await elsewhere(s).countDown()
    const last = watched(s.latch().countDown())
    await s.clock.advance(4_000)
    expect(last.error).toMatchObject({ outcome: 'unknown' })
    expect(await elsewhere(s).getCount()).toBe(0)
  })

  it.each([1, 2, 5])('one that is given up is not undone in the next round, set to %i', async (count) => {
    const s = scene()
    let cut = true
    s.engine.direction = async (operation, run) => {
      if (operation.op === 'latch.cancel') return cut ? unavailable('not-applied') : run()
      if (operation.op !== 'latch.countDown') return run()
      await run()
      return unavailable('unknown')
    }
    await elsewhere(s).trySetCount(3)
    const down = watched(s.latch().countDown())
    await s.clock.advance(4_000)
    expect(down.error).toMatchObject({ outcome: 'unknown' })
    expect(await elsewhere(s).getCount()).toBe(2)
    await elsewhere(s).countDown()
    await elsewhere(s).countDown()
    await elsewhere(s).trySetCount(count)
    cut = false
    await s.clock.advance(10_000)
    expect(s.runtime.stats()).toEqual(IDLE)
    expect(await elsewhere(s).getCount()).toBe(count)
  })

  it('all that are given up in one round are undone', async () => {
    const s = scene()
    s.engine.direction = async (operation, run) => {
      if (operation.op !== 'latch.countDown') return run()
      await run()
      return unavailable('unknown')
    }
    await elsewhere(s).trySetCount(9)
    const downs = Array.from({ length: 5 }, () => watched(s.latch().countDown()))
    await s.clock.advance(10_000)
    for (const { error } of downs) expect(error).toMatchObject({ outcome: 'unknown' })
    expect(await elsewhere(s).getCount()).toBe(9)
  })

  it('a count whose setting is given up stays, and so does a removal: both can be repeated', async () => {
    const s = scene()
    let lost = true
    s.engine.direction = async (operation, run) => {
      const reply = await run()
      const ours = operation.op === 'latch.set' || operation.op === 'latch.delete'
      return ours && lost ? unavailable('unknown') : reply
    }
    const made = watched(s.latch().trySetCount(3))
    await s.clock.advance(10_000)
    expect(made.error).toMatchObject({ outcome: 'unknown' })
    expect(await s.latch().getCount()).toBe(3)
    const removed = watched(s.latch().delete())
    await s.clock.advance(10_000)
    expect(removed.error).toMatchObject({ outcome: 'unknown' })
    expect(await s.latch().getCount()).toBe(0)
    expect(s.runtime.stats()).toEqual(IDLE)
    lost = false
    expect(await s.latch().delete()).toBe(false)
    expect([await s.latch().trySetCount(4), await s.latch().trySetCount(4)]).toEqual([true, false])
  })

  it('closing ends the waiting', async () => {
    const s = scene()
    await elsewhere(s).trySetCount(1)
    const wait = watched(s.latch().wait())
    await s.clock.advance(0)
    const closed = watched(s.runtime.close(0))
    await s.clock.advance(0)
    expect(wait.error).toMatchObject({ code: 'HOLDFAST_CLOSED' })
    expect(closed.settled).toBe(true)
    await expect(s.latch().tryWait()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  })
})
