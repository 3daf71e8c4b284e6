/** How an adapter receives messages; the same for every client library. */
import { execFile } from 'node:child_process'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createPort, subscriberFrom } from '../../src/engine/redis/clients/detect.js'
import type { SubscriberEvents, SubscriberPort } from '../../src/engine/redis/clients/port.js'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/ports.js'
import { startProxy, type Proxy } from '../support/proxy.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { open, type OpenClient, type Settings, type Variant } from './variants.js'

/** Writes down everything that a subscriber reports, in order. */
class Diary implements SubscriberEvents {
  readonly lines: string[] = []

  onMessage(channel: string, payload: string, pattern?: string): void {
    this.lines.push(pattern === undefined ? `${channel}: ${payload}` : `${channel} (${pattern}): ${payload}`)
  }

  onResync(): void {
    this.lines.push('resync')
  }

  onDown(): void {
    this.lines.push('down')
  }

  count(line: string): number {
    return this.lines.filter((l) => l === line).length
  }

  until(line: string, times = 1): Promise<void> {
    return eventually(
      () => this.count(line) >= times,
      `${line} (${String(times)}), so far: ${this.lines.join()}`,
    )
  }
}

export function describeMessages(variant: Variant): void {
  describe(`${variant.name} receives messages`, () => {
    let server: RedisServer
    let proxy: Proxy
    let client: OpenClient
    let diary: Diary
    let subscriber: SubscriberPort
    const clean: (() => unknown)[] = []

    beforeAll(async () => {
      server = await startRedis()
    })
    beforeEach(async () => {
      proxy = await startProxy({ port: server.port })
      await start({})
    })
    afterEach(async () => {
      for (const step of clean.splice(0)) await step()
      proxy.close()
      await eventually(async () => (await channels()).length === 0, 'no channel is left')
    })
    afterAll(async () => {
      await server.stop()
    })

    async function start(settings: Settings): Promise<void> {
      for (const step of clean.splice(0)) await step()
      client = await open(variant, proxy.port, settings)
      diary = new Diary()
      const port = createPort(client.raw)
      subscriber = port.subscriber(diary, false)
      const [own, opened] = [subscriber, client]
      clean.push(
        () => own.close(),
        () => port.close(),
        () => {
          opened.destroy()
        },
      )
    }

    async function channels(): Promise<string[]> {
      return ((await server.send('PUBSUB', 'CHANNELS')) as string[]).sort()
    }

    async function publish(channel: string, payload: string): Promise<number> {
      return Number(await server.send('PUBLISH', channel, payload))
    }

    it('opens its own connection with the first channel', async () => {
      expect(proxy.accepted).toBe(1)
      await subscriber.subscribe('a')
      expect(proxy.accepted).toBe(2)
      await subscriber.subscribe('b')
      expect(proxy.accepted).toBe(2)
      expect(await channels()).toEqual(['a', 'b'])
      expect(createPort(client.raw).readiness).toBe('ready')
    })

    const SETTINGS: readonly Settings[] = [{}, { resp: 2 }, { resp: 3 }, { oddReplies: true }]
    it.each(SETTINGS)('delivers the messages of its channels, with %o', async (settings) => {
      await start(settings)
      await subscriber.subscribe('a')
      await subscriber.subscribe('{ключ}🔒')
      expect(await publish('a', '0')).toBe(1)
      expect(await publish('other', '0')).toBe(0)
      expect(await publish('{ключ}🔒', '')).toBe(1)
      expect(await publish('a', 'ü')).toBe(1)
      await diary.until('a: ü')
      expect(diary.lines).toEqual(['a: 0', '{ключ}🔒: ', 'a: ü'])
    })

    it.each(SETTINGS)('delivers the messages of channels that fit a pattern, with %o', async (settings) => {
      await start(settings)
      await subscriber.subscribe('a*', 'pattern')
      await subscriber.subscribe('a*')
      expect(await publish('ab', '1')).toBe(1)
      await publish('a*', '2')
      await diary.until('a* (a*): 2')
      await diary.until('a*: 2')
      expect(diary.lines[0]).toBe('ab (a*): 1')
      expect(diary.lines).toHaveLength(3)
      await subscriber.unsubscribe('a*', 'pattern')
      await publish('ab', '3')
      await publish('a*', '4')
      await diary.until('a*: 4')
      expect(diary.lines).toHaveLength(4)
      expect(await server.send('PUBSUB', 'NUMPAT')).toBe(0)
    })

    it('has its patterns again when the link is back', async () => {
      await subscriber.subscribe('a*', 'pattern')
      await subscriber.subscribe('b')
      await server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await diary.until('resync')
      await publish('ab', '1')
      await publish('b', '2')
      await diary.until('b: 2')
      expect(diary.lines).toEqual(['down', 'resync', 'ab (a*): 1', 'b: 2'])
      await subscriber.unsubscribe('a*', 'pattern')
      expect(await server.send('PUBSUB', 'NUMPAT')).toBe(0)
    })

    it.each(SETTINGS)('asks what no script may ask, with %o', async (settings) => {
      await start(settings)
      const port = createPort(client.raw)
      const setting = 'notify-keyspace-events'
      await server.send('CONFIG', 'SET', setting, 'Kg')
      expect(await port.ask(['CONFIG', 'GET', setting])).toEqual([setting, 'gK'])
      await server.send('CONFIG', 'SET', 'notify-keyspace-events', '')
      expect(await port.ask(['CONFIG', 'GET', setting], 'any-key')).toEqual([setting, ''])
      expect(await port.ask(['CONFIG', 'GET', 'no-such-setting'])).toEqual([])
    })

    it('is refused what it may not ask, and fails over a link that is down', async () => {
      await server.send('ACL', 'SETUSER', 'plain', 'on', '>pw', '~*', '&*', '+@all', '-config')
      await start({ username: 'plain', password: 'pw' })
      const port = createPort(client.raw)
      await expect(port.ask(['CONFIG', 'GET', 'maxmemory'])).rejects.toMatchObject({
        name: 'PortError',
        kind: 'refused',
      })
      const gate = proxy.holdRequests('CONFIG')
      const failing = expect(port.ask(['CONFIG', 'GET', 'maxmemory'])).rejects.toMatchObject({
        name: 'PortError',
      })
      await gate.caught()
      client.destroy()
      await failing
    })

    it('knows the number of the database', async () => {
      expect(createPort(client.raw).database).toBe(0)
      await start({ database: 3 })
      expect(createPort(client.raw).database).toBe(3)
    })

    it('gives channels back', async () => {
      await subscriber.subscribe('a')
      await subscriber.subscribe('b')
      await subscriber.unsubscribe('a')
      expect(await channels()).toEqual(['b'])
      await subscriber.unsubscribe('never subscribed')
      await subscriber.subscribe('a')
      await publish('a', '0')
      await diary.until('a: 0')
    })

    it('ends as it was asked last, also without waiting in between', async () => {
      await subscriber.subscribe('first')
      void subscriber.unsubscribe('first')
      await subscriber.subscribe('first')
      for (let i = 0; i < 10; i += 1) {
        void subscriber.subscribe('on')
        void subscriber.unsubscribe('on')
        void subscriber.unsubscribe('off')
        void subscriber.subscribe('off')
      }
      await Promise.all([subscriber.subscribe('on'), subscriber.unsubscribe('off')])
      expect(await channels()).toEqual(['first', 'on'])
      await publish('first', '0')
      await publish('on', '0')
      await diary.until('on: 0')
      expect(diary.lines).toEqual(['first: 0', 'on: 0'])
    })

    it('does not subscribe what was given back while the link was being opened', async () => {
      const subscribed = subscriber.subscribe('a')
      await subscriber.unsubscribe('a')
      await subscribed
      await subscriber.subscribe('b')
      expect(await channels()).toEqual(['b'])
    })

    it('subscribes thousands of channels at once (fault 48)', async () => {
      await Promise.all(Array.from({ length: 2_000 }, (_, i) => subscriber.subscribe(`c${String(i)}`)))
      expect(await channels()).toHaveLength(2_000)
      expect(proxy.accepted).toBe(2)
    })

    it('is down and back when the server cuts it (fault 45, fault tool P6)', async () => {
      await subscriber.subscribe('a')
      await subscriber.subscribe('b')
      const gate = proxy.holdRequests('SUBSCRIBE')
      await server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await diary.until('down')
      await gate.caught()
      expect(diary.lines).toEqual(['down'])
      gate.release()
      await diary.until('resync')
      expect(await channels()).toEqual(['a', 'b'])
      await publish('a', '0')
      await diary.until('a: 0')
      expect(diary.lines).toEqual(['down', 'resync', 'a: 0'])
    })

    it('is back only when every channel is (fault 46)', async () => {
      await subscriber.subscribe('a')
      await subscriber.subscribe('b')
      const gate = proxy.holdReplies(/SUBSCRIBE.* b/i)
      await server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await gate.caught()
      await eventually(async () => (await channels()).length === 2, 'both are subscribed again')
      expect(diary.lines).toEqual(['down'])
      gate.release()
      await diary.until('resync')
    })

    it('outlives a restart of the server (fault 45)', async () => {
      await subscriber.subscribe('a')
      await server.restart()
      await diary.until('resync')
      await publish('a', '0')
      await diary.until('a: 0')
      expect(diary.count('down')).toBe(1)
    })

    it('outlives many cuts in a row, also in the middle of coming back', async () => {
      await subscriber.subscribe('a')
      for (let i = 1; i <= 5; i += 1) {
        const gate = proxy.holdRequests('SUBSCRIBE')
        proxy.cutAll()
        await gate.caught()
        proxy.cutAll()
        gate.release()
        await diary.until('resync', i)
      }
      await publish('a', '0')
      await diary.until('a: 0')
    })

    it('rejects while the server is away, and has the channel once it is back', async () => {
      proxy.refuse()
      const error = await subscriber.subscribe('a').catch((e: unknown) => e)
      expect(error).toMatchObject({ name: 'PortError', kind: 'connection' })
      expect(String(error)).toMatch(/ECONNREFUSED/)
      await expect(subscriber.subscribe('b')).rejects.toMatchObject({ name: 'PortError' })
      await expect(subscriber.subscribe('c')).rejects.toMatchObject({ name: 'PortError' })
      await subscriber.unsubscribe('c')
      await proxy.accept()
      await diary.until('resync')
      expect(diary.lines).toEqual(['down', 'resync'])
      expect(await channels()).toEqual(['a', 'b'])
      await subscriber.subscribe('a')
      await publish('a', '0')
      await diary.until('a: 0')
      expect(diary.count('a: 0')).toBe(1)
    })

    it('does not reconnect for nobody', async () => {
      await subscriber.subscribe('a')
      await subscriber.unsubscribe('a')
      const [, id = ''] =
        /id=(\d+) .*cmd=unsubscribe /.exec(String(await server.send('CLIENT', 'LIST'))) ?? []
      await server.send('CLIENT', 'KILL', 'ID', id)
      await eventually(() => proxy.connections === 1, 'cut')
      await client.command('PING')
      expect(proxy.accepted).toBe(2)
      await subscriber.subscribe('b')
      await publish('b', '0')
      await diary.until('b: 0')
      expect(diary.lines).toEqual(['b: 0'])
    })

    it('rejects for a channel that the server refuses, and serves the others (fault tool P16)', async () => {
      await server.send(
        'ACL',
        'SETUSER',
        'app',
        'reset',
        'on',
        '>secret',
        '~*',
        'resetchannels',
        '&mine:*',
        '+@all',
      )
      await start({ username: 'app', password: 'secret' })
      await expect(subscriber.subscribe('foreign')).rejects.toMatchObject({ kind: 'refused' })
      await subscriber.subscribe('mine:a')
      await expect(subscriber.subscribe('foreign')).rejects.toMatchObject({ kind: 'refused' })
      await publish('mine:a', '0')
      await diary.until('mine:a: 0')
      expect(diary.lines).toEqual(['mine:a: 0'])
    })

    it('comes back when a channel is refused for a while', async () => {
      await server.send('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '~*', '&*', '+@all')
      await start({ username: 'app', password: 'secret' })
      await subscriber.subscribe('a')
      await subscriber.subscribe('b')
      // The server closes links whose user may no longer listen to what they listen to.
      await server.send('ACL', 'SETUSER', 'app', 'resetchannels', '&b')
      await diary.until('down')
      await eventually(async () => (await channels()).includes('b'), 'the other channel is back')
      await publish('b', '0')
      await diary.until('b: 0')
      expect(diary.count('resync')).toBe(0)
      await server.send('ACL', 'SETUSER', 'app', '&a')
      await diary.until('resync')
      expect(diary.count('down')).toBe(1)
      expect(await channels()).toEqual(['a', 'b'])
    })

    it('closes idempotently, and then refuses', async () => {
      await subscriber.subscribe('a')
      await Promise.all([subscriber.close(), subscriber.close()])
      await subscriber.close()
      await subscriber.unsubscribe('a')
      await expect(subscriber.subscribe('b')).rejects.toMatchObject({ kind: 'closed' })
      await eventually(() => proxy.connections === 1, 'the connection is gone')
      expect(await client.command('PING')).toBe('PONG')
      expect(diary.lines).toEqual([])
    })

    it('closes while it opens', async () => {
      const gate = proxy.holdReplies((reply) => reply.connection === 2)
      const subscribed = subscriber.subscribe('a').catch((error: unknown) => error)
      await gate.caught()
      await subscriber.close()
      gate.release()
      expect(await subscribed).toMatchObject({ kind: 'closed' })
      await eventually(() => proxy.connections === 1, 'the connection is gone')
      expect(diary.lines).toEqual([])
    })

    it('closes while it is down', async () => {
      await subscriber.subscribe('a')
      proxy.refuse()
      await server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await diary.until('down')
      await subscriber.close()
      const { accepted } = proxy
      await proxy.accept()
      await client.command('PING').catch(() => undefined)
      expect(proxy.accepted).toBeLessThanOrEqual(accepted + 1)
      expect(diary.lines).toEqual(['down'])
    })

    describe('over a client that the user keeps for it', () => {
      let theirs: OpenClient
      beforeEach(async () => {
        theirs = await open(variant, proxy.port)
        subscriber = subscriberFrom(theirs.raw, diary)
        const [own, opened] = [subscriber, theirs]
        clean.unshift(
          () => own.close(),
          () => {
            opened.destroy()
          },
        )
      })

      it('delivers, and opens no connection', async () => {
        await theirs.subscribe('theirs')
        await subscriber.subscribe('a')
        await subscriber.subscribe('b')
        expect(proxy.accepted).toBe(2)
        await publish('a', '0')
        await publish('theirs', '0')
        await publish('b', '0')
        await diary.until('b: 0')
        expect(diary.lines).toEqual(['a: 0', 'b: 0'])
      })

      it('is down and back with the client, without doubling', async () => {
        await subscriber.subscribe('a')
        await subscriber.subscribe('b')
        for (let i = 1; i <= 3; i += 1) {
          await server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
          await diary.until('resync', i)
          await subscriber.unsubscribe('b')
          await publish('a', String(i))
          await diary.until(`a: ${String(i)}`)
        }
        await publish('a', 'end')
        await diary.until('a: end')
        expect(diary.lines.filter((line) => line !== 'down' && line !== 'resync')).toEqual([
          'a: 1',
          'a: 2',
          'a: 3',
          'a: end',
        ])
        expect(diary.count('down')).toBe(3)
        expect(await channels()).toEqual(['a'])
      })

      it('does not close it, and leaves its listeners as they were', async () => {
        const events = ['message', 'close', 'end', 'error', 'ready', 'reconnecting']
        const before = events.map((event) => theirs.listeners(event))
        await theirs.subscribe('theirs')
        await subscriber.subscribe('a')
        await subscriber.close()
        await eventually(async () => (await channels()).join() === 'theirs', 'the own channel is given back')
        expect(events.map((event) => theirs.listeners(event))).toEqual(before)
        expect(proxy.connections).toBe(2)
      })

      it('says so when it is closed', async () => {
        theirs.destroy()
        await expect(subscriber.subscribe('a')).rejects.toMatchObject({ name: 'PortError' })
      })
    })

    it('neither keeps a process alive nor brings it down', async () => {
      const unused = await freePort()
      const program = `
        import { createPort } from ${JSON.stringify(new URL('../../src/engine/redis/clients/detect.ts', import.meta.url).href)}
        import { open, ${exportOf(variant)} as variant } from ${JSON.stringify(new URL('./variants.ts', import.meta.url).href)}
        const client = await open(variant, ${String(proxy.port)})
        let resyncs = 0
        const subscriber = createPort(client.raw).subscriber({ onMessage() {}, onDown() {}, onResync() { resyncs += 1 } })
        await subscriber.subscribe('child')
        await client.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
        while (resyncs === 0) await new Promise((resolve) => setTimeout(resolve, 5))
        // Another one finds nobody, and goes on trying.
        let refusals = 0
        const nobody = variant.create(${String(unused)})
        await createPort(nobody.raw).subscriber({ onMessage() {}, onDown() { refusals += 1 }, onResync() {} })
          .subscribe('child').catch(() => { refusals += 1 })
        await new Promise((resolve) => setTimeout(resolve, 300))
        if (refusals !== 2) console.log('refusals', refusals)
        client.destroy()
        // Nothing is closed, and nothing is left to do.
        process.on('exit', () => console.log('left by itself'))
      `
      const flags = [
        '--unhandled-rejections=strict',
        '--import',
        'tsx',
        '--input-type=module',
        '--eval',
        program,
      ]
      const printed = await new Promise<string>((resolve, reject) => {
        execFile(process.execPath, flags, { timeout: 20_000 }, (error, stdout, stderr) => {
          if (error === null) resolve(stdout + stderr)
          else reject(new Error(`${error.message}\n${stderr}`))
        })
      })
      expect(printed).toBe('left by itself\n')
    })
  })
}

function exportOf({ name }: Variant): string {
  return name.toUpperCase().replace(/[ -]/g, '_')
}
