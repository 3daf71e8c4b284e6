/** What an adapter says about the state of the link; the same for every client library. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createPort } from '../../src/engine/redis/clients/detect.js'
import type { ClientPort } from '../../src/engine/redis/clients/port.js'
import { eventually } from '../support/eventually.js'
import { startProxy, type Proxy } from '../support/proxy.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { failure, INCR, run } from './calls.js'
import { open, untilEpoch, type OpenClient, type Variant } from './variants.js'

const EVENTS = ['ready', 'end', 'close', 'error', 'reconnecting', 'connect', 'message']

export function describeReadiness(variant: Variant): void {
  describe(`${variant.name} knows its state`, () => {
    let server: RedisServer
    let proxy: Proxy
    let client: OpenClient
    let port: ClientPort

    beforeAll(async () => {
      server = await startRedis()
    })
    beforeEach(async () => {
      proxy = await startProxy({ port: server.port })
      client = await open(variant, proxy.port)
      port = createPort(client.raw)
    })
    afterEach(() => {
      client.destroy()
      proxy.close()
    })
    afterAll(async () => {
      await server.stop()
    })

    const untilReady = (): Promise<void> => new Promise<void>((resolve) => port.onceReady(resolve))
    const listeners = (): number => EVENTS.reduce((sum, event) => sum + client.listeners(event), 0)

    it('names the library', () => {
      expect(port).toMatchObject({ client: variant.library, cluster: false, keyPrefix: '' })
    })

    it('sends nothing to make a port or to tell the state, and listens to nothing', () => {
      const before = proxy.requests.length
      const listening = listeners()
      expect(createPort(client.raw).readiness).toBe('ready')
      expect(proxy.requests.length).toBe(before)
      expect(proxy.accepted).toBe(1)
      expect(listeners()).toBe(listening)
    })

    it('is waiting while the link is down, and ready when it is back', async () => {
      proxy.refuse()
      proxy.cutAll()
      await eventually(() => port.readiness === 'waiting', 'waiting')
      let called = 0
      port.onceReady(() => {
        called += 1
        expect(port.readiness).toBe('ready')
      })
      await proxy.accept()
      await eventually(() => called > 0, 'called back')
      await run(port, INCR)
      proxy.cutAll()
      await untilEpoch(client, 3)
      await eventually(() => port.readiness === 'ready', 'ready again')
      expect(called).toBe(1)
    })

    it('calls back also if the state changed before anybody asked', async () => {
      await untilReady()
      client.destroy()
      await untilReady()
      expect(port.readiness).toBe('closed')
    })

    it('is closed after quit, also for those who wait', async () => {
      proxy.refuse()
      proxy.cutAll()
      await eventually(() => port.readiness === 'waiting', 'waiting')
      const called = untilReady()
      client.destroy()
      // ioredis tells nobody when it is closed between two attempts to reconnect; whoever asks next finds out.
      expect(port.readiness).toBe('closed')
      await untilReady()
      await called
    })

    it('is closed after a quit in good order', async () => {
      await client.quit()
      await eventually(() => port.readiness === 'closed', 'closed')
    })

    it('is closed when the client gives reconnecting up', async () => {
      const stubborn = await open(variant, proxy.port, { noReconnect: true })
      const stubbornPort = createPort(stubborn.raw)
      proxy.cutAll()
      await eventually(() => stubbornPort.readiness === 'closed', 'closed')
      stubborn.destroy()
    })

    it('listens once per event for any number of waiters, and not at all afterwards', async () => {
      const before = listeners()
      const handlers = client.listeners('error')
      proxy.refuse()
      proxy.cutAll()
      await eventually(() => port.readiness === 'waiting', 'waiting')
      let called = 0
      const count = (): void => {
        called += 1
      }
      const withdraw = Array.from({ length: 500 }, () => port.onceReady(count))
      for (const event of EVENTS) expect(client.listeners(event), event).toBeLessThanOrEqual(3)
      // Whoever has no handler for errors must go on hearing of it.
      expect(client.listeners('error')).toBe(handlers)
      for (const give of withdraw.slice(0, 200)) give()
      await proxy.accept()
      await eventually(() => called > 0, 'called back')
      expect(called).toBe(300)
      expect(listeners()).toBe(before)
    })

    it('does not listen any more when all waiters have withdrawn', async () => {
      const before = listeners()
      proxy.refuse()
      proxy.cutAll()
      await eventually(() => port.readiness === 'waiting', 'waiting')
      const withdraw = [
        port.onceReady(() => expect.unreachable()),
        port.onceReady(() => expect.unreachable()),
      ]
      expect(listeners()).toBeGreaterThan(before)
      for (const give of withdraw) give()
      for (const give of withdraw) give()
      expect(listeners()).toBe(before)
      await proxy.accept()
      await eventually(() => port.readiness === 'ready', 'ready')
    })

    it('says when the connection is in subscriber mode (fault 54)', async () => {
      const messages = await open(variant, proxy.port, { resp: 2 })
      const messagesPort = createPort(messages.raw)
      await messages.subscribe('channel')
      expect(messagesPort.readiness).toBe('subscriber')
      expect(await failure(run(messagesPort, INCR))).toMatchObject({
        kind: 'refused',
        outcome: 'not-applied',
      })
      messages.destroy()
    })

    it('takes commands beside messages where the protocol does', async () => {
      await client.subscribe('channel')
      expect(port.readiness).toBe(variant.mixesMessages ? 'ready' : 'subscriber')
      if (variant.mixesMessages) expect(await run(port, INCR, [variant.name])).toBe(1)
    })

    it('says of a client that was never connected what it is', async () => {
      const fresh = variant.create(proxy.port)
      const freshPort = createPort(fresh.raw)
      // ioredis connects when it is used; node-redis leaves that to the user.
      expect(freshPort.readiness).toBe(variant.library === 'ioredis' ? 'waiting' : 'closed')
      await new Promise<void>((resolve) => freshPort.onceReady(resolve))
      expect(freshPort.readiness).toBe(variant.library === 'ioredis' ? 'ready' : 'closed')
      fresh.destroy()
    })
  })
}
