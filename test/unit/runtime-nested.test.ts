/** Nested holds: counts in the engine, turns, and the end of a parent at a bad time. */
import { expect, it } from 'vitest'
import { NotHeldError } from '../../src/errors.js'
import type { Operation } from '../../src/engine/operations.js'
import type { Lease } from '../../src/lease/lease.js'
import { elsewhere, noConnection, silence, stage, watched, type Stage } from '../support/staged-engine.js'

it('a nested hold that was entered without a connection does not count down what it never counted up', async () => {
  const scene = stage({ commandTimeout: 1_000 })
  const parent = await scene.lock().acquire()
  scene.engine.direction = noConnection
  const entering = scene.lock().acquire({ within: parent })
  await scene.clock.advance(1_000)
  const nested = await entering
  scene.engine.direction = (_operation, run) => run()
  expect(await nested.release()).toBe('still-held')
  expect(await elsewhere(scene).holdCount()).toBe(1)
  expect(await parent.release()).toBe('released')
})

it('a frozen count never creates the key anew', async () => {
  const scene = stage({ commandTimeout: 1_000 })
  const parent = await scene.lock().acquire()
  scene.engine.direction = silence
  const entering = scene.lock().acquire({ within: parent })
  await scene.clock.advance(1_000)
  await (await entering).release()
  scene.engine.direction = (_operation, run) => run()
  await elsewhere(scene).forceRelease()
  const again = watched(scene.lock().acquire({ within: parent, leaseTime: 5_000 }))
  await scene.clock.advance(0)
  expect(again.error).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
  expect(await elsewhere(scene).isLocked()).toBe(false)
})

it('a detached nested acquire whose parent is released under way competes like anyone', async () => {
  const scene = stage()
  delayed(scene, 'lock.acquire', 10)
  const detached: { call?: ReturnType<typeof watched<Lease>> } = {}
  const outer = scene.lock().using(() => {
    detached.call = watched(scene.lock().acquire())
  })
  await scene.clock.advance(100)
  await outer
  expect(detached.call?.error).toBeUndefined()
  expect(detached.call?.value?.held).toBe(true)
  expect(await elsewhere(scene).holdCount()).toBe(1)
})

it('a named lease that is released under way is not entered', async () => {
  const scene = stage()
  const parent = await scene.lock().acquire()
  delayed(scene, 'lock.acquire', 10)
  const call = watched(scene.lock().acquire({ within: parent }))
  const release = parent.release()
  await scene.clock.advance(100)
  expect(call.error).toBeInstanceOf(NotHeldError)
  expect(await release).toBe('released')
})

it('the count in the engine is that of the leases when a parent of several is released under way', async () => {
  const scene = stage()
  const parent = await scene.lock().acquire()
  const child = await scene.lock().acquire({ within: parent })
  delayed(scene, 'lock.acquire', 10)
  const grandchild = watched(scene.lock().acquire({ within: child }))
  void child.release()
  await scene.clock.advance(100)
  expect(grandchild.error).toBeInstanceOf(NotHeldError)
  expect(await elsewhere(scene).holdCount()).toBe(parent.holdCount)
})

it('a lease of another Holdfast cannot be entered', async () => {
  const scene = stage()
  const other = stage()
  const lease = await other.lock().acquire()
  await expect(scene.lock().acquire({ within: lease })).rejects.toThrow(TypeError)
  expect(lease.held).toBe(true)
})

it.each(['waitTime', 'signal'])('%s holds for a nested acquire behind a command that hangs', async (how) => {
  const scene = stage({ commandTimeout: 3_000 })
  const parent = await scene.lock().acquire()
  scene.engine.direction = silence
  const extension = watched(parent.extend(60_000))
  const controller = new AbortController()
  const options = how === 'waitTime' ? { waitTime: 200 } : { signal: controller.signal }
  const call: { value?: Lease | null; error?: unknown; settled: boolean } = watched(
    scene.lock().tryAcquire({ waitTime: 60_000, within: parent, ...options }),
  )
  await scene.clock.advance(200)
  controller.abort(new Error('enough'))
  await scene.clock.advance(300)
  expect(call.settled).toBe(true)
  expect(call.error).toEqual(how === 'waitTime' ? undefined : new Error('enough'))
  await scene.clock.advance(3_000)
  expect(extension.settled).toBe(true)
  scene.engine.direction = (_operation, run) => run()
  await call.value?.release()
  const next = watched(scene.lock().tryAcquire({ within: parent }))
  await scene.clock.advance(0)
  expect(next.value).toMatchObject({ held: true })
})

/** Executes operations of one kind at once, but answers them later. */
function delayed({ engine, clock }: Stage, op: Operation['op'], ms: number): void {
  engine.direction = async (operation, run) => {
    const reply = await run()
    if (operation.op === op) await new Promise<void>((resolve) => clock.setTimer(resolve, ms))
    return reply
  }
}
