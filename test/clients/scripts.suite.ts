/** How an adapter runs scripts; the same for every client library. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createPort } from '../../src/engine/redis/clients/detect.js'
import type { ClientPort } from '../../src/engine/redis/clients/port.js'
import { startProxy, type Proxy } from '../support/proxy.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { commandCounts, ECHO, failure, INCR, passage, run, script } from './calls.js'
import { open, untilEpoch, type OpenClient, type Settings, type Variant } from './variants.js'

export function describeScripts(variant: Variant): void {
  describe(`${variant.name} runs scripts`, () => {
    let server: RedisServer
    let proxy: Proxy
    let client: OpenClient
    let port: ClientPort
    const others: OpenClient[] = []

    beforeAll(async () => {
      server = await startRedis()
    })
    beforeEach(async () => {
      await server.send('FLUSHALL')
      await server.send('SCRIPT', 'FLUSH')
      proxy = await startProxy({ port: server.port })
      client = await open(variant, proxy.port)
      port = createPort(client.raw)
    })
    afterEach(async () => {
      await port.close()
      client.destroy()
      for (const other of others.splice(0)) other.destroy()
      proxy.close()
    })
    afterAll(async () => {
      await server.stop()
    })

    /** A port over a client with other settings, through the same proxy. */
    async function portWith(settings: Settings): Promise<ClientPort> {
      const other = await open(variant, proxy.port, settings)
      others.push(other)
      return createPort(other.raw)
    }

    it('sends EVALSHA, and EVAL only while the server does not know the script', async () => {
      await run(port, INCR)
      await server.send('CONFIG', 'RESETSTAT')
      expect(await run(port, INCR)).toBe(2)
      expect(await commandCounts(server)).toMatchObject({ evalsha: 1 })
      expect(await commandCounts(server)).not.toHaveProperty('eval')
      await server.send('SCRIPT', 'FLUSH')
      await server.send('CONFIG', 'RESETSTAT')
      expect(await run(port, INCR)).toBe(3)
      expect(await run(port, INCR)).toBe(4)
      expect(await commandCounts(server)).toMatchObject({ evalsha: 2, eval: 1, incr: 2 })
    })

    it('writes down how a call travelled', async () => {
      const before = performance.now()
      const first = passage()
      await port.run({ script: INCR, keys: ['key'], args: [] }, first)
      const second = passage()
      await port.run({ script: INCR, keys: ['key'], args: [] }, second)
      expect(first).toMatchObject({ sends: 2, once: true })
      expect(second).toMatchObject({ sends: 1, once: true })
      expect(second.firstSentAtMs).toBe(second.lastSentAtMs)
      const times = [before, first.firstSentAtMs, first.lastSentAtMs, second.firstSentAtMs, performance.now()]
      expect(times).toEqual([...times].sort((a, b) => a - b))
    })

    it('cannot say "once" of a passage that was used before', async () => {
      const used = passage()
      await port.run({ script: INCR, keys: ['key'], args: [] }, used)
      await port.run({ script: INCR, keys: ['key'], args: [] }, used)
      expect(used).toMatchObject({ sends: 3, once: false })
    })

    it('stamps passages with the clock that it is given', async () => {
      const { ManualClock } = await import('../../src/clock.js')
      const clock = new ManualClock()
      clock.block(12_345)
      const stamped = passage()
      await createPort(client.raw, clock).run({ script: INCR, keys: ['key'], args: [] }, stamped)
      expect(stamped).toMatchObject({ firstSentAtMs: 12_345, lastSentAtMs: 12_345 })
    })

    const REPLIES: readonly (readonly [lua: string, reply: unknown])[] = [
      ['return 7', 7],
      ['return -4503599627370497', -4503599627370497],
      ["return '7'", '7'],
      ["return ''", ''],
      ["return redis.status_reply('FINE')", 'FINE'],
      ['return false', null],
      ['return true', 1],
      ['return {}', []],
      [
        "return {1, '1', false, {2, {'b', 3}}, redis.status_reply('OK')}",
        [1, '1', null, [2, ['b', 3]], 'OK'],
      ],
      ["redis.call('hset', KEYS[1], 'f', '1') return redis.call('hgetall', KEYS[1])", ['f', '1']],
      [
        "redis.setresp(3) redis.call('hset', KEYS[1], 'f', '1') return redis.call('hgetall', KEYS[1])",
        ['f', '1'],
      ],
      ["redis.setresp(3) redis.call('sadd', KEYS[1], 'm') return redis.call('smembers', KEYS[1])", ['m']],
    ]
    const SETTINGS: readonly (readonly [string, Settings])[] = [
      ['default settings', {}],
      ['RESP2', { resp: 2 }],
      ['RESP3', { resp: 3 }],
      ['odd replies over RESP2', { oddReplies: true, resp: 2 }],
      ['odd replies over RESP3', { oddReplies: true, resp: 3 }],
    ]
    it.each(SETTINGS)('gives replies in one form, with %s', async (_name, settings) => {
      const other = await portWith(settings)
      for (const [lua, reply] of REPLIES) {
        await server.send('DEL', 'key')
        expect(await run(other, script(lua)), lua).toEqual(reply)
      }
    })

    it.each(SETTINGS)('carries any text both ways, with %s', async (_name, settings) => {
      const texts = [
        '',
        ' ',
        'ключ',
        '🔒\u0000\r\n',
        '"\\',
        '\uFEFFx',
        '007',
        '$5\r\nhello',
        'a'.repeat(70_000),
      ]
      expect(await run(await portWith(settings), ECHO, ['{k}', ...texts], texts)).toEqual([
        ['{k}', ...texts],
        texts,
      ])
    })

    it('uses the database of the client', async () => {
      await run(await portWith({ database: 3 }), INCR, ['there'])
      expect(
        await run(port, script("redis.call('select', 3) return redis.call('get', KEYS[1])"), ['there']),
      ).toBe('1')
    })

    it('hands calls over in the tick in which they are made, without waiting for replies', async () => {
      await run(port, INCR)
      const gate = proxy.holdReplies('EVALSHA')
      const passages = Array.from({ length: 64 }, passage)
      const calls = passages.map((p) => port.run({ script: INCR, keys: ['key'], args: [] }, p))
      expect(passages.every(({ sends }) => sends === 1)).toBe(true)
      await gate.caught()
      await gate.caught()
      gate.release()
      expect(await Promise.all(calls)).toEqual(passages.map((_, i) => i + 2))
      expect(passages.every(({ once }) => once)).toBe(true)
    })

    it('sends nothing for a call that was given up before', async () => {
      const before = proxy.requests.length
      const given = { ...passage(), abandoned: true }
      const error = await failure(port.run({ script: INCR, keys: ['key'], args: [] }, given))
      expect(error).toMatchObject({ kind: 'abandoned', outcome: 'not-applied' })
      expect(given.sends).toBe(0)
      expect(proxy.requests.length).toBe(before)
    })

    it('does not send the text of a script behind NOSCRIPT once the call was given up', async () => {
      const gate = proxy.holdReplies('EVALSHA')
      const given = passage()
      const result = failure(port.run({ script: INCR, keys: ['key'], args: [] }, given))
      await gate.caught()
      given.abandoned = true
      gate.release()
      expect(await result).toMatchObject({ kind: 'abandoned', outcome: 'not-applied' })
      expect(given.sends).toBe(1)
      expect(proxy.count('EVAL')).toBe(0)
      expect(await server.send('GET', 'key')).toBeNull()
    })

    it('does not put the text of a script into a queue when the link is given up behind NOSCRIPT', async () => {
      let looks = 0
      const sent = Object.defineProperty(passage(), 'abandoned', {
        get: () => {
          looks += 1
          // The second look comes between NOSCRIPT and the next command.
          if (looks === 2) client.destroy()
          return false
        },
      })
      const error = await failure(port.run({ script: INCR, keys: ['key'], args: [] }, sent))
      expect(error).toMatchObject({ kind: 'connection', outcome: 'not-applied' })
      expect(sent.sends).toBe(1)
      expect(proxy.count('EVAL')).toBe(0)
    })

    it('tells that a call may have been sent twice when the link broke under it', async () => {
      await run(port, INCR)
      proxy.dropReply('EVALSHA')
      const cut = passage()
      const result = port.run({ script: INCR, keys: ['key'], args: [] }, cut)
      if (variant.resends) {
        expect(await result).toBe(3)
      } else {
        expect(await failure(result)).toMatchObject({ kind: 'connection', outcome: 'unknown' })
        expect(await server.send('GET', 'key')).toBe('2')
      }
      expect(cut).toMatchObject({ sends: 1, once: false })
      await untilEpoch(client, 2)
      const next = passage()
      await port.run({ script: INCR, keys: ['key'], args: [] }, next)
      expect(next.once).toBe(true)
    })

    it('does not vouch for a call that it handed over right when the link broke', async () => {
      await run(port, INCR)
      proxy.cutAll()
      const late = passage()
      const result = port.run({ script: INCR, keys: ['key'], args: [] }, late)
      await result.catch(() => undefined)
      expect(late.once).toBe(false)
    })

    it('calls a call of unknown outcome when the client closes under it', async () => {
      await run(port, INCR)
      const gate = proxy.holdReplies('EVALSHA')
      const result = failure(port.run({ script: INCR, keys: ['key'], args: [] }, passage()))
      await gate.caught()
      client.destroy()
      expect(await result).toMatchObject({ kind: 'connection', outcome: 'unknown' })
      expect(port.readiness).toBe('closed')
    })

    if (variant.resends) {
      it('takes NOSCRIPT for no proof when the script was sent again', async () => {
        await run(port, INCR)
        proxy.refuse()
        proxy.dropReply('EVALSHA')
        const cut = passage()
        const result = port.run({ script: INCR, keys: ['key'], args: [] }, cut)
        await expect.poll(() => server.send('GET', 'key')).toBe('2')
        await server.send('SCRIPT', 'FLUSH')
        await proxy.accept()
        expect(await result).toBe(3)
        expect(cut).toMatchObject({ sends: 2, once: false })
      })

      it('takes no refusal for proof when the script was sent again', async () => {
        await run(port, INCR)
        proxy.refuse()
        proxy.dropReply('EVALSHA')
        const result = failure(run(port, INCR))
        await expect.poll(() => server.send('GET', 'key')).toBe('2')
        await server.send('CONFIG', 'SET', 'maxmemory', '1')
        await proxy.accept()
        expect(await result).toMatchObject({ kind: 'unavailable', outcome: 'unknown' })
        await server.send('CONFIG', 'SET', 'maxmemory', '0')
      })
    }

    it('refuses a reply out of a transaction that somebody has open on the connection', async () => {
      await run(port, INCR)
      await client.command('MULTI')
      const error = await failure(run(port, INCR))
      expect(error).toMatchObject({ kind: 'refused', outcome: 'unknown' })
      expect(error.message).toMatch(/MULTI/)
      await client.command('DISCARD')
    })

    it('closes idempotently, and never the client', async () => {
      await port.close()
      await port.close()
      expect(await client.command('PING')).toBe('PONG')
      expect(port.readiness).toBe('ready')
    })
  })
}
