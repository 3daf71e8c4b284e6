/** Closing, at every bad moment. */
import { expect, it } from 'vitest'
import { ClosedError, LeaseLostError } from '../../src/errors.js'
import { elsewhere, silence, stage, watched, type Stage } from '../support/staged-engine.js'

const IDLE = { held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 }

it('ends waiters, and lets held work go on renewed until it ends', async () => {
  const scene = stage()
  const work = pending()
  const using = watched(scene.lock().using(() => work.promise))
  await scene.clock.advance(1)
  const waiter = watched(scene.lock().acquire())
  const closing = watched(scene.runtime.close(60_000))
  await scene.clock.advance(50_000)
  expect(waiter.error).toBeInstanceOf(ClosedError)
  expect(closing.settled).toBe(false)
  expect(await elsewhere(scene).isLocked()).toBe(true)
  work.end('done')
  await scene.clock.advance(0)
  expect(using).toEqual({ settled: true, value: 'done' })
  expect(closing.settled).toBe(true)
  expect(scene.runtime.stats()).toEqual(IDLE)
})

it('does not interrupt a nested acquire of running work', async () => {
  const scene = stage()
  answerLate(scene, 50)
  const using = watched(scene.lock().using(() => scene.lock().using(() => 'inner')))
  await scene.clock.advance(60)
  expect(scene.runtime.stats().waiting).toBe(1)
  const closing = watched(scene.runtime.close(10_000))
  await scene.clock.advance(1_000)
  expect(using).toEqual({ settled: true, value: 'inner' })
  expect(closing.settled).toBe(true)
})

it('a nested acquire that waits for its turn does not compete when its parent ends during the drain', async () => {
  const scene = stage()
  const parent = pending()
  const child = pending()
  let waiting: ReturnType<typeof watched> | undefined
  const using = watched(
    scene.lock().using(async () => {
      void scene.lock().using(() => child.promise)
      await scene.clock.advance(1)
      waiting = watched(scene.lock().acquire())
      await parent.promise
    }),
  )
  await scene.clock.advance(2)
  const closing = watched(scene.runtime.close(5_000))
  parent.end('done')
  await scene.clock.advance(1)
  expect(using.settled).toBe(true)
  expect(waiting?.error).toBeInstanceOf(ClosedError)
  child.end('done')
  await scene.clock.advance(10_000)
  expect(closing.settled).toBe(true)
  expect(scene.runtime.stats()).toEqual(IDLE)
  expect(await elsewhere(scene).isLocked()).toBe(false)
})

it('a nested acquire of running work that waits for its turn gets ClosedError when the drain is over', async () => {
  const scene = stage()
  const work = pending()
  let waiting: ReturnType<typeof watched> | undefined
  const using = watched(
    scene.lock().using(async () => {
      const inner = scene.lock().using(() => work.promise)
      await Promise.resolve()
      waiting = watched(scene.lock().acquire())
      await inner
    }),
  )
  await scene.clock.advance(1)
  const closing = watched(scene.runtime.close(1_000))
  await scene.clock.advance(500)
  expect(waiting?.settled).toBe(false)
  await scene.clock.advance(5_000)
  expect(waiting?.error).toBeInstanceOf(ClosedError)
  expect(closing.settled).toBe(true)
  expect(await elsewhere(scene).isLocked()).toBe(true)
  work.end('done')
  await scene.clock.advance(0)
  expect(using.error).toBeInstanceOf(LeaseLostError)
  expect(using.error).toMatchObject({ reason: 'closed' })
})

it.each([0, 10_000])('undoes an acquire that was under way (drain %i)', async (drain) => {
  const scene = stage()
  let applied = 0
  // The grant is applied, but its answer is lost.
  scene.engine.direction = async ({ op }, run, passage) => {
    const reply = await run()
    if (op !== 'lock.acquire') return reply
    applied += 1
    return silence({ op: 'lock.inspect', name: 'x' }, undefined, passage)
  }
  const call = watched(scene.lock().acquire())
  await scene.clock.advance(1)
  const closing = watched(scene.runtime.close(drain))
  await scene.clock.advance(10_000)
  expect(call.error).toBeInstanceOf(ClosedError)
  expect(applied).toBe(1)
  expect(closing.settled).toBe(true)
  expect(await elsewhere(scene).isLocked()).toBe(false)
})

it('releases bare leases after the drain, and aborts their signals first', async () => {
  const scene = stage()
  const lease = await scene.lock().acquire()
  const { signal } = lease
  const closing = watched(scene.runtime.close(1_000))
  await scene.clock.advance(999)
  expect([signal.aborted, closing.settled]).toEqual([false, false])
  await scene.clock.advance(1)
  expect(signal.reason).toMatchObject({ reason: 'closed' })
  expect(closing.settled).toBe(true)
  expect(await elsewhere(scene).isLocked()).toBe(false)
  await expect(scene.lock().acquire()).rejects.toBeInstanceOf(ClosedError)
})

it('leaves nothing in the async contexts of the process', async () => {
  const scene = stage()
  await scene.lock().acquire()
  expect(scene.runtime.scope.current).toBeDefined()
  const closing = scene.runtime.close(0)
  await scene.clock.advance(0)
  await closing
  expect(scene.runtime.scope.current).toBeUndefined()
  await expect(scene.lock().acquire()).rejects.toBeInstanceOf(ClosedError)
  expect(scene.runtime.scope.current).toBeUndefined()
})

function pending(): { promise: Promise<string>; end: (value: string) => void } {
  let end: (value: string) => void = () => undefined
  const promise = new Promise<string>((resolve) => {
    end = resolve
  })
  return { promise, end: (value) => end(value) }
}

function answerLate({ engine, clock }: Stage, ms: number): void {
  engine.direction = async (_operation, run) => {
    const reply = await run()
    await new Promise<void>((resolve) => clock.setTimer(resolve, ms))
    return reply
  }
}
