/** What may go wrong between the client and Node, from our own thinking (rows I). */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { Holdfast, ManualClock, type AcquireOptions, type Lease } from '../../src/index.js'
import { IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6, open } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { Child } from './child.js'
import { openScene, type Scene } from './scene.js'

const NAME = 'orders:42'

/** Once the server has done all that the client sent, nothing is held. */
async function expectUndone(scene: Scene, holdfast: Holdfast, client?: Redis): Promise<void> {
  await client?.ping()
  await eventually(
    () => holdfast.stats().compensating === 0 && holdfast.stats().pending === 0,
    'it is undone',
  )
  expect(await scene.command('EXISTS', NAME)).toBe(0)
  expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
}

test('fault I3: a renewal that is stuck behind the traffic of its link is no longer believed in', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const client = scene.ioredis({ port: proxy.port })
  const lease = await scene.holdfast({ lockWatchdogTimeout: 600 }, client).lock(NAME).acquire()
  const stuck = proxy.holdRequests('SET')
  const traffic = client.set('something large', 'x'.repeat(1_000_000))
  traffic.catch(() => undefined)
  await stuck.caught()
  await new Promise((resolve) => {
    lease.signal.addEventListener('abort', resolve)
  })
  expect(lease.signal.reason).toMatchObject({ reason: 'expired' })

  const other = await scene.holdfast().lock(NAME).acquire({ leaseTime: 60_000 })
  const before = Number(await scene.command('PTTL', NAME))
  stuck.release()
  await traffic
  await client.ping()
  expect(lease.held).toBe(false)
  expect(await scene.command('HKEYS', NAME)).toEqual([other.owner])
  expect(await scene.command('PTTL', NAME)).toBeLessThanOrEqual(before)
})

test('fault I3: a renewal that is late is told', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const client = scene.ioredis({ port: proxy.port })
  const diagnoses = scene.hear('holdfast:diagnosis')
  const lease = await scene.holdfast({ lockWatchdogTimeout: 3_000 }, client).lock(NAME).acquire()
  proxy.delayReplies(600, 'EVALSHA')
  await eventually(() => diagnoses.some(({ kind }) => kind === 'renewal-late'), 'it is told')
  expect(lease.held).toBe(true)
})

describe.each([IOREDIS_5, IOREDIS_6])('with $name', (variant) => {
  test('fault I4: an acquire that fell into an open transaction is told, and undone', async () => {
    await using scene = await openScene()
    const opened = await open(variant, scene.port)
    scene.atEnd(() => opened.destroy())
    const holdfast = scene.holdfast({}, opened.raw as object)
    await opened.command('MULTI')
    await expect(holdfast.lock(NAME).tryAcquire()).rejects.toMatchObject({
      code: 'HOLDFAST_UNAVAILABLE',
      outcome: 'unknown',
      message: expect.stringMatching(/MULTI.*transactions/) as string,
    })
    await opened.command('EXEC')
    await expectUndone(scene, holdfast)
  })
})

describe.each([IOREDIS_6, NODE_REDIS_6])('with $name', (variant) => {
  test('fault I5: a connection that blocks on a list ends the call at its deadline', async () => {
    await using scene = await openScene()
    const client = await open(variant, scene.port)
    scene.atEnd(() => client.destroy())
    const holdfast = scene.holdfast({ commandTimeout: 300 }, client.raw as object)
    // The first grant asks about replicas before anything else.
    await holdfast.lock(NAME).using(() => undefined)
    const blocked = client.command('BLPOP', 'jobs', '0')
    await eventually(
      async () => String(await scene.command('INFO', 'clients')).includes('blocked_clients:1'),
      'it blocks',
    )
    await expect(holdfast.lock(NAME).tryAcquire()).rejects.toMatchObject({ outcome: 'unknown' })
    await expect(holdfast.lock(NAME).acquire({ waitTime: 200 })).rejects.toMatchObject({ outcome: 'unknown' })
    await scene.command('RPUSH', 'jobs', 'a job')
    await blocked
    await expectUndone(scene, holdfast)
  })
})

test('fault I6: owners differ between copies of a program whose random numbers are equal', async () => {
  const children = Array.from({ length: 3 }, () => new Child('prints-owners', []))
  try {
    await Promise.all(children.map(({ ended }) => ended))
    const owners = children.flatMap(({ lines }) => lines)
    expect(owners.filter((owner) => /^[0-9a-f-]{36}:\d+$/.test(owner))).toHaveLength(9)
    expect(new Set(owners).size).toBe(9)
    expect(new Set(owners.map((owner) => owner.split(':')[0])).size).toBe(3)
  } finally {
    await Promise.all(children.map((child) => child[Symbol.asyncDispose]()))
  }
})

