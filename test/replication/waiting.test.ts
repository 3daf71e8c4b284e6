import { Holdfast, type HoldfastOptions } from 'holdfast'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { open, IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6, type Variant } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { startProxy, type Request } from '../support/proxy.js'
import { startRedis } from '../support/server.js'
import { actor, countOf, startReplicated, type Actor, type Replicated } from './stage.js'

type Take = (holdfast: Holdfast, name: string) => Promise<{ release(): Promise<unknown> } | null>

/** Everything whose grant has to be confirmed. */
const OBJECTS: Readonly<Record<string, Take>> = {
  lock: (holdfast, name) => holdfast.lock(name).tryAcquire(),
  mutex: (holdfast, name) => holdfast.mutex(name).tryAcquire(),
  fairLock: (holdfast, name) => holdfast.fairLock(name).tryAcquire(),
  fencedLock: (holdfast, name) => holdfast.fencedLock(name).tryAcquire(),
  spinLock: (holdfast, name) => holdfast.spinLock(name).tryAcquire(),
  'readWriteLock.read': (holdfast, name) => holdfast.readWriteLock(name).read.tryAcquire(),
  'readWriteLock.write': (holdfast, name) => holdfast.readWriteLock(name).write.tryAcquire(),
  multiLock: (holdfast, name) =>
    holdfast.multiLock([holdfast.lock(`${name}:1`), holdfast.lock(`${name}:2`)]).tryAcquire(),
  semaphore: (holdfast, name) => holdfast.semaphore(name, { permits: 2 }).tryAcquire(),
  permitSemaphore: (holdfast, name) => holdfast.permitSemaphore(name, { permits: 2 }).tryAcquire(),
}

describe.each([IOREDIS_5, IOREDIS_6, NODE_REDIS_5, NODE_REDIS_6])(
  'replication over $name',
  (variant: Variant) => {
    let servers: Replicated
    const open: Actor[] = []

    beforeAll(async () => {
      servers = await startReplicated()
    })
    afterEach(async () => {
      for (const replica of servers.replicas) replica.resume()
      await Promise.all(open.splice(0).map((one) => one[Symbol.asyncDispose]()))
      await servers.primary.send('FLUSHALL')
    })
    afterAll(() => servers[Symbol.asyncDispose]())

    async function start(options: HoldfastOptions): Promise<Actor> {
      const made = await actor(variant, servers, options)
      open.push(made)
      return made
    }

    it.each(Object.keys(OBJECTS))(
      '%s: a grant is confirmed by every replica before the caller has it',
      async (kind) => {
        const { holdfast } = await start({ replication: { acks: 'all' } })
        const take = OBJECTS[kind] as Take
        const before = await countOf(servers.primary, 'wait')
        const lease = await take(holdfast, 'orders')
        const keys = async (server: { send(...command: string[]): Promise<unknown> }): Promise<unknown> =>
          ((await server.send('KEYS', '*')) as string[]).sort()
        const held = await keys(servers.primary)
        for (const replica of servers.replicas) expect(await keys(replica)).toEqual(held)
        expect(held).not.toEqual([])
        expect(await countOf(servers.primary, 'wait')).toBeGreaterThan(before)
        await lease?.release()
      },
    )

    it.each(Object.keys(OBJECTS))(
      '%s: without a confirmation there is no grant, and nothing is left',
      async (kind) => {
        const { holdfast } = await start({ replication: { timeout: 150 } })
        const take = OBJECTS[kind] as Take
        // So that the number of permits is there.
        await (await take(holdfast, 'orders'))?.release()
        const before = await servers.primary.send('GET', 'orders').catch(() => 'no string')
        for (const replica of servers.replicas) replica.pause()
        await expect(take(holdfast, 'orders')).rejects.toMatchObject({
          code: 'HOLDFAST_REPLICATION',
          acks: 0,
          wanted: 1,
        })
        await eventually(() => holdfast.stats().compensating === 0, 'everything undone')
        expect(await servers.primary.send('GET', 'orders').catch(() => 'no string')).toEqual(before)
        for (const replica of servers.replicas) replica.resume()
        // A paused replica may have to connect anew.
        const taken = async (): Promise<boolean> => {
          const lease = await take(holdfast, 'orders').catch(() => null)
          await lease?.release()
          return lease !== null
        }
        await eventually(taken, 'a grant after the replicas are back')
      },
    )

    it("'all' needs each, 'majority' and 'any' one of two, a number so many", async () => {
      const timeout = 300
      servers.replicas[0].pause()
      const all = await start({ replication: { acks: 'all', timeout } })
      await expect(all.holdfast.lock('a').tryAcquire()).rejects.toMatchObject({ acks: 1, wanted: 2 })
      const two = await start({ replication: { acks: 2, timeout } })
      await expect(two.holdfast.lock('b').tryAcquire()).rejects.toMatchObject({ acks: 1, wanted: 2 })
      for (const acks of ['any', 'majority', 1] as const) {
        const { holdfast } = await start({ replication: { acks, timeout } })
        expect(await holdfast.lock(`c:${String(acks)}`).tryAcquire()).not.toBeNull()
      }
      servers.replicas[0].resume()
      const three = await start({ replication: { acks: 3, timeout } })
      await expect(three.holdfast.lock('d').tryAcquire()).rejects.toMatchObject({ acks: 2, wanted: 3 })
    })

    it('a script that the server had forgotten is waited for, too', async () => {
      const { holdfast, client } = await start({ replication: { timeout: 200 } })
      await holdfast.lock('a').using(() => undefined)
      await servers.primary.send('SCRIPT', 'FLUSH')
      // All that was written so far is confirmed: a WAIT ahead of the script would say so at once.
      await client.command('PING')
      expect(await client.command('WAIT', '2', '10000')).toBe(2)
      for (const replica of servers.replicas) replica.pause()
      await expect(holdfast.lock('a').tryAcquire()).rejects.toMatchObject({ acks: 0, wanted: 1 })
    })

    it('0 asks nobody', async () => {
      const { holdfast } = await start({ replication: { acks: 0 } })
      for (const replica of servers.replicas) replica.pause()
      const before = await countOf(servers.primary, 'wait')
      expect(await holdfast.lock('a').tryAcquire()).not.toBeNull()
      expect(await countOf(servers.primary, 'wait')).toBe(before)
    })

    it('whoever waits is granted, as another owner, when a replica is back', async () => {
      const { holdfast } = await start({ replication: { timeout: 100 } })
      const first = await holdfast.lock('a').acquire()
      await first.release()
      for (const replica of servers.replicas) replica.pause()
      const owners = new Set<string>()
      const watching = setInterval(() => {
        void servers.primary.send('HKEYS', 'a').then((fields) => {
          for (const field of fields as string[]) owners.add(field)
        })
      }, 10)
      const waiting = holdfast.lock('a').acquire({ waitTime: 20_000 })
      await eventually(() => owners.size > 1, 'a second attempt by another owner')
      for (const replica of servers.replicas) replica.resume()
      const lease = await waiting
      clearInterval(watching)
      expect(lease.held).toBe(true)
      expect(await servers.primary.send('HKEYS', 'a')).toEqual([lease.owner])
      await lease.release()
    })

    it('a replica that is away holds up neither the commands of the user nor renewals', async () => {
      const { holdfast, client } = await start({ lockWatchdogTimeout: 900, replication: { timeout: 900 } })
      const held = await holdfast.lock('held').acquire()
      for (const replica of servers.replicas) replica.pause()
      const names = Array.from({ length: 12 }, (_, index) => `busy:${String(index)}`)
      const before = await countOf(servers.primary, 'wait')
      let settled = 0
      const takers = names.map((name) =>
        holdfast
          .lock(name)
          .acquire({ waitTime: 2_000 })
          .catch((error: unknown) => error)
          .finally(() => {
            settled += 1
          }),
      )
      await eventually(
        async () => String(await servers.primary.send('CLIENT', 'LIST')).includes(' cmd=wait '),
        'a WAIT under way',
      )
      for (let index = 0; index < 20; index += 1) expect(await client.command('PING')).toBe('PONG')
      expect(settled).toBe(0)
      const outcomes = await Promise.all(takers)
      for (const outcome of outcomes) expect(outcome).toMatchObject({ code: 'HOLDFAST_REPLICATION' })
      // Longer than the key would have lived without a renewal.
      expect(held.held).toBe(true)
      // All of them share the waits.
      expect((await countOf(servers.primary, 'wait')) - before).toBeLessThan(names.length)
      await held.release()
    })
  },
)

