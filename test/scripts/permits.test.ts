/** The state that each script of the permit semaphore leaves: keys, scores, TTLs, messages. */
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { permitId } from '../peer/permit-semaphore.js'
import { serverTime, text, zset } from '../peer/snapshot.js'
import { raw } from '../support/raw.js'
import {
  onPermitServer,
  A,
  B,
  C,
  D,
  DEAD,
  ENDLESS,
  MARK,
  N,
  T,
  Z,
  acquire,
  add,
  addPermits,
  count,
  give,
  link,
  on,
  peer,
  recorder,
  release,
  renew,
  run,
  seed,
  set,
  told,
  trySet,
  update,
  server,
} from './permits-stage.js'

onPermitServer()

describe('permits/acquire', () => {
  test('uninitialised: nobody has said how many there are, and nothing is left behind', async () => {
    expect(await acquire([A])).toEqual({ reply: { outcome: 'uninitialised' }, keys: {}, messages: [] })
  })

  test('the table of the wire: for ever, then with a lease, then the wait for the first to expire', async () => {
    await trySet(2)
    const first = await acquire([A], { leaseMs: Number.MAX_SAFE_INTEGER })
    expect(first.reply).toEqual({ outcome: 'granted', left: '1', ttlMs: 0 })
    expect(first.keys).toMatchObject({ [N]: text(1, 'none'), [Z]: zset({ [A]: ENDLESS }) })
    const second = await acquire([B], { leaseMs: 6_000 })
    expect(second).toMatchObject({
      reply: { outcome: 'granted', left: '0' },
      keys: { [N]: text(0, 'none'), [Z]: zset({ [A]: ENDLESS, [B]: T + 6_000 }) },
      messages: [],
    })
    const third = await acquire([C])
    const restMs = T + 6_000 - (await serverTime(link))
    expect(third).toMatchObject({ reply: { outcome: 'busy' }, keys: second.keys, messages: [] })
    expect(third.reply).toHaveProperty(
      'ttlMs',
      expect.toSatisfy((ms: number) => ms >= restMs && ms < restMs + 5_000),
    )
    expect(await peer.tryAcquire()).toEqual({ ids: undefined, nextExpiry: T + 6_000 })
  })

  test("a permit of the peer's that has expired is taken by the next one, and its return is told", async () => {
    await peer.trySet(2)
    await peer.tryAcquire({ ids: [A], now: 0 })
    await peer.tryAcquire({ ids: [B], now: 0, leaseMs: 6_000 })
    expect((await acquire([C], { nowMs: 5_999 })).reply).toEqual({
      outcome: 'busy',
      available: '0',
      total: '2',
      ttlMs: 1,
    })
    const recycled = await acquire([C], { nowMs: 6_000 })
    expect(recycled.reply).toMatchObject({ outcome: 'granted', left: '0' })
    expect(recycled.messages).toEqual(told(1))
    expect(await peer.ids()).toEqual([C, A])
  })

  test('does with what has expired what the peer does with it', async () => {
    const ids = [A, B, C, D]
    const theirs = async (wanted: number) => {
      await recorder.clear()
      await seed(1, Object.fromEntries(ids.map((id, i) => [id, 1_000 + i])))
      return recorder.act(() =>
        peer.tryAcquire({ ids: ids.map(flipped).slice(0, wanted), leaseMs: 1_000, now: T }),
      )
    }
    const ours = async (wanted: number) => {
      await recorder.clear()
      await seed(1, Object.fromEntries(ids.map((id, i) => [id, 1_000 + i])))
      return acquire(ids.map(flipped).slice(0, wanted), { leaseMs: 1_000, nowMs: T })
    }
    for (const wanted of [1, 2, 3, 4]) {
      const expected = await theirs(wanted)
      expect(await ours(wanted), `${wanted} wanted`).toMatchObject({
        keys: expected.keys,
        messages: expected.messages,
      })
    }
  })

  test('all or none; who gets none is told how many there are', async () => {
    await seed(2)
    expect(await acquire([A, B, C])).toEqual({
      reply: { outcome: 'busy', available: '2', total: '2', ttlMs: -1 },
      keys: { [N]: text(2, 'none') },
      messages: [],
    })
    expect(await acquire([A, B])).toMatchObject({
      reply: { outcome: 'granted', left: '0' },
      keys: { [N]: text(0, 'none'), [Z]: zset({ [A]: T + 30_000, [B]: T + 30_000 }) },
    })
  })

  test('the first one sets the number, and tells it', async () => {
    expect(await acquire([A], { total: 3 })).toEqual({
      reply: { outcome: 'granted', left: '2', ttlMs: 0 },
      keys: { [N]: text(2, 'none'), [Z]: zset({ [A]: T + 30_000 }) },
      messages: told(3),
    })
    expect((await acquire([B], { total: 7 })).keys).toMatchObject({ [N]: text(1, 'none') })
  })

  test('a number that was removed under permits that are out comes back without them', async () => {
    await seed(0, { [A]: T + 5_000, [B]: 1_000 })
    await link.command('DEL', N)
    const step = await acquire([C], { total: 2 })
    expect(step.reply).toMatchObject({ outcome: 'granted', left: '0' })
    expect(step.keys).toEqual({ [N]: text(0, 'none'), [Z]: zset({ [A]: T + 5_000, [C]: T + 30_000 }) })
  })

  test('a repeated attempt finds its permits, and raises their expiry only', async () => {
    await seed(3)
    await acquire([A, B], { leaseMs: 30_000 })
    for (const [leaseMs, restMs] of [
      [10_000, 30_000],
      [60_000, 60_000],
    ] as const)
      expect(await acquire([A, B], { leaseMs })).toEqual({
        reply: { outcome: 'granted', left: '1', ttlMs: 0 },
        keys: { [N]: text(1, 'none'), [Z]: zset({ [A]: T + restMs, [B]: T + restMs }) },
        messages: [],
      })
  })

  test('a repeated attempt of which one permit was taken back meanwhile takes all of them anew', async () => {
    await seed(3)
    await acquire([A, B])
    await give([A])
    const step = await acquire([A, B], { leaseMs: 60_000 })
    expect(step.reply).toMatchObject({ outcome: 'granted', left: '1' })
    expect(step.keys).toEqual({ [N]: text(1, 'none'), [Z]: zset({ [A]: T + 60_000, [B]: T + 60_000 }) })
  })

  test('dead: an entombed owner takes nothing', async () => {
    await seed(3)
    await link.command('SET', DEAD + A, '1', 'PX', 60_000)
    const step = await acquire([A, B])
    expect(step.reply).toEqual({ outcome: 'dead' })
    expect(step.keys[N]).toEqual(text(3, 'none'))
    expect(step.keys).not.toHaveProperty([Z])
  })

  test('makes up for a total that was lowered under what is out', async () => {
    await seed(-2, { [A]: 1_000, [B]: 1_001, [C]: 1_002, [D]: T })
    const step = await acquire([flipped(A)])
    expect(step.reply).toMatchObject({ outcome: 'granted', left: '0' })
    expect(step.messages).toEqual(told(1))
  })

  test('the leases live as long as the number, and no shorter than before', async () => {
    const ends = async (key: string) => Number(await link.command('PEXPIRETIME', key))
    await seed(5)
    await link.command('PEXPIRE', N, 60_000)
    await acquire([A])
    expect(Math.abs((await ends(Z)) - (await ends(N)))).toBeLessThanOrEqual(2)
    await link.command('PEXPIRE', Z, 90_000)
    const before = [await ends(N), await ends(Z)]
    await acquire([B])
    expect([await ends(N), await ends(Z)]).toEqual(before)
    await link.command('PERSIST', N)
    await acquire([C])
    expect([await ends(N), await ends(Z)]).toEqual([-1, -1])
  })

  test('an expiry counts from the clock that is ahead, and has come by the one that is behind', async () => {
    await seed(1)
    const nowMs = (await serverTime(link)) - 60_000
    await acquire([A], { nowMs, leaseMs: 20_000 })
    const [, score] = await scoreOf(A)
    expect(score).toBeGreaterThanOrEqual(nowMs + 80_000)
    // Somebody who is a minute ahead does not take it away.
    expect((await acquire([B], { nowMs: nowMs + 120_000 })).reply).toMatchObject({ outcome: 'busy' })
    await link.command('FLUSHALL')
    await seed(0, { [A]: (await serverTime(link)) - 10_000 })
    expect((await acquire([B], { nowMs })).reply).toMatchObject({ outcome: 'busy' })
    expect((await acquire([B], { nowMs: nowMs + 120_000 })).reply).toMatchObject({ outcome: 'granted' })
  })
})

