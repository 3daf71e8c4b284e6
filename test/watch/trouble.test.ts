/** Watching while links, servers and settings change. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import type { Scene } from '../faults/scene.js'
import { eventually } from '../support/eventually.js'
import { begin, HOUR, untilMode, watching, watchScene } from './watcher.js'

const CLIENTS = [
  ['ioredis', async (scene: Scene, port: number) => scene.ioredis({ port })],
  ['node-redis', (scene: Scene, port: number) => scene.nodeRedis(port)],
] as const

describe.each(CLIENTS)('over %s', (_name, client) => {
  test('what is written while the subscriber link is cut is told when it is back', async () => {
    await using scene = await watchScene('KEA')
    const holdfast = scene.holdfast({}, await client(scene, scene.port))
    const byName = await watching(scene, holdfast, { keys: ['a', 'b'], interval: HOUR })
    const byPattern = await watching(scene, holdfast, { keys: { pattern: '[ab]' }, interval: HOUR })
    expect([byName.watch.mode, byPattern.watch.mode]).toEqual(['notifications', 'notifications'])
    for (let i = 0; i < 3; i++) {
      // In one go: nobody is subscribed when the key is written.
      await Promise.all([
        scene.command('CLIENT', 'KILL', 'TYPE', 'pubsub'),
        scene.command('SET', 'a', `value ${i}`),
      ])
      const expected = ['create a', 'change a', 'change a'].slice(0, i + 1)
      await Promise.all([byName.until(...expected), byPattern.until(...expected)])
      await untilMode(byName, 'notifications')
      await untilMode(byPattern, 'notifications')
    }
    await scene.command('SET', 'b', 'x')
    await byName.until('create a', 'change a', 'change a', 'create b')
    expect(byName.errors).toEqual([])
  })

  test('while the subscriber link cannot be had it polls, and stops polling when it can', async () => {
    await using scene = await watchScene('KEA')
    const proxy = await scene.proxy()
    const holdfast = scene.holdfast({}, await client(scene, proxy.port))
    const told = await watching(scene, holdfast, { keys: 'a', interval: 30 })
    const gate = proxy.holdRequests('SUBSCRIBE')
    await scene.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await gate.caught()
    await untilMode(told, 'polling')
    await scene.command('SET', 'a', '1')
    await told.until('create a')
    gate.release()
    await untilMode(told, 'notifications')
  })

  test('a restart of the server: what it forgot is told as removed, and the trouble once', async () => {
    await using scene = await watchScene('KEA')
    const holdfast = scene.holdfast({ commandTimeout: 300 }, await client(scene, scene.port))
    await scene.command('SET', 'a', '1')
    await scene.command('SET', 'b', '1')
    const told = await watching(scene, holdfast, { keys: ['a', 'b'], interval: 50 })
    for (let outage = 1; outage <= 2; outage++) {
      await scene.server.kill()
      await eventually(() => told.errors.length === outage, 'the trouble is told')
      await scene.server.start()
      await scene.reconnect()
      if (outage === 1) await told.until('delete a', 'delete b')
      await untilMode(told, 'notifications')
      // Also after several failed looks.
      expect(told.errors).toHaveLength(outage)
      expect(told.errors[0]).toMatchObject({ code: 'HOLDFAST_UNAVAILABLE' })
    }
    await scene.command('SET', 'b', '2')
    await told.until('delete a', 'delete b', 'create b')
  })

  test('a server that is away at the beginning is waited for', async () => {
    await using scene = await watchScene('KEA')
    const proxy = await scene.proxy()
    const used = await client(scene, proxy.port)
    proxy.refuse()
    proxy.cutAll()
    const holdfast = scene.holdfast({ commandTimeout: 200 }, used)
    const told = begin(holdfast, { keys: 'a', interval: 50 })
    await eventually(() => told.errors.length === 1, 'the trouble is told')
    expect(told.watch.mode).toBe('starting')
    await proxy.accept()
    await told.watch.ready
    await scene.command('SET', 'a', '1')
    await told.until('create a')
  })

  test('a setting of the server that changes is found out', async () => {
    await using scene = await watchScene('KEA')
    const holdfast = scene.holdfast({}, await client(scene, scene.port))
    const told = await watching(scene, holdfast, { keys: 'a', interval: 20 })
    await scene.command('CONFIG', 'SET', 'notify-keyspace-events', 'Kx')
    await untilMode(told, 'polling')
    await scene.command('SET', 'a', '1')
    await told.until('create a')
    await scene.command('CONFIG', 'SET', 'notify-keyspace-events', 'AKE')
    await untilMode(told, 'notifications')
    await scene.command('SET', 'a', '2')
    await told.until('create a', 'change a')
  })

  test('a database that is emptied, which the server tells nobody, is found out by a check', async () => {
    await using scene = await watchScene('KEA')
    const holdfast = scene.holdfast({}, await client(scene, scene.port))
    await scene.command('SET', 'a', '1')
    const told = await watching(scene, holdfast, { keys: 'a', interval: 30 })
    const diagnoses = scene.hear('holdfast:diagnosis')
    await scene.command('FLUSHALL')
    await told.until('delete a')
    expect(diagnoses.map(({ kind }) => kind)).toEqual(['watch-missed'])
    await untilMode(told, 'notifications')
  })

  test('ends with the client under it', async () => {
    await using scene = await watchScene('KEA')
    const used = await client(scene, scene.port)
    const told = await watching(scene, scene.holdfast({}, used), { keys: 'a', interval: 20 })
    const waiting = told.watch[Symbol.asyncIterator]().next()
    const turnedAway = expect(waiting).rejects.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE' })
    if (used instanceof Redis) used.disconnect()
    else used.destroy()
    await turnedAway
    expect(told.watch.mode).toBe('ended')
    expect(told.errors).toHaveLength(1)
  })
})