describe.each([IOREDIS_6, NODE_REDIS_6])(
  'the question how many replicas there are, over $name',
  (variant) => {
    it('is asked again if its answer does not come, while the link stays up', async () => {
      await using server = await startRedis()
      using proxy = await startProxy({ port: server.port })
      const client = await open(variant, proxy.port)
      const holdfast = new Holdfast(client.raw as object, { commandTimeout: 300 })
      const isQuestion = ({ words }: Request): boolean => words.join(' ') === 'INFO replication'
      const gate = proxy.holdReplies(({ request }) => request !== undefined && isQuestion(request))
      const waiting = holdfast.lock('a').acquire({ waitTime: 10_000 })
      await eventually(() => proxy.count(isQuestion) > 1, 'a second question')
      gate.release()
      const lease = await waiting
      expect(lease.held).toBe(true)
      expect(proxy.connections).toBe(1)
      await lease.release()
      await holdfast.close()
      client.destroy()
    })
  },
)

describe('the option replication', () => {
  it.each([
    [{ acks: -1 }, /replication\.acks .* from 0 .* -1/],
    [{ acks: 1.5 }, /replication\.acks .* 1\.5/],
    [{ acks: 'most' }, /replication\.acks .* "most"/],
    [{ acks: null }, /replication\.acks .* null/],
    [{ timeout: 0 }, /replication\.timeout .* from 1 .* 0/],
    [{ timeout: 3_000 }, /replication\.timeout must be less than commandTimeout \(3000\), but is 3000/],
    [{ ack: 1 }, /Unknown key 'ack' in replication/],
    [null, /replication must be an object, but are null|replication .* null/],
  ])('%o is refused before anything is sent', async (replication, message) => {
    await expect(Holdfast.connect('memory:', { replication } as never)).rejects.toThrow(message)
  })
})
