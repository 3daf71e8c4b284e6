/** How an adapter sorts what a server refuses; the same for every client library. */
import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createPort } from '../../src/engine/redis/clients/detect.js'
import type { ClientPort } from '../../src/engine/redis/clients/port.js'
import { eventually } from '../support/eventually.js'
import { Link } from '../support/link.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { failure, HGET, INCR, passage, run, script, SET } from './calls.js'
import { open, type OpenClient, type Variant } from './variants.js'

const NOTHING_APPLIED = { outcome: 'not-applied' }
const UNAVAILABLE = { kind: 'unavailable', ...NOTHING_APPLIED }
const REFUSED = { kind: 'refused', ...NOTHING_APPLIED }

export function describeRefusals(variant: Variant): void {
  describe(`${variant.name} sorts refusals`, () => {
    let server: RedisServer
    let client: OpenClient
    let port: ClientPort

    beforeAll(async () => {
      server = await startRedis()
    })
    beforeEach(async () => {
      await server.send('FLUSHALL')
      client = await open(variant, server.port)
      port = createPort(client.raw)
    })
    afterEach(() => {
      client.destroy()
    })
    afterAll(async () => {
      await server.stop()
    })

    /** Runs `test` with some settings of the server, and takes them back. */
    async function configured(settings: Readonly<Record<string, string>>, test: () => Promise<void>) {
      const before = new Map<string, string>()
      for (const [name, value] of Object.entries(settings)) {
        const [, old] = (await server.send('CONFIG', 'GET', name)) as [string, string]
        before.set(name, old)
        await server.send('CONFIG', 'SET', name, value)
      }
      try {
        await test()
      } finally {
        for (const [name, value] of before) await server.send('CONFIG', 'SET', name, value)
      }
    }

    it('WRONGTYPE: another kind of value, and the call was certainly sent once', async () => {
      await server.send('SET', 'key', 'text')
      const sent = passage()
      const error = await failure(port.run({ script: HGET, keys: ['key'], args: [] }, sent))
      expect(error).toMatchObject({ name: 'PortError', kind: 'wrong-type' })
      expect(error.message).toMatch(/^WRONGTYPE/)
      expect(error.cause).toBeInstanceOf(Error)
      expect(sent.once).toBe(true)
    })

    it('OOM: unavailable (fault 117)', async () => {
      await run(port, SET, ['key'], ['value'])
      await configured({ maxmemory: '1', 'maxmemory-policy': 'noeviction' }, async () => {
        expect(await failure(run(port, SET, ['key'], ['value']))).toMatchObject(UNAVAILABLE)
      })
    })

    it('READONLY: unavailable', async () => {
      await server.send('REPLICAOF', '127.0.0.1', '1')
      try {
        expect(await failure(run(port, INCR))).toMatchObject(UNAVAILABLE)
      } finally {
        await server.send('REPLICAOF', 'NO', 'ONE')
      }
    })

    it('MASTERDOWN: unavailable', async () => {
      await run(port, INCR)
      await configured({ 'replica-serve-stale-data': 'no' }, async () => {
        await server.send('REPLICAOF', '127.0.0.1', '1')
        try {
          expect(await failure(run(port, INCR))).toMatchObject(UNAVAILABLE)
        } finally {
          await server.send('REPLICAOF', 'NO', 'ONE')
        }
      })
    })

    it('NOREPLICAS: unavailable', async () => {
      await configured({ 'min-replicas-to-write': '1' }, async () => {
        expect(await failure(run(port, INCR))).toMatchObject(UNAVAILABLE)
      })
    })

    it('MISCONF: unavailable (fault 117)', async () => {
      // Saving fails, because a folder is where the file should go.
      const obstacle = join(server.dir, 'dump.rdb')
      mkdirSync(obstacle)
      await configured({ save: '3600 1', 'stop-writes-on-bgsave-error': 'yes' }, async () => {
        await server.send('BGSAVE')
        await eventually(
          async () => /bgsave_status:err/.test(String(await server.send('INFO', 'persistence'))),
          'err',
        )
        expect(await failure(run(port, INCR))).toMatchObject(UNAVAILABLE)
      })
      rmdirSync(obstacle)
      await server.send('BGSAVE')
      await eventually(
        async () => /bgsave_status:ok/.test(String(await server.send('INFO', 'persistence'))),
        'ok',
      )
      expect(await run(port, INCR)).toBe(1)
    })

    it('LOADING: unavailable', async () => {
      await run(port, INCR)
      for (let i = 0; i < 100; i += 1) await server.send('SET', `load:${String(i)}`, 'x')
      await configured(
        { 'key-load-delay': '5000', 'loading-process-events-interval-bytes': '1024' },
        async () => {
          const link = await Link.open(server.port)
          const loaded = link.send('DEBUG', 'RELOAD')
          await eventually(async () => {
            const error = await run(port, INCR).catch((e: unknown) => e)
            if (typeof error === 'number') return false
            expect(error).toMatchObject(UNAVAILABLE)
            return true
          }, 'the server is loading')
          await loaded
          link.close()
        },
      )
    })

    it('BUSY with a script of somebody else: unavailable (fault tool P18)', async () => {
      await run(port, INCR)
      await configured({ 'busy-reply-threshold': '50' }, async () => {
        const link = await Link.open(server.port)
        const endless = link.send('EVAL', 'while true do end', '0').catch((error: unknown) => error)
        await eventually(
          () =>
            server.send('PING').then(
              () => false,
              () => true,
            ),
          'the server is busy',
        )
        expect(await failure(run(port, INCR))).toMatchObject(UNAVAILABLE)
        await server.send('SCRIPT', 'KILL')
        await endless
        link.close()
      })
    })

    it('NOPERM for scripts: refused', async () => {
      await server.send('ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '&*', '+@all', '-@scripting')
      const limited = await open(variant, server.port, { username: 'reader', password: 'secret' })
      expect(await failure(run(createPort(limited.raw), INCR))).toMatchObject(REFUSED)
      limited.destroy()
    })

    it('NOPERM for a command in a script: refused, and it may have done something before', async () => {
      await server.send('ACL', 'SETUSER', 'writer', 'on', '>secret', '~*', '&*', '+@all', '-publish')
      const limited = await open(variant, server.port, { username: 'writer', password: 'secret' })
      const both = script("redis.call('set', KEYS[1], 'x') return redis.call('publish', 'c', 'm')")
      const error = await failure(run(createPort(limited.raw), both))
      expect(error).toMatchObject({ kind: 'refused', outcome: 'unknown' })
      expect(await server.send('GET', 'key')).toBe('x')
      limited.destroy()
    })

    it.each([
      ['an unknown command', "redis.call('set', KEYS[1], 'x') return redis.call('nonsense')"],
      ['an error that the script raises', "redis.call('set', KEYS[1], 'x') error('boom')"],
      [
        'another type behind a write',
        "redis.call('set', KEYS[1], 'x') return redis.call('hget', KEYS[1], 'f')",
      ],
    ])('%s in a script: it may have done something before', async (_name, lua) => {
      const error = await failure(run(port, script(lua)))
      expect(error.outcome).toBe('unknown')
      expect(error.kind).toBe(lua.includes('hget') ? 'wrong-type' : 'refused')
      expect(await server.send('GET', 'key')).toBe('x')
    })

    it('a script that does not compile: refused', async () => {
      expect(await failure(run(port, script('this is no Lua')))).toMatchObject({ kind: 'refused' })
    })
  })
}
