/** What the async tree remembers of its leases, and what it says about them. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, expect, it } from 'vitest'
import type { Lease } from '../../src/lease/lease.js'
import type { ScopeNode } from '../../src/lease/scope.js'
import { elsewhere, stage, watched } from '../support/staged-engine.js'

const warnings: string[] = []
const onWarning = (warning: Error & { code?: string }): void => {
  warnings.push(warning.code ?? warning.name)
}
process.on('warning', onWarning)
afterEach(() => {
  warnings.length = 0
})

it('the path of a loop of failing attempts does not grow', async () => {
  const scene = stage()
  await elsewhere(scene).acquire()
  for (let i = 0; i < 30; i++) {
    expect(await scene.lock().tryAcquire()).toBeNull()
    await scene
      .lock()
      .tryAcquire({ signal: AbortSignal.abort() })
      .catch(() => undefined)
    await scene.clock.advance(2)
  }
  expect(depth(scene.runtime.scope.current)).toBeLessThan(3)
})

it('the path of a walk hand over hand does not grow', async () => {
  const scene = stage()
  const window: Lease[] = []
  for (let i = 0; i < 30; i++) {
    if (window.length === 3) await window.shift()?.release()
    window.push(await scene.lock(`step ${i}`).acquire())
    await scene.clock.advance(2)
  }
  expect(depth(scene.runtime.scope.current)).toBeLessThan(6)
})

it('a call that waits for a bare lease of its own tree is told so, and warned about while that lasts', async () => {
  const scene = stage({ lockWatchdogTimeout: 3_000 })
  const diagnoses: string[] = []
  const hear = (event: unknown): void => {
    diagnoses.push((event as { kind: string }).kind)
  }
  subscribe('holdfast:diagnosis', hear)
  const lease = await scene.lock().acquire()
  await scene.clock.advance(2)
  const call = watched(scene.lock().acquire())
  await scene.clock.advance(3_500)
  unsubscribe('holdfast:diagnosis', hear)
  expect(diagnoses).toEqual(['self-wait'])
  expect(warnings).toEqual(['HOLDFAST_SELF_WAIT'])
  await lease.release()
  await scene.clock.advance(10)
  expect(call.settled).toBe(true)
})

it('a call that goes on to wait for somebody else is not warned about', async () => {
  const scene = stage({ lockWatchdogTimeout: 3_000 })
  const lease = await scene.lock().acquire()
  await scene.clock.advance(2)
  const call = watched(scene.lock().acquire())
  scene.clock.block(1)
  await lease.release()
  await elsewhere(scene).acquire()
  await scene.clock.advance(4_000)
  expect(call.settled).toBe(false)
  expect(warnings).toEqual([])
})

it('using tells of a loss once, by its error', async () => {
  const scene = stage({ lockWatchdogTimeout: 3_000 })
  const using = scene.lock().using(() => {
    scene.clock.block(4_000)
    return 'value'
  })
  await expect(using).rejects.toMatchObject({ code: 'HOLDFAST_LEASE_LOST', value: 'value' })
  await scene.clock.advance(1)
  expect(warnings).toEqual([])
})

it('a lost lease that nobody looked at is warned about once', async () => {
  const scene = stage({ lockWatchdogTimeout: 3_000 })
  await scene.lock().acquire({ leaseTime: 1_000 })
  await scene.clock.advance(5_000)
  expect(warnings).toEqual(['HOLDFAST_LEASE_LOST'])
})

function depth(node: ScopeNode | undefined): number {
  return node === undefined ? 0 : 1 + depth(node.parent)
}

it('each of many bare leases taken in one millisecond is remembered, with or without its place', async () => {
  const scene = stage({ lockWatchdogTimeout: 3_000 })
  const told: string[] = []
  const hear = (event: unknown): void => {
    const { kind, lock } = event as { kind: string; lock: string }
    if (kind === 'self-wait') told.push(lock)
  }
  subscribe('holdfast:diagnosis', hear)
  const names = ['one', 'two', 'three']
  const waits = await Promise.all(
    names.map(async (name) => {
      await scene.lock(name).acquire()
      const controller = new AbortController()
      const wait = scene.lock(name).acquire({ signal: controller.signal })
      return { wait, controller }
    }),
  )
  for (const { wait, controller } of waits) {
    controller.abort(new Error('enough'))
    await expect(wait).rejects.toThrow('enough')
  }
  unsubscribe('holdfast:diagnosis', hear)
  expect(told).toEqual(names)
})

it('a loss inside lease.run is warned about when nobody looks: run itself does not tell', async () => {
  const scene = stage()
  const lease = await scene.lock().acquire({ leaseTime: 1_000 })
  expect(await lease.run(() => scene.clock.advance(2_000).then(() => 'done'))).toBe('done')
  await new Promise(setImmediate)
  expect(warnings).toEqual(['HOLDFAST_LEASE_LOST'])
})