describe('permits/release', () => {
  test('released: one permit tells what is available, several tell how many they are', async () => {
    await seed(2, { [A]: T, [B]: T, [C]: T })
    expect(await release([A])).toEqual({
      reply: { outcome: 'released' },
      keys: { [N]: text(3, 'none'), [Z]: zset({ [B]: T, [C]: T }) },
      messages: told(3),
    })
    expect(await release([B, C])).toEqual({
      reply: { outcome: 'released' },
      keys: { [N]: text(5, 'none') },
      messages: told(2),
    })
  })

  test('gone: a repeated release adds nothing and tells nothing', async () => {
    await seed(2, { [A]: T })
    await release([A])
    expect(await release([A])).toEqual({
      reply: { outcome: 'gone' },
      keys: { [N]: text(3, 'none') },
      messages: [],
    })
  })

  test('gone in part: the rest goes back, too', async () => {
    await seed(2, { [B]: T })
    expect(await release([A, B])).toEqual({
      reply: { outcome: 'gone' },
      keys: { [N]: text(3, 'none') },
      messages: told(1),
    })
  })

  test('never tells a negative number', async () => {
    await seed(-4, { [A]: T })
    expect(await release([A])).toMatchObject({ keys: { [N]: text(-3, 'none') }, messages: told(0) })
  })

  test('does not begin a number that is missing', async () => {
    await add(A, T)
    expect(await release([A])).toEqual({ reply: { outcome: 'released' }, keys: {}, messages: told(1) })
  })

  test('leaves a tombstone where it is asked for, whether it finds permits or not', async () => {
    await seed(2, { [A]: T })
    for (const outcome of ['released', 'gone'])
      expect(await release([A], { entombMs: 60_000 })).toMatchObject({
        reply: { outcome },
        keys: { [N]: text(3, 'none'), [DEAD + A]: text(1, 60_000) },
      })
  })
})

