/** Leases that end, or may have ended, from outside: machines that sleep, processes that are told to end, servers that forget. */
import { describe, expect, test } from 'vitest'
import { Holdfast, ManualClock } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { Child } from './child.js'
import { openScene } from './scene.js'
import { answers, sends, teach } from './support/sent.js'

const NAME = 'orders:42'
const FAMILIES = ['lock', 'mutex'] as const

describe.each(FAMILIES)('%s', (family) => {
  test.each(['memory', 'redis'] as const)(
    'after a sleep of the machine nothing is held until it is confirmed (%s)',
    async (engine) => {
      await using scene = await openScene()
      const clock = new ManualClock()
      const holdfast =
        engine === 'redis' ? scene.holdfast({ clock }) : await Holdfast.connect('memory:', { clock })
      const watched = await holdfast[family](NAME).acquire()
      const timed = await holdfast[family]('another').acquire({ leaseTime: 20_000 })
      await clock.advance(5_000)
      clock.sleepMachine(5_000)
      for (const lease of [watched, timed]) {
        expect([lease.held, lease.remaining, lease.holdCount]).toEqual([false, 0, 0])
        expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: 'unknown' }) as Error)
        expect(lease.signal.aborted).toBe(false)
      }
      await eventually(async () => {
        await clock.advance(1)
        return watched.held && timed.held
      }, 'both are confirmed')
      expect([watched.signal.aborted, timed.signal.aborted]).toEqual([false, false])
      expect(await watched.release()).toBe('released')
      expect(await timed.release()).toBe('released')
    },
  )

  test('after a sleep of the machine only the answer of the server counts', async () => {
    await using scene = await openScene()
    await teach(scene)
    const proxy = await scene.proxy()
    const clock = new ManualClock()
    const holdfast = scene.holdfast({ clock }, scene.ioredis({ port: proxy.port }))
    const lease = await holdfast[family](NAME).acquire()
    const gate = proxy.holdReplies(answers('renew'))
    clock.sleepMachine(5_000)
    expect(lease.held).toBe(false)
    await clock.advance(0)
    await gate.caught()
    for (let times = 0; times < 5; times++) {
      await clock.advance(100)
      expect(lease.held).toBe(false)
    }
    expect(proxy.count(sends('renew'))).toBe(1)
    gate.release()
    await eventually(() => lease.held, 'it is confirmed')
    expect(await lease.release()).toBe('released')
  })

  test('a lease that ended while the machine slept is told as lost', async () => {
    await using scene = await openScene()
    const clock = new ManualClock()
    const lost = scene.hear('holdfast:lost')
    const holdfast = scene.holdfast({ clock })
    const lease = await holdfast[family](NAME).acquire()
    const { signal } = lease
    clock.sleepMachine(60_000)
    await scene.command('DEL', NAME)
    const next = await scene.holdfast()[family](NAME).acquire()
    // Nobody looks at it: the next tick notices by itself.
    await clock.advance(10_000)
    await eventually(() => signal.aborted, 'the loss is told')
    expect(lost).toEqual([{ lock: NAME, owner: lease.owner, reason: 'stolen' }])
    expect(lease.held).toBe(false)
    expect(await lease.release()).toBe('stolen')
    expect(await next.release()).toBe('released')
  })
})

test('after a sleep of the machine leases without a watchdog are asked about, too', async () => {
  await using scene = await openScene()
  const clock = new ManualClock()
  const holdfast = scene.holdfast({ clock })
  const ticking = await holdfast.lock('watched').acquire()
  const kept = await holdfast.lock(NAME).acquire({ leaseTime: 300_000 })
  const gone = await holdfast.lock('another').acquire({ leaseTime: 300_000 })
  const { signal } = gone
  await scene.command('DEL', 'another')
  clock.sleepMachine(5_000)
  // The watchdog's next tick, long before either of them would end.
  await clock.advance(10_000)
  await eventually(async () => {
    await clock.advance(1)
    return signal.aborted
  }, 'the loss is told')
  expect(signal.reason).toMatchObject({ reason: 'stolen' })
  await eventually(() => kept.held, 'it is confirmed')
  for (const lease of [ticking, kept]) expect(await lease.release()).toBe('released')
})

describe.each(['ioredis', 'node-redis'] as const)('%s', (library) => {
  test('a server that comes back without its data is a loss, told at the next renewal', async () => {
    await using scene = await openScene()
    const lost = scene.hear('holdfast:lost')
    const client = library === 'ioredis' ? scene.ioredis() : await scene.nodeRedis()
    const holdfast = scene.holdfast({ lockWatchdogTimeout: 2_400 }, client)
    const lock = await holdfast.lock(NAME).acquire()
    const mutex = await holdfast.mutex('another').acquire()
    const { signal } = lock
    expect(mutex.held).toBe(true)
    await scene.server.restart()
    await scene.reconnect()
    await eventually(() => !lock.held && !mutex.held, 'the loss is told')
    expect(signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
    expect(lost.map(({ lock: name, reason }) => `${name} ${reason}`).sort()).toEqual([
      'another stolen',
      `${NAME} stolen`,
    ])
    expect(await scene.command('EXISTS', NAME, 'another')).toBe(0)
    // The same Holdfast goes on, with scripts that the new server does not know.
    expect(await holdfast.lock(NAME).using(() => 'done')).toBe('done')
    expect([await lock.release(), await mutex.release()]).toEqual(['stolen', 'stolen'])
  })
})

test('SIGTERM in the middle of the work: draining waits for it, and so does the next owner', async () => {
  await using scene = await openScene()
  await using child = new Child('late-worker', [String(scene.port), '10000', '300'])
  await child.printed('working')
  const next = scene.holdfast().lock(NAME).acquire()
  child.kill('SIGTERM')
  await next
  expect(await scene.command('GET', 'work')).toBe('over')
  expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(child.lines.slice(0, 3)).toEqual(['working', 'nested', 'done'])
  expect(child.lines.slice(3).sort()).toEqual(['HOLDFAST_CLOSED', 'closed'])
})

test('SIGTERM in the middle of work that outlasts draining: it is told, and nobody enters before it is over', async () => {
  await using scene = await openScene()
  await using child = new Child('late-worker', [String(scene.port), '600', '1500'])
  await child.printed('working')
  const next = scene.holdfast().lock(NAME).acquire()
  child.kill('SIGTERM')
  await next
  expect(await scene.command('GET', 'work')).toBe('over')
  expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(child.lines).toEqual([
    'working',
    'nested',
    'aborted',
    'closed',
    'HOLDFAST_LEASE_LOST',
    'HOLDFAST_CLOSED',
  ])
})
