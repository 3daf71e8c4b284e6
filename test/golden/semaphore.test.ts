/** The semaphore: the state it leaves, what a Java program does to it, and sees of it. */
import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { IOREDIS_6, open } from '../clients/variants.js'
import { PeerSemaphore } from '../peer/semaphore.js'
import { text } from '../peer/snapshot.js'
import { eventually } from '../support/eventually.js'
import { goldenHoldfast, goldenStage, hear, shared } from './stage.js'

const stage = goldenStage()
const act = async <R>(action: () => Promise<R>) => {
  const step = await stage.recorder.act(action)
  return { ...step, keys: shared(step.keys) }
}
const AGES = 600_000

const CHANNEL = 'redisson_sc:{n}'
const peer = () => new PeerSemaphore(stage.raw, 'n')
const ours = async (permits?: number) => (await goldenHoldfast(stage)).semaphore('n', { permits })
const told = (payload: number) => [{ channel: CHANNEL, payload: String(payload) }]
const count = (value: number) => ({ n: text(value, 'none') })

/** Until so many connections listen for permits. */
const listened = (connections = 1) =>
  eventually(async () => {
    const reply = await stage.raw.command('PUBSUB', 'NUMSUB', CHANNEL)
    return Array.isArray(reply) && Number(reply[1]) >= connections
  }, 'the waiter listens')

describe('what is left', () => {
  test('set, taken, given back, added, drained: the numbers and messages of the wire', async () => {
    const semaphore = await ours()
    expect(await act(() => semaphore.trySet(3))).toEqual({ reply: true, keys: count(3), messages: told(3) })
    expect(await act(() => semaphore.trySet(5))).toEqual({ reply: false, keys: count(3), messages: [] })
    const { reply: grant, ...taken } = await act(() => semaphore.acquire(2))
    expect(taken).toEqual({ keys: count(1), messages: [] })
    expect(await act(() => semaphore.tryAcquire(2))).toEqual({ reply: null, keys: count(1), messages: [] })
    expect(await act(() => grant.release())).toEqual({ reply: 'released', keys: count(3), messages: told(3) })
    expect(await act(() => semaphore.release(2))).toEqual({
      reply: undefined,
      keys: count(5),
      messages: told(5),
    })
    expect(await act(() => semaphore.releaseIfExists())).toEqual({
      reply: true,
      keys: count(6),
      messages: told(6),
    })
    expect(await act(() => semaphore.add(4))).toEqual({
      reply: undefined,
      keys: count(10),
      messages: told(10),
    })
    expect(await act(() => semaphore.drain())).toEqual({ reply: 10, keys: count(0), messages: [] })
  })

  test('a release makes the number where it is missing, releaseIfExists does not', async () => {
    const semaphore = await ours()
    expect(await act(() => semaphore.releaseIfExists(2))).toEqual({ reply: false, keys: {}, messages: [] })
    expect(await act(() => semaphore.release(2))).toEqual({
      reply: undefined,
      keys: count(2),
      messages: told(2),
    })
  })

  test('the number is there with the first acquire where `permits` says it, and the rest is told', async () => {
    const { keys, messages } = await act(async () => (await ours(4)).acquire())
    expect([keys, messages]).toEqual([count(3), told(3)])
    expect(await peer().tryAcquire(3)).toBe(true)
  })

  test('the TTL of trySet outlives draining and adding, unlike in Java', async () => {
    const semaphore = await ours()
    expect((await act(() => semaphore.trySet(3, { ttl: 20_000 }))).keys).toEqual({ n: text(3, 20_000) })
    expect((await act(() => semaphore.drain())).keys).toEqual({ n: text(0, 20_000) })
    expect((await act(() => semaphore.add(2))).keys).toEqual({ n: text(2, 20_000) })
  })

  test('below zero: zero is told', async () => {
    const semaphore = await ours()
    await semaphore.trySet(1)
    expect(await act(() => semaphore.add(-4))).toEqual({
      reply: undefined,
      keys: count(-3),
      messages: told(0),
    })
    expect(await act(() => semaphore.release())).toEqual({
      reply: undefined,
      keys: count(-2),
      messages: told(0),
    })
  })

  test.each([
    ['{a}b', 'redisson_sc:{a}b', 'holdfast_request:{a}b:'],
    ['a{b}c{d}', 'redisson_sc:a{b}c{d}', 'holdfast_request:a{b}c{d}:'],
    ['zwei Wörter:%d*', 'redisson_sc:{zwei Wörter:%d*}', 'holdfast_request:{zwei Wörter:%d*}:'],
  ])('the names of %j', async (name, channel, note) => {
    const semaphore = (await goldenHoldfast(stage)).semaphore(name)
    const { keys, messages } = await stage.recorder.act(() => semaphore.trySet(2))
    expect(messages).toEqual([{ channel, payload: '2' }])
    expect(
      Object.keys(keys)
        .map((key) => (key === name ? key : key.slice(0, note.length)))
        .sort(),
    ).toEqual([name, note].sort())
  })
})