describe('permits/give', () => {
  test.each([true, false])('gives back what is out, as the peer does (all: %s)', async (all) => {
    await seed(2, { [A]: T, [B]: T, [C]: T })
    expect(await give([A], { all, nowMs: 0 })).toEqual({
      reply: { outcome: 'released', number: 1 },
      keys: { [N]: text(3, 'none'), [Z]: zset({ [B]: T, [C]: T }) },
      messages: told(3),
    })
    expect(await give([B, C], { all, nowMs: 0 })).toEqual({
      reply: { outcome: 'released', number: 2 },
      keys: { [N]: text(5, 'none') },
      messages: told(2),
    })
  })

  test('two expired and three live: none, or the three', async () => {
    const ids = Array.from({ length: 5 }, permitId)
    const nowMs = await serverTime(link)
    const out = Object.fromEntries(ids.map((id, i) => [id, i < 2 ? nowMs - 1_000 : T]))
    await seed(0, out)
    expect(await give(ids, { nowMs })).toEqual({
      reply: { outcome: 'none' },
      keys: { [N]: text(0, 'none'), [Z]: zset(out) },
      messages: [],
    })
    const step = await give(ids, { nowMs, all: false })
    expect(step.reply).toEqual({ outcome: 'released', number: 3 })
    expect(step.keys[N]).toEqual(text(3, 'none'))
    expect(step.messages).toEqual(told(3))
  })

  test('none: unknown ids, and those of old versions, which stood there as text', async () => {
    await seed(2)
    await link.command('ZADD', Z, T, A)
    for (const all of [true, false])
      expect(await give([A], { all, nowMs: 0 })).toMatchObject({
        reply: { outcome: 'none' },
        keys: { [N]: text(2, 'none'), [Z]: zset({ [A]: T }) },
        messages: [],
      })
  })
})

describe('permits/renew', () => {
  test('raises what is out and tells what is not', async () => {
    await seed(0, { [A]: T + 5_000, [B]: T + 90_000, [C]: 1_000, [D]: ENDLESS })
    const owners = [A, `${A},${B}`, C, flipped(A), `${A},${C}`, D]
    expect(await renew(owners)).toEqual({
      reply: { results: [1, 1, 0, 0, 0, 1] },
      keys: {
        [N]: text(0, 'none'),
        [Z]: zset({ [A]: T + 30_000, [B]: T + 90_000, [C]: 1_000, [D]: ENDLESS }),
      },
      messages: [],
    })
  })

  test('nothing is renewed of an owner of which something is gone', async () => {
    await seed(0, { [A]: T + 5_000 })
    const { reply, keys } = await renew([`${A},${B}`])
    expect(reply).toEqual({ results: [0] })
    expect(keys[Z]).toEqual(zset({ [A]: T + 5_000 }))
  })

  test('tells what is of another type, and goes on', async () => {
    await seed(0, { [A]: T + 5_000 })
    await link.command('RPUSH', 'list', 'theirs')
    const step = await run(scripts.permitsRenew, {
      leases: ['list', Z],
      nowMs: T,
      ttlMs: 30_000,
      owners: [A, A],
    })
    expect(step.reply).toEqual({ results: [-1, 1] })
  })
})

