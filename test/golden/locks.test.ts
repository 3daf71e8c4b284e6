/** The locks with one holder and no queue: the state they leave, what a Java program does to them, and sees of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { CountingLock, Holdfast, Lease } from '../../src/index.js'
import { PeerFencedLock, PeerLock, PeerNonReentrantLock, PeerSpinLock } from '../peer/lock.js'
import { hash, text, type Golden } from '../peer/snapshot.js'
import { prefixed } from '../peer/wire.js'
import { eventually } from '../support/eventually.js'
import type { Raw } from '../support/raw.js'
import { A, B, goldenHoldfast, goldenStage, hear } from './stage.js'

const stage = goldenStage()
const act = <R>(action: () => Promise<R>) => stage.recorder.act(action)
/** No key, and no look, in the lifetime of a test. */
const AGES = 600_000

interface Kind {
  readonly title: string
  readonly Peer: new (raw: Raw, name: string, owner: string) => PeerLock
  readonly ours: (holdfast: Holdfast, name: string) => CountingLock
  readonly reentrant: boolean
  readonly tells: boolean
  /** What else is there after so many grants. */
  readonly beside: (name: string, grants: number) => Readonly<Record<string, Golden>>
}

const KINDS: readonly Kind[] = [
  {
    title: 'lock',
    Peer: PeerLock,
    ours: (holdfast, name) => holdfast.lock(name),
    reentrant: true,
    tells: true,
    beside: () => ({}),
  },
  {
    title: 'lock without re-entry',
    Peer: PeerNonReentrantLock,
    ours: (holdfast, name) => holdfast.lock(name, { reentrant: false }),
    reentrant: false,
    tells: true,
    beside: () => ({}),
  },
  {
    title: 'spin lock',
    Peer: PeerSpinLock,
    ours: (holdfast, name) => holdfast.spinLock(name),
    reentrant: true,
    tells: false,
    beside: () => ({}),
  },
  {
    title: 'fenced lock',
    Peer: PeerFencedLock,
    ours: (holdfast, name) => holdfast.fencedLock(name),
    reentrant: true,
    tells: true,
    beside: (name, grants) => ({ [prefixed('redisson_lock_token', name)]: text(grants, 'none') }),
  },
]

const NAMES = [
  'n',
  '{a}b',
  'a{b}c{d}',
  'with:colons',
  'with spaces',
  'näme ☃',
  'a.*[b]?(c)|$^',
  'my{lock',
  '{}x',
]

