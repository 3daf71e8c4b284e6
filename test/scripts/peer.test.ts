/** Our scripts and a stand-in for Redisson take turns on one lock. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import { eventually } from '../support/eventually.js'
import { PeerLock } from '../peer/lock.js'
import { hash, Stage, text } from './stage.js'
import { DEAD, LOCK as lock, LOCK_CHANNEL, OTHER, OWNER, dead, locks, unlocked } from './words.js'

let stage: Stage
let peer: PeerLock

beforeAll(async () => {
  stage = await Stage.open()
  peer = new PeerLock(stage.raw, lock, OTHER)
})
afterAll(() => stage[Symbol.asyncDispose]())
beforeEach(() => stage.clear())

const acquire = (args: Partial<scripts.LockAcquireArgs> = {}): Promise<scripts.LockAcquireReply> =>
  stage.run(scripts.lockAcquire, locks.acquire(args)).then(({ reply }) => reply)

const LATCH = 'redisson_unlock_latch:{orders:42}:3f0c'

describe('the peer by itself, as the wire describes it', () => {
  test('lock, lock, unlock, unlock, unlock', async () => {
    const first = await stage.act(() => peer.tryAcquire(20_000))
    expect(first).toEqual({
      reply: undefined,
      keys: { [lock]: hash({ [OTHER]: '1' }, 20_000) },
      messages: [],
    })
    const second = await stage.act(() => peer.tryAcquire(10_000))
    expect(second.keys).toEqual({ [lock]: hash({ [OTHER]: '2' }, 10_000) })
    const partial = await stage.act(() => peer.unlock('3f0c', { leaseMs: 20_000, keepLatch: true }))
    expect(partial).toEqual({
      reply: 0,
      keys: { [lock]: hash({ [OTHER]: '1' }, 20_000), [LATCH]: text('0', 16_000) },
      messages: [],
    })
    const last = await stage.act(() => peer.unlock('77aa'))
    expect(last).toMatchObject({ reply: 1, messages: [unlocked] })
    expect(Object.keys(last.keys)).toEqual([LATCH])
    const nothing = await stage.act(() => peer.unlock('88bb'))
    expect(nothing).toMatchObject({ reply: undefined, messages: [] })
  })

  test('an unlock that is sent again says what the first one said', async () => {
    await peer.tryAcquire()
    expect(await peer.unlock('3f0c', { keepLatch: true })).toBe(1)
    await peer.tryAcquire()
    expect(await peer.unlock('3f0c', { keepLatch: true })).toBe(1)
    expect(await peer.holdCount()).toBe(1)
  })
})

describe('ours, as the peer sees it', () => {
  test('lock, lock, leave, release: the state and the messages of the wire', async () => {
    const step1 = await stage.run(scripts.lockAcquire, locks.acquire({ leaseMs: 20_000 }))
    expect(step1.keys).toEqual({ [lock]: hash({ [OWNER]: '1' }, 20_000) })
    const step2 = await stage.run(scripts.lockAcquire, locks.acquire({ count: 2, leaseMs: 20_000 }))
    expect(step2.keys).toEqual({ [lock]: hash({ [OWNER]: '2' }, 20_000) })
    expect([await peer.isLocked(), await peer.isHeld(), await peer.holdCount(OWNER)]).toEqual([
      true,
      false,
      2,
    ])
    const step3 = await stage.run(scripts.lockLeave, { lock, owner: OWNER, count: 1 })
    expect(step3).toMatchObject({ keys: { [lock]: hash({ [OWNER]: '1' }, 20_000) }, messages: [] })
    const step4 = await stage.run(scripts.lockRelease, locks.release())
    expect(step4).toMatchObject({ keys: {}, messages: [unlocked] })
    expect(await peer.isLocked()).toBe(false)
  })

  test('its tryAcquire sees our TTL and changes nothing; its unlock and renewal find nothing of its own', async () => {
    await acquire({ leaseMs: 20_000 })
    const ttl = await peer.tryAcquire(60_000)
    expect(ttl).toSatisfy((ms: number) => ms > 0 && ms <= 20_000)
    const renewed = await stage.act(() => peer.renew(60_000))
    expect(renewed).toMatchObject({ reply: false, keys: { [lock]: hash({ [OWNER]: '1' }, 20_000) } })
    const unlock = await stage.act(() => peer.unlock('3f0c'))
    expect(unlock).toMatchObject({
      reply: undefined,
      keys: { [lock]: hash({ [OWNER]: '1' }, 20_000) },
      messages: [],
    })
  })

  test('its subscriber hears exactly one 0 on the channel of the lock, at the last release only', async () => {
    const heard = await stage.raw.subscribe(peer.channel)
    await acquire()
    await acquire({ count: 2 })
    await stage.run(scripts.lockLeave, { lock, owner: OWNER, count: 1 })
    await stage.run(scripts.lockRenew, { locks: [lock], ttlMs: 60_000, owners: [OWNER] })
    expect(await heard.take()).toEqual([])
    await stage.run(scripts.lockRelease, locks.release())
    expect(await heard.take()).toEqual([{ channel: LOCK_CHANNEL, payload: '0' }])
    await stage.run(scripts.lockRelease, locks.release())
    expect(await heard.take()).toEqual([])
    await acquire()
    await stage.run(scripts.lockForce, locks.force([OWNER]))
    expect(await heard.take()).toEqual([{ channel: LOCK_CHANNEL, payload: '0' }])
  })

  test('our tombstone does not answer for its unlock latch', async () => {
    await stage.run(scripts.lockRelease, locks.release({ entombMs: 60_000 }))
    expect(await peer.tryAcquire(20_000)).toBeUndefined()
    expect(await peer.unlock('3f0c')).toBe(1)
    expect((await stage.act(() => peer.isLocked())).keys).toEqual({ [DEAD]: dead })
  })
})

describe('the peer, as our scripts see it', () => {
  test('they take turns, each seeing the other', async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await peer.tryAcquire(20_000)).toBeUndefined()
      expect(await acquire()).toMatchObject({ outcome: 'busy', holder: OTHER })
      expect(await peer.unlock(`${turn}`)).toBe(1)
      expect(await acquire()).toEqual({ outcome: 'granted' })
      expect(await peer.tryAcquire()).toBeGreaterThan(0)
      const { reply } = await stage.run(scripts.lockRelease, locks.release())
      expect(reply).toEqual({ outcome: 'released' })
    }
  })

  test('a hold that is never given back ends with its TTL, without a message', async () => {
    await peer.tryAcquire()
    expect(await acquire()).toMatchObject({ outcome: 'busy', holder: OTHER })
    await stage.raw.command('PEXPIRE', lock, 50)
    await eventually(async () => (await acquire()).outcome === 'granted', 'the hold of the peer runs out')
    const { keys, messages } = await stage.run(scripts.lockInspect, { lock })
    expect(keys[lock]).toMatchObject({ type: 'hash', value: { [OWNER]: '1' } })
    expect(messages).toEqual([])
  })

  test('a hold without a TTL stays busy until it is given back', async () => {
    await peer.tryAcquire()
    await stage.raw.command('PERSIST', lock)
    expect(await acquire()).toEqual({ outcome: 'busy', ttlMs: -1, holder: OTHER })
    const { reply, messages } = await stage.act(() => peer.unlock('3f0c'))
    expect({ reply, messages }).toEqual({ reply: 1, messages: [unlocked] })
    expect(await acquire()).toEqual({ outcome: 'granted' })
  })

  test('its latch does not stand in our way', async () => {
    await peer.tryAcquire()
    await peer.unlock('3f0c', { keepLatch: true })
    expect(await acquire()).toEqual({ outcome: 'granted' })
  })

  test('its nested hold is shown with its count, and none of our scripts touches it', async () => {
    await peer.tryAcquire(20_000)
    await peer.tryAcquire(20_000)
    const seen = await stage.run(scripts.lockInspect, { lock })
    expect(seen.reply).toMatchObject({ outcome: 'held', holders: [OTHER, '2'] })
    const untouched = { [lock]: hash({ [OTHER]: '2' }, 20_000) }
    expect((await stage.run(scripts.lockLeave, { lock, owner: OWNER, count: 1 })).keys).toEqual(untouched)
    expect((await stage.run(scripts.lockRelease, locks.release())).keys).toEqual(untouched)
    const renewed = await stage.run(scripts.lockRenew, { locks: [lock], ttlMs: 60_000, owners: [OWNER] })
    expect(renewed.keys).toEqual(untouched)
  })

  test('forced away from us, the loss shows at the next renewal, and our release leaves the new owner alone', async () => {
    await acquire()
    const forced = await stage.act(() => peer.forceUnlock())
    expect(forced).toEqual({ reply: true, keys: {}, messages: [unlocked] })
    const args = { locks: [lock], ttlMs: 30_000, owners: [OWNER] }
    expect((await stage.run(scripts.lockRenew, args)).reply).toEqual({ results: [0] })
    await peer.tryAcquire(20_000)
    expect((await stage.run(scripts.lockRenew, args)).reply).toEqual({ results: [-1] })
    const released = await stage.run(scripts.lockRelease, locks.release())
    expect(released).toEqual({
      reply: { outcome: 'taken' },
      keys: { [lock]: hash({ [OTHER]: '1' }, 20_000) },
      messages: [],
    })
  })

  test('forced away by us, its unlock finds nothing and is not taken for a success', async () => {
    await peer.tryAcquire()
    const { reply, messages } = await stage.run(scripts.lockForce, locks.force([OTHER]))
    expect({ reply, messages }).toEqual({ reply: { outcome: 'freed' }, messages: [unlocked] })
    await acquire({ leaseMs: 20_000 })
    const unlock = await stage.act(() => peer.unlock('3f0c'))
    expect(unlock).toEqual({
      reply: undefined,
      keys: { [lock]: hash({ [OWNER]: '1' }, 20_000) },
      messages: [],
    })
  })

  test('what it cuts from our TTL, our renewal raises again', async () => {
    await acquire({ leaseMs: 60_000 })
    await stage.raw.command('PEXPIRE', lock, 5_000)
    const { keys } = await stage.run(scripts.lockRenew, { locks: [lock], ttlMs: 30_000, owners: [OWNER] })
    expect(keys).toEqual({ [lock]: hash({ [OWNER]: '1' }, 30_000) })
  })
})
