/** Tokens when answers are missing. */
import { expect, it } from 'vitest'
import { TokenLock } from '../../src/locks/fenced-lock.js'
import {
  noConnection,
  silence,
  stage,
  watched,
  type Direction,
  type Stage,
} from '../support/staged-engine.js'

function fencedOn({ runtime }: Stage): TokenLock {
  return new TokenLock(runtime, { family: 'fenced', name: 'x', title: 'x' })
}

/** Executes it, and loses the answer. */
const applied: Direction = async (operation, run, passage) => {
  await run()
  return silence(operation, run, passage)
}
const plain: Direction = (_operation, run) => run()

it('an acquire whose answer was lost is asked again by the same owner, and has the token of the last answer', async () => {
  const scene = stage({ commandTimeout: 1_000 })
  const lock = fencedOn(scene)
  scene.engine.direction = applied
  const call = watched(lock.acquire())
  await scene.clock.advance(1_000)
  expect(scene.store.read('x').token).toBe(1)
  scene.engine.direction = plain
  await scene.clock.advance(1_000)
  expect(call.value?.held).toBe(true)
  expect(call.value?.token).toBe(scene.store.read('x').token)
  expect(call.value?.token).toBeGreaterThan(1)
})

it('a nested use that gets no answer goes on with the token that its owner has', async () => {
  const scene = stage({ commandTimeout: 1_000 })
  const lock = fencedOn(scene)
  const outer = await lock.acquire()
  scene.engine.direction = noConnection
  const nested = watched(lock.acquire({ within: outer }))
  await scene.clock.advance(1_000)
  expect([nested.value?.held, nested.value?.token, outer.token]).toEqual([true, 1, 1])
})

it('a nested use inside a plain lease needs an answer: without one there is no token to give', async () => {
  const scene = stage({ commandTimeout: 1_000 })
  const outer = await scene.lock().acquire()
  scene.engine.direction = noConnection
  const nested = watched(fencedOn(scene).acquire({ within: outer }))
  await scene.clock.advance(1_000)
  expect(nested.error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'not-applied' })
  expect([outer.held, outer.holdCount]).toEqual([true, 1])
})

it('and asks even where the count is left alone after a lost answer', async () => {
  const scene = stage({ commandTimeout: 1_000 })
  const outer = await scene.lock().acquire()
  scene.engine.direction = applied
  const first = watched(fencedOn(scene).acquire({ within: outer }))
  await scene.clock.advance(1_000)
  expect(first.error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' })
  scene.engine.direction = plain
  const second = watched(fencedOn(scene).acquire({ within: outer }))
  await scene.clock.advance(0)
  // The lost one took 1.
  expect(second.value?.token).toBe(2)
  await second.value?.release()
  expect(await outer.release()).toBe('released')
  expect(scene.store.read('x').value).toBeUndefined()
})

it('a token that cannot grow fails the acquire, and leaves no hold', async () => {
  const scene = stage()
  scene.store.write('x', { ...scene.store.read('x'), token: Number.MAX_SAFE_INTEGER })
  const lock = fencedOn(scene)
  const wrong = { code: 'HOLDFAST_WRONG_TYPE', lock: 'x', key: 'redisson_lock_token:{x}' }
  await expect(lock.acquire()).rejects.toMatchObject(wrong)
  expect(await lock.isLocked()).toBe(false)
  expect(await lock.token()).toBe(Number.MAX_SAFE_INTEGER)
  const plainLease = await scene.lock().acquire()
  await expect(lock.acquire({ within: plainLease })).rejects.toMatchObject(wrong)
  expect([plainLease.held, plainLease.holdCount]).toEqual([true, 1])
  scene.store.write('x', { ...scene.store.read('x'), token: 'foreign' })
  await expect(lock.token()).rejects.toMatchObject(wrong)
})