describe('together with a Java program', () => {
  test('permits go to and fro', async () => {
    const semaphore = await ours(2)
    const grant = await semaphore.acquire()
    expect(await peer().tryAcquire()).toBe(true)
    expect(await peer().tryAcquire()).toBe(false)
    expect(await semaphore.tryAcquire()).toBeNull()
    await grant.release()
    expect(await peer().available()).toBe(1)
    expect(await peer().drain()).toBe(1)
    await semaphore.add(5)
    expect(await peer().available()).toBe(5)
  })

  test('a waiter is woken by what Java releases, adds and sets', async () => {
    const semaphore = await ours()
    await peer().trySet(0)
    const woken = hear('holdfast:wakeup', 'n')
    for (const give of [
      () => peer().release(),
      () => peer().add(2),
      async () => {
        await peer().delete()
        await peer().trySet(7)
      },
    ]) {
      const waiting = semaphore.acquire(1, { pollInterval: AGES })
      await listened()
      // The look after the subscription is over.
      await eventually(() => woken.some(({ cause }) => cause === 'resync'), 'it has looked')
      await give()
      expect((await waiting).permits).toBe(1)
      await peer().drain()
      woken.length = 0
    }
  })

  test('a waiter for several is woken by releases of one each', async () => {
    const semaphore = await ours()
    await peer().trySet(0)
    const waiting = semaphore.acquire(3, { pollInterval: AGES })
    await listened()
    for (let i = 0; i < 3; i++) await peer().release()
    expect((await waiting).permits).toBe(3)
  })

  test.each(['1', '0', '1000', '-2', '', 'no number'])(
    'a message %j wakes, or is ignored, and breaks nothing',
    async (payload) => {
      const semaphore = await ours()
      await peer().trySet(0)
      const waiting = semaphore.acquire(1, { pollInterval: AGES })
      await listened()
      await stage.raw.command('PUBLISH', CHANNEL, payload)
      await peer().release()
      expect((await waiting).permits).toBe(1)
    },
  )

  test('a number below zero, as Java may leave it, is waited out', async () => {
    const semaphore = await ours()
    await peer().trySet(1)
    await peer().add(-3)
    expect(await semaphore.available()).toBe(-2)
    expect(await semaphore.tryAcquire()).toBeNull()
    const waiting = semaphore.acquire(1, { pollInterval: AGES })
    await listened()
    await peer().release(3)
    expect((await waiting).permits).toBe(1)
  })

  test('whatever we tell is a whole number from 0 on', async () => {
    const semaphore = await ours()
    const heard = await stage.raw.subscribe(CHANNEL)
    await semaphore.trySet(1)
    const grant = await semaphore.acquire()
    await semaphore.add(-5)
    await grant.release()
    await semaphore.release(2)
    await semaphore.add(9)
    const messages = await heard.take()
    expect(messages).toHaveLength(5)
    for (const { payload } of messages) expect(payload).toMatch(/^[0-9]+$/)
    heard.close()
  })
})

test('the documented rights are enough for semaphores and latches', async () => {
  const page = readFileSync(new URL('../../docs/protocol.md', import.meta.url), 'utf8')
  const block = /## Permissions[\s\S]*?```\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const rights = block.replace('~<your names>', '~n').match(/[+~&]\S+/g) ?? []
  const ofClients = ['+info', '+client', '+hello']
  await stage.raw.command('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', ...ofClients, ...rights)
  const client = await open(IOREDIS_6, stage.server.port, { username: 'app', password: 'secret' })
  const holdfast = new Holdfast(client.raw as object)
  onTestFinished(async () => {
    await holdfast.close({ drain: 0 })
    client.destroy()
  })
  const diagnoses = hear('holdfast:diagnosis', 'n')
  const semaphore = holdfast.semaphore('n', { permits: 2 })
  const grant = await semaphore.acquire(2)
  const waiting = semaphore.acquire(1, { pollInterval: AGES })
  await listened()
  await grant.release()
  await (await waiting).release()
  await semaphore.add(-1)
  expect([await semaphore.drain(), await semaphore.available()]).toEqual([1, 0])
  await stage.raw.command('DEL', 'n')
  await semaphore.trySet(3, { ttl: AGES })
  await stage.raw.command('DEL', 'n')
  const latch = holdfast.countDownLatch('n')
  await latch.trySetCount(2)
  const opened = latch.wait({ pollInterval: AGES })
  expect([await latch.countDown(), await latch.countDown()]).toEqual([1, 0])
  await opened
  await latch.trySetCount(2)
  await latch.delete()
  expect(diagnoses).toEqual([])
})
