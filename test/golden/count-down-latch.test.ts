/** The latch: the state it leaves, what a Java program does to it, and sees of it. */
import { describe, expect, test } from 'vitest'
import { PeerLatch } from '../peer/count-down-latch.js'
import { text } from '../peer/snapshot.js'
import { eventually } from '../support/eventually.js'
import { goldenHoldfast, goldenStage, hear, shared } from './stage.js'

const stage = goldenStage()
const act = async <R>(action: () => Promise<R>) => {
  const step = await stage.recorder.act(action)
  return { ...step, keys: shared(step.keys) }
}
const AGES = 600_000

const channelOf = (name: string) => `redisson_countdownlatch__channel__{${name}}`
const peer = (name = 'n') => new PeerLatch(stage.raw, name)
const ours = async (name = 'n') => (await goldenHoldfast(stage)).countDownLatch(name)
const told = (payload: number, name = 'n') => [{ channel: channelOf(name), payload: String(payload) }]

const listened = (name = 'n') =>
  eventually(async () => {
    const reply = await stage.raw.command('PUBSUB', 'NUMSUB', channelOf(name))
    return Array.isArray(reply) && Number(reply[1]) >= 1
  }, 'the waiter listens')

describe('what is left', () => {
  test('set, counted down, open: the numbers and messages of the wire', async () => {
    const latch = await ours()
    expect(await act(() => latch.countDown())).toEqual({ reply: 0, keys: {}, messages: [] })
    expect(await act(() => latch.trySetCount(2))).toEqual({
      reply: true,
      keys: { n: text(2, 'none') },
      messages: told(1),
    })
    expect(await act(() => latch.trySetCount(9))).toMatchObject({ reply: false, messages: [] })
    expect(await act(() => latch.countDown())).toEqual({
      reply: 1,
      keys: { n: text(1, 'none') },
      messages: [],
    })
    expect(await act(() => latch.countDown())).toEqual({ reply: 0, keys: {}, messages: told(0) })
  })

  test('a count of zero leaves no key, and the next one can be set, in Java too', async () => {
    const latch = await ours()
    expect(await act(() => latch.trySetCount(0))).toEqual({ reply: true, keys: {}, messages: [] })
    await latch.wait()
    expect(await act(() => latch.countDown())).toEqual({ reply: 0, keys: {}, messages: [] })
    expect(await latch.trySetCount(0)).toBe(true)
    expect(await peer().trySetCount(2)).toBe(true)
    expect(await latch.trySetCount(0)).toBe(false)
  })

  test('a count of zero that Java has stored is open: it can be set, and counting it down tells nobody', async () => {
    const latch = await ours()
    await peer().trySetCount(0)
    await latch.wait()
    expect(await act(() => latch.countDown())).toEqual({ reply: 0, keys: {}, messages: [] })
    await peer().trySetCount(0)
    expect(await act(() => latch.trySetCount(2))).toEqual({
      reply: true,
      keys: { n: text(2, 'none') },
      messages: told(1),
    })
  })

  test("deleted: 0 is told, which opens Java's latch, too", async () => {
    const latch = await ours()
    await latch.trySetCount(3)
    expect(await act(() => latch.delete())).toEqual({ reply: true, keys: {}, messages: told(0) })
    expect(await act(() => latch.delete())).toEqual({ reply: false, keys: {}, messages: [] })
  })

  test.each(['{a}b', 'a{b}c{d}', 'zwei Wörter:%d*'])(
    'the channel of %j has braces around it, always',
    async (name) => {
      const latch = await ours(name)
      expect((await act(() => latch.trySetCount(1))).messages).toEqual(told(1, name))
      const waiting = latch.wait({ pollInterval: AGES })
      await listened(name)
      await peer(name).countDown()
      await waiting
    },
  )
})

describe('together with a Java program', () => {
  test('a waiter is woken by the last count-down of Java', async () => {
    const latch = await ours()
    await peer().trySetCount(2)
    const woken = hear('holdfast:wakeup', 'n')
    const waiting = latch.wait({ pollInterval: AGES })
    await listened()
    await eventually(() => woken.some(({ cause }) => cause === 'resync'), 'it has looked')
    await peer().countDown()
    expect(await latch.getCount()).toBe(1)
    await peer().countDown()
    await waiting
    expect(woken.at(-1)?.cause).toBe('message')
  })

  test('a waiter is let go when Java deletes the latch', async () => {
    const latch = await ours()
    await latch.trySetCount(2)
    const waiting = latch.wait({ pollInterval: AGES })
    await listened()
    expect(await peer().delete()).toBe(true)
    await waiting
  })

  test('Java sees our counts, and its listeners hear of zero', async () => {
    const latch = await ours()
    await latch.trySetCount(2)
    expect(await peer().trySetCount(5)).toBe(false)
    expect(await peer().count()).toBe(2)
    await peer().countDown()
    expect(await act(() => latch.countDown())).toMatchObject({ reply: 0, messages: told(0) })
    expect(await peer().count()).toBe(0)
  })

  test('a count below zero, as Java may leave it, is open', async () => {
    const latch = await ours()
    await peer().trySetCount(-2)
    expect(await latch.getCount()).toBe(0)
    await latch.wait()
    expect(await act(() => latch.countDown())).toEqual({ reply: 0, keys: {}, messages: [] })
  })

  test.each(['1', '0', '7', '-2', '', 'no number'])(
    'a message %j opens nothing that is shut',
    async (payload) => {
      const latch = await ours()
      await peer().trySetCount(1)
      const woken = hear('holdfast:wakeup', 'n')
      const waiting = latch.wait({ pollInterval: AGES })
      let open = false
      void waiting.then(() => (open = true))
      await listened()
      await stage.raw.command('PUBLISH', channelOf('n'), payload)
      await eventually(() => woken.some(({ cause }) => cause === 'message'), 'it has looked')
      expect(await latch.getCount()).toBe(1)
      expect(open).toBe(false)
      await peer().countDown()
      await waiting
    },
  )
})
