/** Ownership and release, group B: `using` and disposal, whatever happens inside. */
import { expect, test } from 'vitest'
import { LeaseLostError, type Lease } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { Door, openScene } from './scene.js'
import { IDLE, OTHER, ttl, untilUndone } from './support/around.js'

const NAME = 'orders:42'
const FAMILIES = ['lock', 'mutex'] as const

test('fault 19: nobody can give back what may not have been taken', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  const careless = async (): Promise<unknown> => {
    const maybe = await holdfast.lock(NAME).tryAcquire()
    // @ts-expect-error -- the lease may be null
    return maybe.release()
  }
  await scene.command('HSET', NAME, OTHER, 1)
  await expect(careless()).rejects.toThrow(TypeError)
  const maybe: Lease | null = await holdfast.lock(NAME).tryAcquire()
  expect(await maybe?.release()).toBeUndefined()
  const result = await holdfast.lock(NAME).tryUsing(() => 'done')
  // @ts-expect-error -- there is a value only if the lock was acquired
  expect(result.value).toBeUndefined()
})

test.each(FAMILIES)('fault 19: the end of a scope whose try failed frees nothing (%s)', async (family) => {
  await using scene = await openScene()
  const lock = scene.holdfast()[family](NAME)
  const owner = await scene.holdfast()[family](NAME).acquire({ leaseTime: 60_000 })
  {
    await using lease = await lock.tryAcquire()
    expect(lease).toBeNull()
  }
  await expect(
    (async () => {
      await using lease = await lock.acquire({ waitTime: 0 })
      return lease
    })(),
  ).rejects.toMatchObject({ code: 'HOLDFAST_WAIT_TIMEOUT' })
  await expect(lock.using({ waitTime: 0 }, () => 'in vain')).rejects.toMatchObject({
    code: 'HOLDFAST_WAIT_TIMEOUT',
  })
  expect(await lock.tryUsing(() => 'in vain')).toEqual({ acquired: false })
  expect(owner.held).toBe(true)
  expect(await ttl(scene, NAME)).toBeGreaterThan(50_000)
  expect(await owner.release()).toBe('released')
})

test('fault 19: the end of a scope frees what was taken, and never throws', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast().lock(NAME)
  {
    await using lease = await lock.acquire()
    expect(await scene.command('HKEYS', NAME)).toEqual([lease.owner])
  }
  expect(await scene.command('EXISTS', NAME)).toBe(0)
  {
    await using lease = await lock.acquire()
    expect(lease.held).toBe(true)
    await scene.command('DEL', NAME)
  }
  const failed = (async () => {
    await using lease = await lock.acquire()
    expect(lease.held).toBe(true)
    await scene.command('DEL', NAME)
    throw new Error('the work failed')
  })()
  await expect(failed).rejects.toThrow('the work failed')
})

test.each(FAMILIES)(
  'fault 26: an abort inside the work does not keep a %s from being freed',
  async (family) => {
    await using scene = await openScene()
    const holdfast = scene.holdfast()
    const controller = new AbortController()
    const { signal } = controller
    const reason = new Error('the request went away')
    const work = holdfast[family](NAME).using({ signal }, async (lease) => {
      controller.abort(reason)
      // It ends the waiting, never the hold.
      expect(lease.held).toBe(true)
      expect(lease.signal.aborted).toBe(false)
      expect(await scene.command('EXISTS', NAME)).toBe(1)
      signal.throwIfAborted()
    })
    await expect(work).rejects.toBe(reason)
    expect(await scene.command('EXISTS', NAME)).toBe(0)

    const other = new AbortController()
    const lease = await holdfast[family](NAME).acquire({ signal: other.signal })
    other.abort(reason)
    expect(await lease.release()).toBe('released')
    expect(await scene.command('EXISTS', NAME)).toBe(0)
    expect(holdfast.stats()).toEqual(IDLE)
  },
)

test('fault 27: the error of the work wins over that of a release without answer', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ commandTimeout: 200 })
  const error = new Error('the work failed')
  const outcomes = scene.hear('holdfast:release')
  const failing = holdfast.lock(NAME).using(() => {
    scene.server.pause()
    throw error
  })
  await expect(failing).rejects.toBe(error)
  scene.server.resume()
  await untilUndone(holdfast)
  // And a value is not lost over it either.
  const working = holdfast.mutex('another').using(() => {
    scene.server.pause()
    return 'a value'
  })
  expect(await working).toBe('a value')
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['unknown', 'unknown'])
  scene.server.resume()
  await untilUndone(holdfast)
  expect(await scene.command('EXISTS', NAME, 'another')).toBe(0)
})

test('fault 27: the error of the work wins over the loss of the lock', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast({ lockWatchdogTimeout: 150 }).lock(NAME)
  const error = new Error('the work failed')
  const untilLost = async (lease: Lease): Promise<void> => {
    await scene.command('DEL', NAME)
    await eventually(() => lease.signal.aborted, 'the loss is told')
  }
  const failing = lock.using(async (lease) => {
    await untilLost(lease)
    throw error
  })
  await expect(failing).rejects.toBe(error)

  // Work that ended well did so without the lock: that is an error, and carries what it returned.
  const working = lock.using(async (lease) => {
    await untilLost(lease)
    return 'a value'
  })
  await expect(working).rejects.toMatchObject({ reason: 'stolen', value: 'a value', lock: NAME })
  await expect(working).rejects.toThrow(LeaseLostError)
})

test('fault 27: using waits for the work although the lock is lost', async () => {
  await using scene = await openScene()
  const lock = scene.holdfast({ lockWatchdogTimeout: 150 }).lock(NAME)
  const over = new Door()
  const lost = scene.hear('holdfast:lost')
  let ended = false
  const working = lock.using(async (lease) => {
    expect(lease.held).toBe(true)
    await over.opened
    ended = true
  })
  const failed = working.catch(() => ended)
  await eventually(async () => (await scene.command('DEL', NAME)) === 0 && lost.length > 0, 'it is lost')
  over.open()
  expect(await failed).toBe(true)
})
