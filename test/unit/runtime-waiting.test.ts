/** Waiting: the queue of one process for one lock. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it } from 'vitest'
import { UnavailableError } from '../../src/errors.js'
import { elsewhere, silence, stage, watched, type Stage } from '../support/staged-engine.js'

it('short waiters that come and go still look at the expiry of a dead holder', async () => {
  const scene = stage()
  await elsewhere(scene).acquire({ leaseTime: 2_000 })
  const lock = scene.lock()
  const calls: ReturnType<typeof watched>[] = []
  for (let i = 0; i < 10; i++) {
    calls.push(watched(lock.tryAcquire({ waitTime: 900 })))
    await scene.clock.advance(400)
  }
  expect(calls.some((call) => call.value != null)).toBe(true)
})

it('an abort with any reason rejects with that reason, asleep too', async () => {
  const scene = stage()
  await elsewhere(scene).acquire()
  const controller = new AbortController()
  const call = watched(scene.lock().acquire({ signal: controller.signal }))
  await scene.clock.advance(100)
  controller.abort('enough')
  await scene.clock.advance(0)
  expect(call.error).toBe('enough')
})

it('tells every waiter without a time limit when the engine was away long enough', async () => {
  const scene = stage({ unavailableAfter: 5_000, commandTimeout: 1_000 })
  scene.engine.direction = silence
  const calls = Array.from({ length: 20 }, () => watched(scene.lock().acquire()))
  await scene.clock.advance(8_000)
  expect(calls.filter((call) => call.error instanceof UnavailableError)).toHaveLength(20)
})

it('a newcomer tries for the whole of unavailableAfter, whatever came before it', async () => {
  const scene = stage({ unavailableAfter: 5_000, commandTimeout: 1_000 })
  scene.engine.direction = silence
  const first = watched(scene.lock().acquire())
  await scene.clock.advance(4_000)
  const second = watched(scene.lock().acquire())
  await scene.clock.advance(3_500)
  expect([first.settled, second.settled]).toEqual([true, false])
  await scene.clock.advance(4_000)
  expect(second.error).toBeInstanceOf(UnavailableError)
})

it('an attempt that the end of waitTime cuts short does not count as trouble', async () => {
  const scene = stage()
  const lease = await scene.lock().acquire()
  const head = watched(scene.lock().tryAcquire({ waitTime: 500 }))
  const next = watched(scene.lock().tryAcquire({ waitTime: 1_000 }))
  await scene.clock.advance(990)
  scene.engine.direction = async ({ op }, run) => {
    if (op === 'lock.acquire') await later(scene, 60)
    return run()
  }
  await lease.release()
  await scene.clock.advance(100)
  expect([head, next]).toEqual([
    { settled: true, value: null },
    { settled: true, value: null },
  ])
})

it('tells once of each call that it waits', async () => {
  const scene = stage()
  const told: unknown[] = []
  const hear = (event: unknown): unknown => told.push(event)
  subscribe('holdfast:acquire:wait', hear)
  const lease = await scene.lock().acquire()
  const calls = [watched(scene.lock().tryAcquire({ waitTime: 100 })), watched(scene.lock().acquire())]
  await scene.clock.advance(20_000)
  unsubscribe('holdfast:acquire:wait', hear)
  expect(told).toEqual([
    { lock: 'x', holder: undefined, holderTtl: undefined },
    { lock: 'x', holder: lease.owner, holderTtl: 30_000 },
  ])
  expect(calls.map((call) => call.settled)).toEqual([true, false])
})

function later({ clock }: Stage, ms: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(resolve, ms))
}

it.each([0, 3_000])(
  'grants that arrive too late do not become a hot loop (waitTime %i)',
  async (waitTime) => {
    const scene = stage()
    scene.engine.direction = async (_operation, run) => {
      const reply = await run()
      await later(scene, 2)
      return reply
    }
    const call = watched(scene.lock().tryAcquire({ leaseTime: 2, waitTime }))
    await scene.clock.advance(3_200)
    expect(call).toEqual({ settled: true, value: null })
    expect(scene.engine.asked.filter(({ op }) => op === 'lock.acquire').length).toBeLessThan(100)
    expect(scene.runtime.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
  },
)