describe('permits/update and permits/rest', () => {
  const rest = (id: string, nowMs = 0) => run(scripts.permitsRest, { leases: Z, nowMs, id })

  test('an expiry is set sooner and later; what has expired or was never out stays as it is', async () => {
    const nowMs = await serverTime(link)
    await seed(0, { [A]: T, [B]: nowMs - 1 })
    expect((await update(A, 5_000)).keys[Z]).toMatchObject({ value: { [A]: T + 5_000 } })
    expect((await update(A, 90_000)).keys[Z]).toMatchObject({ value: { [A]: T + 90_000 } })
    for (const id of [B, C]) {
      const step = await update(id, 5_000)
      expect(step.reply).toEqual({ outcome: 'gone' })
      expect(step.keys[Z]).toEqual(zset({ [A]: T + 90_000, [B]: nowMs - 1 }))
    }
  })

  test('a late copy changes nothing, and answers as the first one did', async () => {
    await seed(0, { [A]: T })
    expect(await update(A, 5_000, MARK)).toMatchObject({
      reply: { outcome: 'updated' },
      keys: { [Z]: zset({ [A]: T + 5_000 }), [MARK]: text('set', 60_000) },
    })
    await update(A, 90_000)
    expect(await update(A, 5_000, MARK)).toMatchObject({
      reply: { outcome: 'updated' },
      keys: { [Z]: zset({ [A]: T + 90_000 }) },
    })
  })

  test('the rest is told; that of a permit for ever is -1', async () => {
    await seed(0, { [A]: 6_000, [B]: ENDLESS })
    expect((await rest(A)).reply).toEqual({ outcome: 'held', ttlMs: 6_000 })
    expect((await rest(B)).reply).toEqual({ outcome: 'held', ttlMs: -1 })
    expect((await rest(A, 6_000)).reply).toEqual({ outcome: 'gone' })
    expect((await rest(C)).reply).toEqual({ outcome: 'gone' })
  })
})

describe('permits/count', () => {
  test('counts, takes back what has expired, and tells of it', async () => {
    await seed(1, { [A]: 1_000, [B]: 2_000, [C]: T })
    expect(await count(1_500)).toEqual({
      reply: { outcome: 'counted', available: '2', acquired: 2 },
      keys: { [N]: text(2, 'none'), [Z]: zset({ [B]: 2_000, [C]: T }) },
      messages: told(2),
    })
    expect(await count(1_500)).toMatchObject({
      reply: { outcome: 'counted', available: '2', acquired: 2 },
      messages: [],
    })
  })

  test('a number that is missing', async () => {
    expect((await count()).reply).toEqual({ outcome: 'uninitialised', acquired: 0 })
    await add(A, T)
    expect(await count(0)).toMatchObject({ reply: { outcome: 'uninitialised', acquired: 1 }, messages: [] })
  })

  test('so many that no Lua call takes them at once are right from the first look, and gone after some', async () => {
    await seed(1)
    const fill = `for i = 1, 20000 do redis.call('ZADD', KEYS[1], i, 'expired' .. i) end`
    await link.command('EVAL', fill, 1, Z)
    await add(A, T)
    const first = await count(20_000)
    expect(first.reply).toEqual({ outcome: 'counted', available: '20001', acquired: 1 })
    expect((await acquire([B], { nowMs: 20_000 })).reply).toMatchObject({ outcome: 'granted' })
    for (let i = 0; i < 20; i++) await count(20_000)
    const last = await count(20_000)
    expect(last.reply).toEqual({ outcome: 'counted', available: '20000', acquired: 2 })
    expect(last.keys[N]).toEqual(text(20_000, 'none'))
  })
})