describe.each(KINDS)('$title', (kind) => {
  const { title, Peer, ours, reentrant, tells, beside } = kind
  const told = (name: string) =>
    tells ? [{ channel: prefixed('redisson_lock__channel', name), payload: '0' }] : []

  test.each(NAMES)('%s: in and out, on the keys and the channel of the stand-in', async (name) => {
    const lock = ours(await goldenHoldfast(stage), name)
    const taken = await act(() => lock.acquire({ leaseTime: 20_000 }))
    const { owner } = taken.reply
    expect(taken).toMatchObject({
      keys: { [name]: hash({ [owner]: 1 }, 20_000), ...beside(name, 1) },
      messages: [],
    })
    expect(Object.keys(taken.keys)).toHaveLength(1 + Object.keys(beside(name, 1)).length)
    const freed = await act(() => taken.reply.release())
    expect(freed).toEqual({ reply: 'released', keys: beside(name, 1), messages: told(name) })
    const peer = new Peer(stage.raw, name, A)
    const theirs = await act(() => peer.tryAcquire(20_000))
    expect(theirs.keys).toEqual({ [name]: hash({ [A]: 1 }, 20_000), ...beside(name, 2) })
    expect(await act(() => peer.unlock('1'))).toEqual({
      reply: 1,
      keys: beside(name, 2),
      messages: told(name),
    })
  })

  test('the owner is a client and a number', async () => {
    const { owner } = await ours(await goldenHoldfast(stage), 'n').acquire({ leaseTime: AGES })
    expect(owner).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[1-9][0-9]*$/)
  })

  if (reentrant)
    test('in twice: the count is 2, the TTL the longer one, and only the last tells', async () => {
      const lock = ours(await goldenHoldfast(stage), 'n')
      const outer = await lock.acquire({ leaseTime: 20_000 })
      const { owner } = outer
      const nested = await act(() => lock.acquire({ within: outer, leaseTime: 40_000 }))
      expect(nested.keys).toEqual({ n: hash({ [owner]: 2 }, 40_000), ...beside('n', 2) })
      const partial = await act(() => nested.reply.release())
      expect(partial).toMatchObject({ reply: 'still-held', messages: [] })
      expect(partial.keys).toEqual({ n: hash({ [owner]: 1 }, 40_000), ...beside('n', 2) })
      expect(await act(() => outer.release())).toEqual({
        reply: 'released',
        keys: beside('n', 2),
        messages: told('n'),
      })
    })

  test('a Java program is refused with our TTL, and leaves everything as it is', async () => {
    const lease = await ours(await goldenHoldfast(stage), 'n').acquire({ leaseTime: 20_000 })
    const before = (await act(() => Promise.resolve())).keys
    const peer = new Peer(stage.raw, 'n', A)
    expect(await peer.tryAcquire(60_000)).toSatisfy((ms: number) => ms > 0 && ms <= 20_000)
    const refused = await act(() => peer.unlock('1'))
    expect(refused).toEqual({ reply: undefined, keys: before, messages: [] })
    expect([await peer.isLocked(), await peer.isHeld(), await peer.holdCount(lease.owner)]).toEqual([
      true,
      false,
      1,
    ])
  })

  test('a Java holder that dies: ours at the end of its lease', async () => {
    await new Peer(stage.raw, 'n', A).tryAcquire(500)
    const lease = await ours(await goldenHoldfast(stage), 'n').acquire({ pollInterval: AGES })
    expect(lease.held).toBe(true)
  })

  test('a Java holder whose key has no TTL: nobody enters until it is gone', async () => {
    const lock = ours(await goldenHoldfast(stage), 'n')
    await new Peer(stage.raw, 'n', A).tryAcquire()
    await stage.raw.command('PERSIST', 'n')
    expect(await lock.tryAcquire()).toBeNull()
    expect(await lock.tryAcquire({ waitTime: 100 })).toBeNull()
    expect(await lock.remainingTime()).toBe(Infinity)
    const waiting = lock.acquire({ pollInterval: 50 })
    await stage.raw.command('DEL', 'n')
    expect((await waiting).held).toBe(true)
  })

  test('a Java program takes it by force: we are told, and touch nothing of the next holder', async () => {
    const lease = await ours(await goldenHoldfast(stage, { lockWatchdogTimeout: 3_000 }), 'n').acquire()
    const [peer, next] = [new Peer(stage.raw, 'n', A), new Peer(stage.raw, 'n', B)]
    const forced = await act(() => peer.forceUnlock())
    expect(forced).toMatchObject({ reply: true, messages: told('n') })
    const { keys } = await act(() => next.tryAcquire(AGES))
    await eventually(() => lease.signal.aborted, 'the loss is told')
    expect(lease.signal.reason).toMatchObject({ code: 'HOLDFAST_LEASE_LOST', reason: 'stolen' })
    expect(await act(() => lease.release())).toEqual({ reply: 'stolen', keys, messages: [] })
  })

  test('three periods of renewal: the TTL goes up three times, and the key is never gone', async () => {
    const lease = await ours(await goldenHoldfast(stage, { lockWatchdogTimeout: 1_800 }), 'n').acquire()
    let [raised, last] = [0, 1_800]
    await eventually(async () => {
      const ttl = Number(await stage.raw.command('PTTL', 'n'))
      expect(ttl).toBeGreaterThan(0)
      if (ttl > last) raised += 1
      last = ttl
      return raised === 3
    }, 'the third renewal')
    expect(lease.held).toBe(true)
  })

  test(`${title}s of Node and of stand-ins never meet inside`, async () => {
    const locks = [ours(await goldenHoldfast(stage), 'n'), ours(await goldenHoldfast(stage), 'n')]
    let [inside, worst] = [0, 0]
    const visit = async () => {
      inside += 1
      worst = Math.max(worst, inside)
      await sleep(Math.random() * 3)
      inside -= 1
    }
    const callers = [...locks, ...locks].map(async (lock) => {
      for (let turn = 0; turn < 8; turn++) await lock.using(visit)
    })
    const peers = [0, 1].map(async (i) => {
      const peer = new Peer(stage.raw, 'n', `${A}${i}`)
      for (let turn = 0; turn < 8; turn++) {
        while ((await peer.tryAcquire(AGES)) !== undefined) await sleep(3)
        await visit()
        expect(await peer.unlock(`${i}-${turn}`)).toBe(1)
      }
    })
    await Promise.all([...callers, ...peers])
    expect([worst, inside]).toEqual([1, 0])
    expect(await stage.raw.command('EXISTS', 'n')).toBe(0)
  })

  if (tells) messages(kind)
})

