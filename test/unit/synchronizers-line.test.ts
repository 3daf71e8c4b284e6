/** Waiting for permits in one process: who tries when, and what that costs. */
import { describe, expect, it } from 'vitest'
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { Runtime } from '../../src/lease/runtime.js'
import { resolveHoldfastOptions, type HoldfastOptions } from '../../src/options.js'
import { passingAfter } from '../../src/synchronizers/passing.js'
import { CountedSemaphore, type SemaphoreOptions } from '../../src/synchronizers/semaphore.js'
import { noConnection, silence, stage, unavailable, watched, type Stage } from '../support/staged-engine.js'

const IDLE = { held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 }

function scene(options: HoldfastOptions = {}) {
  const staged = stage(options)
  const semaphore = (permits?: number) =>
    new CountedSemaphore(staged.runtime, { name: 'x', title: 'x' }, { permits })
  return { ...staged, semaphore, count: () => countOf(staged) }
}

/** The same semaphore in another process. */
function elsewhere({ store, clock }: Stage, options: SemaphoreOptions = {}) {
  const runtime = new Runtime(new MemoryEngine(store), resolveHoldfastOptions({ clock }))
  return new CountedSemaphore(runtime, { name: 'x', title: 'x' }, options)
}

function countOf({ store }: Stage): number | undefined {
  const { value } = store.read('x')
  return value?.kind === 'count' ? value.count : undefined
}

const acquires = ({ engine }: Stage) => engine.asked.filter(({ op }) => op === 'semaphore.acquire').length

describe('free permits', () => {
  it('are asked for by all at once, not one after the other', async () => {
    const s = scene()
    // No answer comes before all have asked.
    let answer = (): void => undefined
    const all = new Promise<void>((resolve) => (answer = resolve))
    s.engine.direction = async (operation, run) => {
      if (operation.op === 'semaphore.acquire') await all
      return run()
    }
    const calls = Array.from({ length: 10 }, () => watched(s.semaphore(10).acquire()))
    await s.clock.advance(0)
    expect(acquires(s)).toBe(10)
    answer()
    await s.clock.advance(0)
    expect(calls.every(({ value }) => value !== undefined)).toBe(true)
    expect(s.count()).toBe(0)
  })

  it('many that become free at once go out together after one look', async () => {
    const s = scene()
    await elsewhere(s).trySet(0)
    const calls = Array.from({ length: 8 }, () => watched(s.semaphore().acquire()))
    await s.clock.advance(100)
    s.engine.asked.length = 0
    const waves: number[] = []
    s.engine.direction = async (operation, run) => {
      if (operation.op !== 'semaphore.acquire') return run()
      waves.push(s.clock.now())
      await new Promise<void>((resolve) => s.clock.setTimer(resolve, 5))
      return run()
    }
    await elsewhere(s).add(8)
    await s.clock.advance(20)
    expect(calls.every(({ value }) => value !== undefined)).toBe(true)
    // The first one looks; then it is known that the others fit.
    expect(new Set(waves).size).toBe(2)
    expect(waves.length).toBe(8)
  })

  it('five hundred waiters ask hardly more often than one', async () => {
    const s = scene()
    const taken = await elsewhere(s, { permits: 1 }).acquire()
    const calls = Array.from({ length: 500 }, () => watched(s.semaphore().using(() => undefined)))
    await s.clock.advance(60_000)
    // So many at once, before anything is known; then one each five seconds.
    expect(acquires(s)).toBeLessThan(64 + 20)
    expect(s.runtime.stats()).toMatchObject({ waiting: 500, contests: 1 })
    await taken.release()
    await s.clock.advance(0)
    expect(calls.every(({ settled }) => settled)).toBe(true)
    expect(s.runtime.stats()).toEqual(IDLE)
    expect(s.count()).toBe(1)
  })
})

