/** The read-write lock: the state it leaves, what a Java program does to it, and sees of it. */
import { describe, expect, test } from 'vitest'
import type { Lease } from '../../src/index.js'
import { PeerReadWriteLock } from '../peer/read-write-lock.js'
import { hash, text } from '../peer/snapshot.js'
import { eventually } from '../support/eventually.js'
import { A, B, goldenHoldfast, goldenStage } from './stage.js'

const stage = goldenStage()
const act = <R>(action: () => Promise<R>) => stage.recorder.act(action)
const AGES = 600_000

const CHANNEL = 'redisson_rwlock:{n}'
const peer = (owner: string) => new PeerReadWriteLock(stage.raw, 'n', owner)
const ours = async (name = 'n') => (await goldenHoldfast(stage)).readWriteLock(name)
const holdOf = (owner: string, i = 1) => `{n}:${owner}:rwlock_timeout:${i}`
const told = (...payloads: readonly ('0' | '1')[]) =>
  payloads.map((payload) => ({ channel: CHANNEL, payload }))

const listened = () =>
  eventually(async () => {
    const reply = await stage.raw.command('PUBSUB', 'NUMSUB', CHANNEL)
    return Array.isArray(reply) && Number(reply[1]) >= 1
  }, 'the waiter listens')

describe('what is left', () => {
  test('a writer: mode and owner, and at the end a 1', async () => {
    const { write } = await ours()
    const { reply: lease, keys } = await act(() => write.acquire({ leaseTime: 20_000 }))
    expect(keys).toEqual({ n: hash({ mode: 'write', [`${lease.owner}:write`]: 1 }, 20_000) })
    const nested = await act(() => write.acquire({ within: lease, leaseTime: 20_000 }))
    expect(nested.keys).toMatchObject({ n: { value: { [`${lease.owner}:write`]: '2' } } })
    expect(await act(() => nested.reply.release())).toMatchObject({ reply: 'still-held', messages: [] })
    expect(await act(() => lease.release())).toEqual({
      reply: 'released',
      keys: {},
      messages: told('1', '0'),
    })
  })

  test('a reader: mode, owner and a key for its hold, and at the end a 0', async () => {
    const { read } = await ours()
    const { reply: lease, keys } = await act(() => read.acquire({ leaseTime: 20_000 }))
    expect(keys).toEqual({
      n: hash({ mode: 'read', [lease.owner]: 1 }, 20_000),
      [holdOf(lease.owner)]: text(1, 20_000),
    })
    expect(await act(() => lease.release())).toEqual({ reply: 'released', keys: {}, messages: told('0') })
  })

  test.each(['{a}b', 'a{b}c{d}', 'with:colons', 'näme ☃'])('the name %s', async (name) => {
    const { read } = await ours(name)
    const { reply: lease, keys } = await act(() => read.acquire({ leaseTime: 20_000 }))
    const view = new PeerReadWriteLock(stage.raw, name, lease.owner)
    expect(Object.keys(keys).sort()).toEqual([name, view.holdKey(1)].sort())
    expect((await act(() => lease.release())).messages).toEqual([{ channel: view.channel, payload: '0' }])
  })

  test('readers with leases of their own: the longest counts, and who leaves takes its part away', async () => {
    const { read } = await ours()
    const short = await read.acquire({ leaseTime: 20_000 })
    await peer(A).read(60_000)
    const long = await read.acquire({ leaseTime: 40_000 })
    expect((await act(() => short.release())).keys).toMatchObject({
      n: { value: { mode: 'read', [A]: '1', [long.owner]: '1' } },
      [holdOf(A)]: { type: 'string' },
      [holdOf(long.owner)]: { type: 'string' },
    })
    expect(Number(await stage.raw.command('PTTL', 'n'))).toBeGreaterThan(40_000)
    expect(await peer(A).unlockRead('1')).toBe(0)
    expect(Number(await stage.raw.command('PTTL', 'n'))).toBeLessThanOrEqual(40_000)
    expect(await act(() => long.release())).toMatchObject({
      reply: 'released',
      keys: {},
      messages: told('0'),
    })
  })

  test('down from writing: the mode is read, and a 1 is told', async () => {
    const lock = await ours()
    const writing = await lock.write.acquire({ leaseTime: AGES })
    const reading = await writing.run(() => lock.read.acquire({ leaseTime: AGES }))
    const down = await act(() => writing.release())
    expect(down).toMatchObject({ reply: 'released', messages: told('1', '0') })
    expect(down.keys['n']).toMatchObject({ value: { mode: 'read', [reading.owner]: '1' } })
    expect(await peer(A).write()).toBeGreaterThan(0)
    expect(await peer(A).read()).toBeUndefined()
    await reading.release()
    expect(await peer(A).unlockRead('1')).toBe(1)
  })
})