function messages({ Peer, ours }: Kind): void {
  test('a Java release is heard: one waiter goes in, ages before the lease ends', async () => {
    const lock = ours(await goldenHoldfast(stage), 'n')
    const peer = new Peer(stage.raw, 'n', A)
    await peer.tryAcquire(AGES)
    const leases: Lease[] = []
    const waiting = [1, 2, 3].map(async () => {
      leases.push(await lock.acquire({ leaseTime: AGES, pollInterval: AGES }))
    })
    await listened(1)
    await peer.unlock('1')
    await eventually(() => leases.length > 0, 'one is in')
    expect(leases).toHaveLength(1)
    for (let i = 0; i < 3; i++) {
      await eventually(() => leases.length === i + 1, 'the next one is in')
      await leases[i]?.release()
    }
    await Promise.all(waiting)
  })

  test.each(['1', '7', '-3', '', 'no number', '\u0000\u00ff'])(
    'a message %j wakes, or is ignored, and breaks nothing',
    async (payload) => {
      const lock = ours(await goldenHoldfast(stage), 'n')
      const peer = new Peer(stage.raw, 'n', A)
      await peer.tryAcquire(AGES)
      const waiting = lock.acquire({ pollInterval: AGES })
      await listened(1)
      await stage.raw.command('PUBLISH', peer.channel, payload)
      await peer.unlock('1')
      expect((await waiting).held).toBe(true)
    },
  )

  test('our release reaches a Java waiter once; nested and partial ones do not', async () => {
    const lock = ours(await goldenHoldfast(stage), 'n')
    const heard = await stage.raw.subscribe(prefixed('redisson_lock__channel', 'n'))
    const lease = await lock.acquire()
    expect(await heard.take()).toEqual([])
    await lease.release()
    expect(await heard.take()).toHaveLength(1)
    await lease.release()
    expect(await heard.take()).toEqual([])
    heard.close()
  })

  test('a lost message costs no more than the pause between two looks', async () => {
    const lock = ours(await goldenHoldfast(stage), 'n')
    const wakeups = hear('holdfast:wakeup', 'n')
    await new Peer(stage.raw, 'n', A).tryAcquire(AGES)
    const waiting = lock.acquire({ pollInterval: 100 })
    await listened(1)
    await stage.raw.command('DEL', 'n')
    await waiting
    expect(wakeups.map(({ cause }) => cause)).toContain('poll')
  })
}

/** Until so many connections listen for releases. */
function listened(count: number): Promise<void> {
  return eventually(async () => {
    const reply = await stage.raw.command('PUBSUB', 'NUMSUB', prefixed('redisson_lock__channel', 'n'))
    return Array.isArray(reply) && Number(reply[1]) >= count
  }, 'the waiter listens')
}