test('fault I6: no acquisition has the owner of another', async () => {
  const random = Math.random
  Math.random = () => 0.5
  try {
    const holdfast = await Holdfast.connect('memory:')
    const owners = new Set<string>()
    for (let times = 0; times < 2_000; times++)
      owners.add(await holdfast.lock(NAME).using((lease) => lease.owner))
    expect(owners.size).toBe(2_000)
  } finally {
    Math.random = random
  }
})

describe('a signal that aborts', () => {
  const reason = new Error('enough')
  const calls = ['acquire', 'tryAcquire', 'using', 'tryUsing'] as const
  type CallName = (typeof calls)[number]

  function start(holdfast: Holdfast, call: CallName, options: AcquireOptions): Promise<unknown> {
    const lock = holdfast.lock(NAME)
    const never = (): never => {
      throw new Error('the work was begun')
    }
    switch (call) {
      case 'acquire':
        return lock.acquire(options)
      case 'tryAcquire':
        return lock.tryAcquire(options)
      case 'using':
        return lock.using(options, never)
      case 'tryUsing':
        return lock.tryUsing(options, never)
    }
  }

  /** Otherwise a call would end before its script is sent by its text. */
  async function teach(holdfast: Holdfast): Promise<void> {
    await holdfast.lock(NAME).using(() => undefined)
  }

  test.each(calls)('fault I7: before %s is called, nothing is sent', async (call) => {
    await using scene = await openScene()
    const client = scene.ioredis()
    const holdfast = scene.holdfast({}, client)
    await scene.forgetCalls()
    await expect(start(holdfast, call, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(await scene.scripts()).toBe(0)
    await expectUndone(scene, holdfast, client)
  })

  test.each(calls)('fault I7: in the tick of the call of %s, nothing stays', async (call) => {
    await using scene = await openScene()
    const client = scene.ioredis()
    const holdfast = scene.holdfast({}, client)
    await teach(holdfast)
    const controller = new AbortController()
    const ended = expect(start(holdfast, call, { signal: controller.signal })).rejects.toBe(reason)
    controller.abort(reason)
    await ended
    await expectUndone(scene, holdfast, client)
  })

  test('fault I7: while the acquire is on its way, nothing stays', async () => {
    await using scene = await openScene()
    const client = scene.ioredis()
    const holdfast = scene.holdfast({}, client)
    await teach(holdfast)
    await scene.command('CLIENT', 'PAUSE', 300, 'WRITE')
    const controller = new AbortController()
    const ended = expect(holdfast.lock(NAME).acquire({ signal: controller.signal })).rejects.toBe(reason)
    await eventually(
      async () => String(await scene.command('CLIENT', 'LIST')).includes('cmd=evalsha'),
      'it is there',
    )
    controller.abort(reason)
    await ended
    await expectUndone(scene, holdfast, client)
  })

  test('fault I7: in the tick of the grant, the lock is given back or had', async () => {
    await using scene = await openScene()
    const client = scene.ioredis()
    const holdfast = scene.holdfast({}, client)
    await teach(holdfast)
    const released = scene.hear('holdfast:release')
    const endings: string[] = []
    // The reply passes through a chain of promises; the abort comes after each link of it once.
    for (let links = 0; links < 30; links++) {
      const controller = new AbortController()
      const call = holdfast.lock(NAME).acquire({ signal: controller.signal })
      const ending = call.then(
        (lease) => lease,
        (error: unknown) => error,
      )
      const abortAfter = (rest: number): void => {
        if (rest === 0) controller.abort(reason)
        else
          queueMicrotask(() => {
            abortAfter(rest - 1)
          })
      }
      client.stream.once('data', () => {
        abortAfter(links)
      })
      const result = await ending
      if (result === reason) {
        endings.push(released.length > 0 || holdfast.stats().pending > 0 ? 'given back' : 'undone')
      } else {
        const lease = result as Lease
        expect(lease.held).toBe(true)
        await lease.release()
        endings.push('had')
      }
      await expectUndone(scene, holdfast, client)
      released.length = 0
    }
    expect([...new Set(endings)]).toEqual(['undone', 'given back', 'had'])
  })

  test('fault I7: just before the grant, the lock is given back', async () => {
    await using scene = await openScene()
    const client = scene.ioredis()
    const holdfast = scene.holdfast({}, client)
    await teach(holdfast)
    const controller = new AbortController()
    const ended = expect(holdfast.lock(NAME).acquire({ signal: controller.signal })).rejects.toBe(reason)
    client.stream.prependOnceListener('data', () => {
      controller.abort(reason)
    })
    await ended
    await expectUndone(scene, holdfast, client)
  })

  test('fault I7: after the grant, the lease stays', async () => {
    await using scene = await openScene()
    const controller = new AbortController()
    const lease = await scene.holdfast().lock(NAME).acquire({ signal: controller.signal })
    controller.abort(reason)
    expect(lease.held).toBe(true)
    expect(lease.signal.aborted).toBe(false)
    expect(await lease.release()).toBe('released')
  })
})

test('fault I9: the disposer of a lease that has expired does not hide the error of the work', async () => {
  const clock = new ManualClock()
  const lock = (await Holdfast.connect('memory:', { clock })).lock(NAME)
  const trouble = new Error('the work failed')
  const work = async (): Promise<void> => {
    await using lease = await lock.acquire({ leaseTime: 100 })
    await clock.advance(200)
    expect(lease.held).toBe(false)
    throw trouble
  }
  await expect(work()).rejects.toBe(trouble)
})

test('fault I10: a lease that was dropped without release ends with maxHold', async () => {
  await using scene = await openScene()
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const renewed = scene.hear('holdfast:renew:ok')
  const lost = scene.hear('holdfast:lost')
  const holdfast = scene.holdfast({ lockWatchdogTimeout: 300, maxHold: 900 })
  const drop = async (): Promise<WeakRef<Lease>> => {
    const lease = await holdfast.lock(NAME).acquire()
    return new WeakRef(lease)
  }
  const dropped = await drop()
  collect()
  expect(dropped.deref()?.held ?? true).toBe(true)
  await scene.untilGone(NAME)
  expect(renewed.length).toBeGreaterThan(1)
  expect(lost).toMatchObject([{ lock: NAME, reason: 'max-hold' }])
  expect(holdfast.stats().held).toBe(0)
})

describe.each([IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6])('with $name', (variant) => {
  test('fault I16: a grant, a renewal and a release are known whatever type integers have', async () => {
    await using scene = await openScene()
    for (const resp of [2, 3] as const) {
      const client = await open(variant, scene.port, { resp, oddReplies: true })
      scene.atEnd(() => client.destroy())
      const holdfast = scene.holdfast({ lockWatchdogTimeout: 300 }, client.raw as object)
      const renewed = scene.hear('holdfast:renew:ok')
      for (const object of [holdfast.lock(NAME), holdfast.mutex('a mutex')]) {
        const before = renewed.length
        const lease = await object.acquire()
        await eventually(() => renewed.length > before, 'it is renewed')
        expect(await object.tryAcquire()).toBeNull()
        expect(lease.held).toBe(true)
        expect(await lease.release()).toBe('released')
      }
    }
  })
})

test('fault I20: what the client flushes with an error of its own is unavailable, with that error as cause', async () => {
  await using scene = await openScene()
  const proxy = await scene.proxy()
  const holdfast = scene.holdfast({}, scene.ioredis({ port: proxy.port, maxRetriesPerRequest: 1 }))
  expect(await holdfast.lock(NAME).isLocked()).toBe(false)
  const gate = proxy.holdReplies('EVALSHA')
  const call = holdfast
    .lock(NAME)
    .tryAcquire()
    .catch((error: unknown) => error)
  await gate.caught()
  proxy.refuse()
  proxy.cutAll()
  const error = await call
  expect(error).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'unknown' })
  expect((error as Error).cause).toMatchObject({ name: 'MaxRetriesPerRequestError' })
  await proxy.pass()
  await expectUndone(scene, holdfast)
})

test('fault I24: a loss handler that throws harms no other lock', async () => {
  await using scene = await openScene()
  await using child = new Child('throwing-handlers', [String(scene.port)])
  expect(await child.ended, child.errors).toEqual({ code: 0, signal: null })
  const said = JSON.parse(child.lines.at(-1) ?? '') as { thrown: string[] }
  expect(said).toMatchObject({ held: true, exists: 1 })
  expect(said.thrown.sort()).toEqual([
    'from the async signal',
    'from the lost event',
    'from the renewal event',
    'from the signal',
  ])
})
