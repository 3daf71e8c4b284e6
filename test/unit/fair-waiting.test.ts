/** How callers of a fair lock wait: when they look by themselves, and what of them is left. */
import { expect, test } from 'vitest'
import type { Operation } from '../../src/engine/operations.js'
import { HolderLock } from '../../src/locks/holder-lock.js'
import { elsewhere, stage, watched, type Stage } from '../support/staged-engine.js'

function fairLock({ runtime }: Stage): HolderLock {
  return new HolderLock(runtime, { family: 'fair', name: 'x', title: 'x' }, true)
}

const attemptsOf = (asked: readonly Operation[]) => asked.filter(({ op }) => op === 'fair.acquire').length

test('the head looks every five seconds, those behind it every ten', async () => {
  const scene = stage()
  const { clock, engine } = scene
  await elsewhere(scene).acquire({ leaseTime: 3_600_000 })
  const head = watched(fairLock(scene).acquire())
  await clock.advance(1)
  engine.asked.length = 0
  await clock.advance(60_000)
  const headAlone = attemptsOf(engine.asked)
  expect(headAlone).toBeGreaterThanOrEqual(11)
  expect(headAlone).toBeLessThanOrEqual(13)
  const behind = watched(fairLock(scene).acquire())
  await clock.advance(1)
  engine.asked.length = 0
  await clock.advance(60_000)
  expect(attemptsOf(engine.asked) - headAlone).toBeGreaterThanOrEqual(5)
  expect(attemptsOf(engine.asked) - headAlone).toBeLessThanOrEqual(7)
  expect([head.settled, behind.settled]).toEqual([false, false])
})

test('a long pollInterval does not cost a waiter its place', async () => {
  const scene = stage({ fairLockWaitTimeout: 1_000 })
  const { clock, store } = scene
  await elsewhere(scene).acquire()
  // A holder without a TTL: the place is kept for its own wait only.
  store.write('x', { ...store.read('x'), expiresAtMs: Infinity })
  watched(fairLock(scene).acquire({ pollInterval: 3_600_000 }))
  await clock.advance(1)
  const [owner] = store.read('x').fair?.owners ?? []
  for (let i = 0; i < 20; i++) {
    await clock.advance(1_000)
    const { fair } = store.read('x')
    expect(fair?.owners).toEqual([owner])
    expect(fair?.deadlines.get(owner ?? '')).toBeGreaterThan(clock.wall())
  }
})

test('behind a silent head of a free lock the pauses are bounded, and it ends with its place', async () => {
  const scene = stage()
  const { clock, engine, store } = scene
  const deadlines = new Map([['dead:1', clock.wall() + 60_000]])
  store.write('x', { ...store.read('x'), fair: { owners: ['dead:1'], deadlines } })
  const waiter = watched(fairLock(scene).acquire())
  await clock.advance(59_000)
  expect(waiter.settled).toBe(false)
  expect(attemptsOf(engine.asked)).toBeLessThanOrEqual(9)
  await clock.advance(1_100)
  expect(waiter.value).toMatchObject({ held: true })
})

test('a grant that comes too late is given back, and the next owner is told on its own channel', async () => {
  const scene = stage({ commandTimeout: 60_000 })
  const { clock, engine, store, runtime } = scene
  const lease = await elsewhere(scene).acquire()
  const waiter = watched(fairLock(scene).acquire({ leaseTime: 1_000 }))
  await clock.advance(1)
  const [first] = store.read('x').fair?.owners ?? []
  let answer = (): void => undefined
  engine.direction = async (operation, run) => {
    const reply = await run()
    if (operation.op === 'fair.acquire') await new Promise<void>((resolve) => (answer = resolve))
    return reply
  }
  await lease.release()
  // Of a plain lock on the same name: nobody tells the queue.
  await clock.advance(5_000)
  engine.direction = (_operation, run) => run()
  await clock.advance(1_500)
  const blocker = await elsewhere(scene).acquire()
  answer()
  await clock.advance(200)
  const [second] = store.read('x').fair?.owners ?? []
  expect(second).not.toBe(first)
  await clock.advance(200)
  const heard = engine.asked.length
  await fairLock(scene).forceRelease()
  await clock.advance(0)
  expect(waiter.value).toMatchObject({ owner: second })
  expect(engine.asked.length).toBeGreaterThan(heard)
  expect(await blocker.release()).toBe('stolen')
  expect(runtime.stats()).toMatchObject({ held: 1, waiting: 0, contests: 0, compensating: 0 })
})

test('one attempt asks for no place, and has none to give up', async () => {
  const scene = stage()
  const { engine } = scene
  await elsewhere(scene).acquire()
  expect(await fairLock(scene).tryAcquire()).toBeNull()
  expect(engine.asked).toMatchObject([{ op: 'fair.acquire', join: false, waitMs: 300_000 }])
})

test('whoever gives up leaves in the background, once for all its attempts', async () => {
  const scene = stage()
  const { clock, engine, store, runtime } = scene
  await elsewhere(scene).acquire()
  const waiter = watched(fairLock(scene).tryAcquire({ waitTime: 20_000 }))
  await clock.advance(20_001)
  expect(waiter).toMatchObject({ settled: true, value: null })
  const abandons = engine.asked.filter(({ op }) => op === 'fair.abandon')
  // The same wait as in its attempts; nothing of it can be on its way, so no tombstone.
  expect(abandons).toMatchObject([{ waitMs: 20_000, entombMs: 0 }])
  expect(store.read('x')).not.toHaveProperty('fair')
  expect(runtime.stats()).toMatchObject({ waiting: 0, contests: 0, compensating: 0 })
})

test('an attempt without an answer is undone with a tombstone', async () => {
  const scene = stage({ commandTimeout: 100 })
  const { clock, engine, store } = scene
  await elsewhere(scene).acquire()
  const controller = new AbortController()
  const waiter = watched(fairLock(scene).acquire({ signal: controller.signal }))
  await clock.advance(1)
  const [owner] = store.read('x').fair?.owners ?? []
  engine.direction = (operation, run, passage) => {
    if (operation.op !== 'fair.acquire') return run()
    passage.sends += 1
    return new Promise(() => undefined)
  }
  await clock.advance(5_050)
  controller.abort(new Error('gone'))
  await clock.advance(1)
  expect(waiter).toMatchObject({ settled: true, error: new Error('gone') })
  expect([...store.read('x').tombstones.keys()]).toEqual([owner])
})