describe('large and small requests', () => {
  it('a smaller one passes a larger one that does not fit: no cross-deadlock', async () => {
    const s = scene()
    const semaphore = s.semaphore(2)
    const held = await semaphore.acquire()
    const large = watched(semaphore.acquire(2))
    await s.clock.advance(0)
    // Its caller holds what the large one waits for.
    const small = watched(semaphore.acquire())
    await s.clock.advance(0)
    expect([large.settled, small.settled]).toEqual([false, true])
    await held.release()
    await small.value?.release()
    await s.clock.advance(0)
    expect(large.value).toMatchObject({ permits: 2 })
  })

  it('a release wakes a waiter for several, whether they come at once or in steps', async () => {
    const s = scene()
    const [one, two] = await Promise.all([elsewhere(s, { permits: 2 }).acquire(), elsewhere(s).acquire()])
    const large = watched(s.semaphore().acquire(2))
    await s.clock.advance(100)
    await one.release()
    await s.clock.advance(0)
    expect(large.settled).toBe(false)
    await two.release()
    await s.clock.advance(0)
    expect(large.value).toMatchObject({ permits: 2 })
  })

  it('a stream of small ones does not starve the large one of the same process', async () => {
    const s = scene()
    const semaphore = s.semaphore(3)
    const large = { at: -1 }
    let going = true
    // One after the other, so that never more than one permit comes free at once.
    const stream = async (i: number): Promise<void> => {
      await new Promise<void>((resolve) => s.clock.setTimer(resolve, i * 75))
      while (going)
        await semaphore.using(() => new Promise<void>((resolve) => s.clock.setTimer(resolve, 300)))
    }
    const streams = [stream(0), stream(1), stream(2), stream(3)]
    await s.clock.advance(350)
    const big = semaphore.using(3, () => {
      large.at = s.clock.now()
    })
    await s.clock.advance(30_000)
    // While the stream goes on, not after it.
    expect(large.at).toBeGreaterThan(0)
    going = false
    await s.clock.advance(1_000)
    await Promise.all([big, ...streams])
    expect(s.runtime.stats()).toEqual(IDLE)
  })

  it('passing is open first, then shut for ever longer, up to a minute', () => {
    const shut: number[] = []
    for (let ms = 0; ms < 400_000;) {
      const { open, restMs } = passingAfter(ms)
      if (!open) shut.push(restMs)
      ms += restMs
    }
    expect(passingAfter(0)).toEqual({ open: true, restMs: 1_000 })
    expect(shut.slice(0, 8)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
  })
})

describe('messages', () => {
  it('one that comes while an attempt is under way is not lost', async () => {
    const s = scene()
    const taken = await elsewhere(s, { permits: 1 }).acquire()
    const waiter = watched(s.semaphore().acquire())
    await s.clock.advance(0)
    let answer = (): void => undefined
    s.engine.direction = async (operation, run) => {
      const reply = await run()
      if (operation.op === 'semaphore.acquire') await new Promise<void>((resolve) => (answer = resolve))
      return reply
    }
    await s.clock.advance(5_000)
    await taken.release()
    await s.clock.advance(0)
    expect(waiter.settled).toBe(false)
    s.engine.direction = (_operation, run) => run()
    answer()
    await s.clock.advance(0)
    expect(waiter.value).toBeDefined()
  })

  it('one that is lost costs no more than five seconds', async () => {
    const s = scene()
    const taken = await elsewhere(s, { permits: 1 }).acquire()
    const waiter = watched(s.semaphore().acquire())
    await s.clock.advance(100)
    await taken.release()
    // As if nobody had been told.
    const state = s.store.read('x')
    s.store.write('x', { ...state, value: { kind: 'count', count: 0 } })
    await s.clock.advance(0)
    s.store.write('x', { ...state, value: { kind: 'count', count: 1 } })
    await s.clock.advance(5_000)
    expect(waiter.value).toBeDefined()
  })

  it('the hint of a waiter that leaves meanwhile goes to the next one', async () => {
    const s = scene()
    const taken = await elsewhere(s, { permits: 1 }).acquire()
    const abort = new AbortController()
    const first = watched(s.semaphore().acquire(1, { signal: abort.signal }))
    const second = watched(s.semaphore().acquire())
    await s.clock.advance(100)
    s.engine.direction = (operation, run, passage) =>
      operation.op === 'semaphore.acquire' ? silence(operation, run, passage) : run()
    await taken.release()
    await s.clock.advance(0)
    s.engine.direction = (_operation, run) => run()
    abort.abort(new Error('enough'))
    await s.clock.advance(0)
    expect(first.error).toMatchObject({ message: 'enough' })
    expect(second.value).toBeDefined()
  })
})

describe('trouble', () => {
  it('a reply that is lost does not take permits twice', async () => {
    const s = scene()
    let lost = 0
    s.engine.direction = async (operation, run, passage) => {
      if (operation.op !== 'semaphore.acquire' || lost++ > 0) return run()
      await run()
      passage.once = false
      return unavailable('unknown')
    }
    const call = watched(s.semaphore(3).acquire(2))
    await s.clock.advance(200)
    expect(call.value).toMatchObject({ permits: 2 })
    expect(s.count()).toBe(1)
    expect(s.runtime.stats().compensating).toBe(0)
  })

  it('a call that gives up is undone once, and its late copy takes nothing', async () => {
    const s = scene()
    const late: (() => Promise<unknown>)[] = []
    s.engine.direction = (operation, run, passage) => {
      if (operation.op !== 'semaphore.acquire') return run()
      late.push(run)
      return silence(operation, run, passage)
    }
    const call = watched(s.semaphore(3).tryAcquire())
    await s.clock.advance(3_000)
    expect(call.error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' })
    await s.clock.advance(100)
    for (const copy of late) expect(await copy()).toEqual({ outcome: 'dead' })
    expect(s.count()).toBeUndefined()
    expect(s.runtime.stats()).toEqual(IDLE)
  })

  it('a copy that arrives behind a busy answer is found by the next look, or undone at the end', async () => {
    const s = scene()
    const taken = await elsewhere(s, { permits: 1 }).acquire()
    const late: (() => Promise<unknown>)[] = []
    s.engine.direction = async (operation, run, passage) => {
      const reply = await run()
      if (operation.op !== 'semaphore.acquire') return reply
      // As over a link that cannot tell how often it has sent.
      passage.once = false
      late.push(run)
      return reply
    }
    const [patient, brief] = [watched(s.semaphore().acquire()), watched(s.semaphore().tryAcquire())]
    await s.clock.advance(0)
    expect(brief.value).toBeNull()
    await s.clock.advance(1_000)
    s.engine.direction = (_operation, run) => run()
    await taken.release()
    await s.clock.advance(0)
    expect(patient.value).toBeDefined()
    for (const copy of late) await copy()
    expect(s.count()).toBe(0)
    await patient.value?.release()
    for (const copy of late) await copy()
    expect(s.count()).toBe(1)
    expect(s.runtime.stats()).toEqual(IDLE)
  })

  it('is sent again only as long as the note of the first copy surely lasts', async () => {
    const s = scene({ unavailableAfter: Infinity })
    await elsewhere(s).trySet(5)
    const sent: number[] = []
    s.engine.direction = async (operation, run, passage) => {
      if (operation.op !== 'semaphore.acquire') return run()
      sent.push(s.clock.now())
      passage.sends += 1
      passage.firstSentAtMs = s.clock.now()
      return unavailable('unknown')
    }
    const call = watched(s.semaphore().acquire())
    await s.clock.advance(120_000)
    expect(call.error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' })
    expect(sent.at(-1)).toBeGreaterThan(20_000)
    expect(sent.at(-1)).toBeLessThanOrEqual(30_000)
  })

  it('without a connection it waits for one, for unavailableAfter', async () => {
    const s = scene({ unavailableAfter: 5_000, commandTimeout: 1_000 })
    s.engine.direction = noConnection
    const [patient, brief] = [
      watched(s.semaphore(1).acquire()),
      watched(s.semaphore(1).acquire(1, { waitTime: 500 })),
    ]
    await s.clock.advance(700)
    expect(brief.error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'not-applied' })
    await s.clock.advance(7_000)
    expect(patient.error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'not-applied' })
    expect(s.runtime.stats()).toEqual(IDLE)
  })

  it('an engine that comes back serves those who waited', async () => {
    const s = scene()
    s.engine.direction = () => unavailable('not-applied')
    const calls = Array.from({ length: 20 }, () => watched(s.semaphore(20).acquire()))
    await s.clock.advance(3_000)
    s.engine.direction = (_operation, run) => run()
    await s.clock.advance(2_000)
    expect(calls.every(({ value }) => value !== undefined)).toBe(true)
    expect(s.count()).toBe(0)
  })
})

describe('giving back', () => {
  it('is done once however often the handle is asked, and in the background if there is no answer', async () => {
    const s = scene()
    const grant = await s.semaphore(3).acquire(2)
    let lost = 0
    s.engine.direction = async (operation, run, passage) => {
      if (operation.op !== 'semaphore.end') return run()
      if (lost++ > 80) return run()
      passage.sends += 1
      passage.firstSentAtMs = s.clock.now()
      if (lost === 1) await run()
      return unavailable('unknown')
    }
    const ends = [watched(grant.release()), watched(grant.release())]
    await s.clock.advance(3_000)
    expect(ends.map(({ value }) => value)).toEqual(['unknown', 'unknown'])
    expect(grant.released).toBe(true)
    await s.clock.advance(60_000)
    // The note of the first copy would be gone: nobody asks again.
    expect(s.engine.asked.filter(({ op }) => op === 'semaphore.end').length).toBeLessThan(60)
    expect(s.count()).toBe(3)
    expect(s.runtime.stats()).toEqual(IDLE)
  })

  it('what was never sent is sent when there is a connection', async () => {
    const s = scene()
    const grant = await s.semaphore(3).acquire(2)
    s.engine.direction = noConnection
    const end = watched(grant.release())
    await s.clock.advance(3_000)
    expect(end.value).toBe('unknown')
    await s.clock.advance(120_000)
    s.engine.direction = (_operation, run) => run()
    await s.clock.advance(10_000)
    expect(s.count()).toBe(3)
  })

  it('a bare release without an answer is undone: it may be done again', async () => {
    const s = scene()
    await elsewhere(s).trySet(1)
    s.engine.direction = async (operation, run, passage) => {
      if (operation.op !== 'semaphore.add') return run()
      passage.sends += 1
      await run()
      return unavailable('unknown')
    }
    const release = watched(s.semaphore().release(2))
    await s.clock.advance(5_000)
    expect(release.error).toMatchObject({ outcome: 'unknown' })
    expect(s.count()).toBe(1)
  })

  it('closing waits for grants, and gives back those that nobody works under', async () => {
    const s = scene()
    const semaphore = s.semaphore(3)
    await semaphore.acquire()
    let done = (): void => undefined
    const work = semaphore.using(() => new Promise<void>((resolve) => (done = resolve)))
    await s.clock.advance(0)
    expect(s.runtime.stats().held).toBe(2)
    const closed = watched(s.runtime.close(1_000))
    await s.clock.advance(500)
    expect(closed.settled).toBe(false)
    await s.clock.advance(500)
    expect(s.count()).toBe(2)
    done()
    await s.clock.advance(5_000)
    await work
    expect(closed.settled).toBe(true)
    expect(s.count()).toBe(3)
    await expect(semaphore.acquire()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    await expect(semaphore.available()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  })
})