describe('beside a Java program', () => {
  test('its writer refuses both of ours; ours refuse both of its own', async () => {
    const lock = await ours()
    await peer(A).write(AGES)
    expect([await lock.read.tryAcquire(), await lock.write.tryAcquire()]).toEqual([null, null])
    await peer(A).unlockWrite('1')
    const lease = await lock.write.acquire({ leaseTime: AGES })
    expect([typeof (await peer(A).read()), typeof (await peer(A).write())]).toEqual(['number', 'number'])
    expect((await act(() => peer(A).unlockWrite('2'))).messages).toEqual([])
    expect(lease.held && (await lock.write.isHeldBy(lease.owner))).toBe(true)
  })

  test('its writer leaves: all readers that wait here go in', async () => {
    const lock = await ours()
    await peer(A).write(AGES)
    const waiting = [1, 2, 3].map(() => lock.read.acquire({ leaseTime: AGES, pollInterval: AGES }))
    await listened()
    await peer(A).unlockWrite('1')
    expect((await Promise.all(waiting)).map(({ held }) => held)).toEqual([true, true, true])
  })

  test('its last reader leaves: a writer that waits here goes in', async () => {
    const { write } = await ours()
    await peer(A).read(AGES)
    await peer(B).read(AGES)
    const waiting: Lease[] = []
    const writing = write.acquire({ pollInterval: AGES }).then((lease) => waiting.push(lease))
    await listened()
    await peer(A).unlockRead('1')
    expect(waiting).toEqual([])
    await peer(B).unlockRead('2')
    await writing
  })

  test('a reader of its own that died: its field goes with the last one alive', async () => {
    const { read, write } = await ours()
    await peer(A).read(300)
    const lease = await read.acquire({ leaseTime: AGES })
    await eventually(async () => (await stage.raw.command('EXISTS', holdOf(A))) === 0, 'its hold runs out')
    expect(await write.tryAcquire()).toBeNull()
    expect(await act(() => lease.release())).toMatchObject({
      reply: 'released',
      keys: {},
      messages: told('0'),
    })
  })

  test('our renewal raises our own holds only', async () => {
    const lock = (await goldenHoldfast(stage, { lockWatchdogTimeout: 1_800 })).readWriteLock('n')
    const lease = await lock.read.acquire()
    await act(() => peer(A).read(60_000))
    const before = await stage.raw.command('PEXPIRETIME', holdOf(A))
    let [raised, last] = [0, 1_800]
    await eventually(async () => {
      const ttl = Number(await stage.raw.command('PTTL', holdOf(lease.owner)))
      expect(ttl).toBeGreaterThan(0)
      if (ttl > last) raised += 1
      last = ttl
      return raised === 3
    }, 'the third renewal')
    expect(await stage.raw.command('PEXPIRETIME', holdOf(A))).toBe(before)
    expect(Number(await stage.raw.command('PTTL', 'n'))).toBeGreaterThan(10_000)
  })

  test('its renewal cuts the time of all to its own: our lease lasts nevertheless', async () => {
    const lock = (await goldenHoldfast(stage, { lockWatchdogTimeout: 1_800 })).readWriteLock('n')
    const lease = await lock.read.acquire({ leaseTime: AGES })
    await peer(A).read(1_800)
    expect(await peer(A).renewRead(1_800)).toBe(true)
    await eventually(async () => (await stage.raw.command('EXISTS', holdOf(A))) === 0, 'Java is gone')
    await eventually(async () => Number(await stage.raw.command('PTTL', 'n')) > 10_000, 'our time is back')
    expect(lease.held).toBe(true)
    expect(await peer(B).write()).toBeGreaterThan(0)
    expect(await lease.release()).toBe('released')
  })

  test('force from its side: each of ours is told', async () => {
    const lock = (await goldenHoldfast(stage, { lockWatchdogTimeout: 3_000 })).readWriteLock('n')
    const writing = await lock.write.acquire()
    expect(await peer(A).forceUnlock('write')).toBe(true)
    await eventually(() => writing.signal.aborted, 'the writer is told')
    const reading = await lock.read.acquire()
    expect(await peer(A).forceUnlock('read')).toBe(true)
    await eventually(() => reading.signal.aborted, 'the reader is told')
    expect([await writing.release(), await reading.release()]).toEqual(['stolen', 'stolen'])
  })
})
