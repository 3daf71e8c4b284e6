/** What only ioredis has: a key prefix on every command, monitor mode, settings that keep or lose commands. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Redis } from 'ioredis'
import { createPort } from '../../src/engine/redis/clients/detect.js'
import type { ClientPort } from '../../src/engine/redis/clients/port.js'
import { eventually } from '../support/eventually.js'
import { startProxy, type Proxy } from '../support/proxy.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { ECHO, failure, INCR, passage, run, SET } from './calls.js'

const soon = (): number => 1

export function describeIoredis(name: string, Client: typeof Redis): void {
  describe(`${name} with its own settings`, () => {
    let server: RedisServer
    let proxy: Proxy
    const clients: Redis[] = []
    const ports: ClientPort[] = []

    beforeAll(async () => {
      server = await startRedis()
    })
    beforeEach(async () => {
      await server.send('FLUSHALL')
      proxy = await startProxy({ port: server.port })
    })
    afterEach(async () => {
      for (const port of ports.splice(0)) await port.close()
      for (const client of clients.splice(0)) client.disconnect()
      proxy.close()
    })
    afterAll(async () => {
      await server.stop()
    })

    function make(options: object): { client: Redis; port: ClientPort } {
      const client = new Client({ port: proxy.port, host: '127.0.0.1', ...options })
      client.on('error', () => undefined)
      const port = createPort(client)
      clients.push(client)
      ports.push(port)
      return { client, port }
    }

    async function ready(port: ClientPort): Promise<void> {
      while (port.readiness === 'waiting') await new Promise<void>((resolve) => port.onceReady(resolve))
      expect(port.readiness).toBe('ready')
    }

    it.each(['p:', Buffer.from('p:')])(
      'sends keys as they are although the client has a prefix (fault 53)',
      async (keyPrefix) => {
        const { client, port } = make({ keyPrefix, db: 2 })
        expect(port.keyPrefix).toBe('p:')
        await ready(port)
        expect(await run(port, ECHO, ['a', '{b}'], ['c'])).toEqual([['a', '{b}'], ['c']])
        await run(port, SET, ['p:key'], ['value'])
        expect(await client.get('key')).toBe('value')
        expect(proxy.accepted).toBe(2)
      },
    )

    it('opens the connection without prefix only when it is needed, and closes it', async () => {
      const { client, port } = make({ keyPrefix: 'p:' })
      await client.ping()
      expect(port.readiness).toBe('waiting')
      expect(proxy.accepted).toBe(1)
      await ready(port)
      expect(proxy.accepted).toBe(2)
      await port.close()
      await eventually(() => proxy.connections === 1, 'closed')
      expect(await client.ping()).toBe('PONG')
    })

    it('closes the connection without prefix when the user closes the client', async () => {
      const { client, port } = make({ keyPrefix: 'p:' })
      await ready(port)
      await client.quit()
      await eventually(() => proxy.connections === 0, 'both are closed')
      expect(port.readiness).toBe('closed')
    })

    it('never sends twice over the connection without prefix, and it comes back', async () => {
      const { port } = make({ keyPrefix: 'p:' })
      await ready(port)
      await run(port, INCR)
      proxy.dropReply('EVALSHA')
      const cut = passage()
      const error = await failure(port.run({ script: INCR, keys: ['key'], args: [] }, cut))
      expect(error).toMatchObject({ kind: 'connection', outcome: 'unknown' })
      expect(cut.once).toBe(false)
      proxy.refuse()
      proxy.cutAll()
      await eventually(() => port.readiness === 'waiting', 'waiting')
      const called = ready(port)
      await proxy.accept()
      await called
      expect(await run(port, INCR)).toBe(3)
    })

    it('is ready on the first link and after a change of links with a prefix and one waiter', async () => {
      const { client, port } = make({ keyPrefix: 'p:', lazyConnect: true })
      await ready(port)
      expect(await run(port, INCR)).toBe(1)
      expect(client.listenerCount('end')).toBeLessThanOrEqual(1)
      await port.close()
      expect(client.listenerCount('end')).toBe(0)
    })

    it('connects a client that is to connect when it is used', async () => {
      const { client, port } = make({ lazyConnect: true })
      expect(port.readiness).toBe('waiting')
      expect(proxy.accepted).toBe(0)
      await ready(port)
      expect(client.status).toBe('ready')
    })

    it('works without an offline queue', async () => {
      const { port } = make({ enableOfflineQueue: false })
      await ready(port)
      expect(await run(port, INCR)).toBe(1)
    })

    it('is waiting while the link is being given up, although the client still calls itself ready', async () => {
      const { client, port } = make({})
      await ready(port)
      client.disconnect(true)
      expect(client.status).toBe('ready')
      expect(port.readiness).toBe('waiting')
      await ready(port)
    })

    it('calls a call of unknown outcome when the time-out of the client ends it (fault tool P5)', async () => {
      const { port } = make({ commandTimeout: 50 })
      await ready(port)
      const gate = proxy.holdReplies('EVALSHA')
      const late = passage()
      const error = await failure(port.run({ script: INCR, keys: ['key'], args: [] }, late))
      expect(error).toMatchObject({ kind: 'connection', outcome: 'unknown', message: 'Command timed out' })
      expect(late.once).toBe(false)
      gate.release()
    })

    it('calls a call of unknown outcome when the client flushes its queue (I20)', async () => {
      const { port } = make({ maxRetriesPerRequest: 0 })
      await ready(port)
      await run(port, INCR)
      proxy.dropReply('EVALSHA')
      expect(await failure(run(port, INCR))).toMatchObject({ kind: 'connection', outcome: 'unknown' })
      expect(await server.send('GET', 'key')).toBe('2')
    })

    it('takes no commands over a monitoring connection', async () => {
      const { client, port } = make({})
      await ready(port)
      const monitor = await client.monitor()
      clients.push(monitor)
      expect(createPort(monitor).readiness).toBe('subscriber')
    })

    it('leaves a demoted server, once, when its address may lead elsewhere by now (fault tool P9)', async () => {
      const successor = await startRedis()
      const { client, port } = make({ host: 'localhost', family: 4, retryStrategy: soon })
      await ready(port)
      await run(port, INCR)
      await server.send('REPLICAOF', '127.0.0.1', '1')
      proxy.retarget(successor.port)
      expect(await failure(run(port, INCR))).toMatchObject({ kind: 'unavailable', outcome: 'not-applied' })
      await eventually(() => proxy.accepted === 2, 'a second link')
      await ready(port)
      expect(await run(port, INCR)).toBe(1)
      await successor.send('REPLICAOF', '127.0.0.1', '1')
      for (let i = 0; i < 3; i += 1) {
        expect(await failure(run(port, INCR))).toMatchObject({ kind: 'unavailable' })
        await client.ping()
      }
      expect(proxy.accepted).toBe(2)
      await server.send('REPLICAOF', 'NO', 'ONE')
      await successor.stop()
    })

    it.each([
      ['an address that is a number', { host: '127.0.0.1', retryStrategy: soon }],
      ['a client that does not reconnect', { host: 'localhost', family: 4, retryStrategy: null }],
      [
        'a client with an own rule',
        { host: 'localhost', family: 4, retryStrategy: soon, reconnectOnError: () => false },
      ],
      [
        'a client that would lose commands',
        { host: 'localhost', family: 4, retryStrategy: soon, autoResendUnfulfilledCommands: false },
      ],
    ])('does not touch the link to a demoted server with %s', async (_name, options) => {
      const { client, port } = make(options)
      await ready(port)
      await run(port, INCR)
      await server.send('REPLICAOF', '127.0.0.1', '1')
      expect(await failure(run(port, INCR))).toMatchObject({ kind: 'unavailable' })
      expect(await client.ping()).toBe('PONG')
      expect(client.status).toBe('ready')
      expect(proxy.accepted).toBe(1)
      await server.send('REPLICAOF', 'NO', 'ONE')
    })

    it('puts many calls of one tick into one pipeline where the client does', async () => {
      const { port } = make({ enableAutoPipelining: true })
      await ready(port)
      await run(port, INCR)
      const passages = Array.from({ length: 64 }, passage)
      const replies = await Promise.all(
        passages.map((p) => port.run({ script: INCR, keys: ['key'], args: [] }, p)),
      )
      expect(replies).toEqual(passages.map((_, i) => i + 2))
      expect(passages.every(({ once }) => once)).toBe(true)
    })
  })
}