describe('what is in the way', () => {
  const everything = () => [
    () => acquire([A], { total: 3 }),
    () => release([A]),
    () => give([A]),
    () => count(),
    () => set(3),
    () => trySet(3),
    () => addPermits(1),
  ]

  test.each(['12 monkeys', '007', '-0', '+1', '1.0', '9007199254740992', '9223372036854775807', ''])(
    "foreign: somebody's text under the name is left alone: %j",
    async (data) => {
      await link.command('SET', N, data)
      await add(D, T)
      for (const step of everything()) {
        const { reply, keys } = await step()
        expect(reply).toEqual({ outcome: 'foreign' })
        expect(keys).toEqual({ [N]: text(data, 'none'), [Z]: zset({ [D]: T }) })
      }
    },
  )

  test.each([N, Z])('another type under %s stops everything before the first write', async (key) => {
    if (key === Z) await link.command('SET', N, 3)
    await link.command('RPUSH', key, 'theirs')
    const { keys } = await recorder.act(() => Promise.resolve())
    // A number is read in the leases' place only by those that need them.
    for (const step of key === N ? everything() : everything().slice(0, 4)) {
      await expect(step()).rejects.toThrow(/WRONGTYPE/)
      expect((await recorder.act(() => Promise.resolve())).keys).toEqual(keys)
    }
  })

  test('a full server: nothing new is taken, but what is held is renewed and given back', async () => {
    await seed(2, { [A]: T + 1_000, [B]: T, [C]: T })
    await link.command('CONFIG', 'SET', 'maxmemory', '1mb')
    try {
      await expect(acquire([D])).rejects.toThrow(/OOM/)
      expect((await renew([A])).keys[Z]).toMatchObject({ value: { [A]: T + 30_000 } })
      expect((await update(B, 5_000)).keys[Z]).toMatchObject({ value: { [B]: T + 5_000 } })
      expect((await release([A], { entombMs: 60_000 })).reply).toEqual({ outcome: 'released' })
      expect((await give([B], { nowMs: 0 })).reply).toEqual({ outcome: 'released', number: 1 })
      expect((await count()).reply).toEqual({ outcome: 'counted', available: '4', acquired: 1 })
    } finally {
      await link.command('CONFIG', 'SET', 'maxmemory', '0')
    }
  })

  test('the documented rights are enough for everything', async () => {
    const page = await readFile(new URL('../../docs/protocol.md', import.meta.url), 'utf8')
    const block = /## Permissions[\s\S]*?```\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
    const rights = block.replace(/\(for .*\)/g, '').replace('~<your names>', `~${N}`)
    await link.command('ACL', 'SETUSER', 'app', 'on', 'nopass', ...rights.trim().split(/\s+/))
    const app = await raw(server.port)
    await app.command('AUTH', 'app', 'x')
    await seed(3, { [D]: 1_000 })
    for (const step of [
      () => acquire([A, B], { via: app }),
      () => renew([`${A},${B}`], { via: app }),
      () => release([A, B], { via: app, entombMs: 60_000 }),
      () => run(scripts.permitsGive, { ...on, nowMs: T, all: 0, ids: [C] }, app),
      () => run(scripts.permitsCount, { ...on, nowMs: T }, app),
      () =>
        run(
          scripts.permitsUpdate,
          { leases: Z, request: `${MARK}5`, nowMs: T, leaseMs: 5, markMs: 60_000, id: C },
          app,
        ),
      () => run(scripts.permitsRest, { leases: Z, nowMs: T, id: C }, app),
      () => run(scripts.permitsSet, { ...on, request: MARK, permits: 9, markMs: 60_000 }, app),
      () => run(scripts.permitsTrySet, { ...on, request: MARK, permits: 9, markMs: 60_000 }, app),
      () =>
        run(scripts.permitsAdd, { ...on, request: `${MARK}0`, permits: 1, total: 1, markMs: 60_000 }, app),
    ])
      expect((await step()).reply).not.toMatchObject({ outcome: 'unannounced' })
    await link.command('PEXPIRE', Z, 60_000)
    await acquire([A], { via: app })
    await app[Symbol.asyncDispose]()
  })

  test('unannounced: where messages are forbidden everything else is done', async () => {
    await link.command('ACL', 'SETUSER', 'mute', 'on', 'nopass', '+@all', 'allkeys', 'resetchannels')
    const mute = await raw(server.port)
    await mute.command('AUTH', 'mute', 'x')
    await seed(2, { [A]: T, [B]: 1_000 })
    expect(await release([A], { via: mute })).toEqual({
      reply: { outcome: 'unannounced' },
      keys: { [N]: text(3, 'none'), [Z]: zset({ [B]: 1_000 }) },
      messages: [],
    })
    expect((await acquire([C], { via: mute, nowMs: 2_000 })).reply).toMatchObject({ outcome: 'granted' })
    await mute[Symbol.asyncDispose]()
  })
})

/** Another id, with the same awkward bytes. */
function flipped(id: string): string {
  return Buffer.from(id, 'hex').reverse().toString('hex')
}

async function scoreOf(id: string): Promise<readonly [string, number]> {
  const { keys } = await recorder.act(() => Promise.resolve())
  const scores = keys[Z]?.value as Readonly<Record<string, number>>
  return [id, scores[id] ?? NaN]
}
