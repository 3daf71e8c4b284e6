/** One lease, from its grant to its release. */
import { expect, it } from 'vitest'
import type { Lease } from '../../src/lease/lease.js'
import { ClosedError } from '../../src/errors.js'
import { elsewhere, silence, stage, watched } from '../support/staged-engine.js'

it.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])(
  'an abort %i turns of the microtask queue after the reply: a lease, or nothing at all',
  async (turns) => {
    const scene = stage()
    const controller = new AbortController()
    scene.engine.direction = async (_operation, run) => {
      const reply = await run()
      abortLater(controller, turns)
      return reply
    }
    const call = watched<Lease>(scene.lock().acquire({ signal: controller.signal, minHold: 20_000 }))
    await scene.clock.advance(0)
    scene.engine.direction = (_operation, run) => run()
    expect(call.value === undefined).toBe(call.error === controller.signal.reason)
    expect(await elsewhere(scene).isLocked()).toBe(call.value !== undefined)
    expect(scene.runtime.stats().held).toBe(call.value === undefined ? 0 : 1)
  },
)

it('minHold leaves the key with the rest, also when the release was not answered at first', async () => {
  const scene = stage({ commandTimeout: 1_000 })
  const lease = await scene.lock().acquire({ minHold: 20_000 })
  scene.engine.direction = silence
  const release = watched(lease.release())
  await scene.clock.advance(10_000)
  expect(release.value).toBe('unknown')
  scene.engine.direction = (_operation, run) => run()
  await scene.clock.advance(5_000)
  expect(scene.runtime.stats().compensating).toBe(0)
  expect(await elsewhere(scene).isLocked()).toBe(true)
  await scene.clock.advance(5_000)
  expect(await elsewhere(scene).isLocked()).toBe(false)
})

it.each([0, 1_000])('a reply that nobody can read is an UnavailableError (waitTime %i)', async (waitTime) => {
  const scene = stage()
  const cause = new Error('a reply that it does not declare')
  scene.engine.direction = async ({ op }, run) => {
    const reply = await run()
    if (op === 'lock.acquire') throw cause
    return reply
  }
  const error: unknown = await scene
    .lock()
    .acquire({ waitTime })
    .catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown', cause })
  await scene.clock.advance(0)
  expect(await elsewhere(scene).isLocked()).toBe(false)
})

it('looks at a lock reject after close', async () => {
  const scene = stage()
  await scene.runtime.close(0)
  await expect(scene.lock().isLocked()).rejects.toBeInstanceOf(ClosedError)
  await expect(scene.lock().remainingTime()).rejects.toBeInstanceOf(ClosedError)
  await expect(scene.lock().forceRelease()).rejects.toBeInstanceOf(ClosedError)
})

function abortLater(controller: AbortController, turns: number): void {
  if (turns === 0) controller.abort(new Error('enough'))
  else
    queueMicrotask(() => {
      abortLater(controller, turns - 1)
    })
}

it('a release that is answered by another owner after the deadline tells of expiry, not of theft', async () => {
  const { clock, lock, engine } = stage()
  const lease = await lock().acquire({ leaseTime: 1_000 })
  engine.direction = async ({ op }, run, passage) => {
    if (op !== 'lock.release') return run()
    // It was sent in time, and held up on its way.
    Object.assign(passage, { sends: 1, once: true, firstSentAtMs: clock.now(), lastSentAtMs: clock.now() })
    clock.block(1_500)
    return Promise.resolve({ outcome: 'taken' })
  }
  expect(await lease.release()).toBe('expired')
})
