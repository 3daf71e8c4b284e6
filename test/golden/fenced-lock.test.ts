/** The fenced lock's tokens: what is left of them, and crossing over between ours and a Java program's. */
import { describe, expect, test } from 'vitest'
import { PeerFencedLock } from '../peer/lock.js'
import { hash, text } from '../peer/snapshot.js'
import { eventually } from '../support/eventually.js'
import { A, B, goldenHoldfast, goldenStage } from './stage.js'

const stage = goldenStage()
const act = <R>(action: () => Promise<R>) => stage.recorder.act(action)

const TOKEN = 'redisson_lock_token:{n}'
const tokenKey = (token: number) => ({ [TOKEN]: text(token, 'none') })
const released = [{ channel: 'redisson_lock__channel:{n}', payload: '0' }]
const ours = async () => (await goldenHoldfast(stage)).fencedLock('n')
const peer = (owner = A) => new PeerFencedLock(stage.raw, 'n', owner)

describe('what is left', () => {
  test('1, 2 for a nested use, 3 for the next holder; kept over release, force and expiry', async () => {
    const lock = await ours()
    const first = await act(() => lock.acquire({ leaseTime: 20_000 }))
    const { reply: lease } = first
    expect(first.keys).toEqual({ n: hash({ [lease.owner]: 1 }, 20_000), ...tokenKey(1) })
    expect(lease.token).toBe(1)
    const nested = await act(() => lock.acquire({ within: lease, leaseTime: 20_000 }))
    expect(nested.keys).toMatchObject({ n: { value: { [lease.owner]: '2' } }, ...tokenKey(2) })
    expect(nested.reply.token).toBe(2)
    await nested.reply.release()
    const end = await act(() => lease.release())
    expect(end).toEqual({ reply: 'released', keys: tokenKey(2), messages: released })
    const next = await lock.acquire({ leaseTime: 20_000 })
    expect(next.token).toBe(3)
    const forced = await act(() => lock.forceRelease())
    expect(forced).toEqual({ reply: true, keys: tokenKey(3), messages: released })
    const last = await lock.acquire({ leaseTime: 50 })
    await eventually(async () => !(await lock.isLocked()), 'the lease is over')
    expect((await act(() => Promise.resolve())).keys).toEqual(tokenKey(4))
    expect([last.token, await lock.token()]).toEqual([4, 4])
  })

  test('one script an operation: so many commands, and the token asked for by one', async () => {
    const lock = await ours()
    await (await lock.acquire()).release()
    await lock.token()
    const before = await scriptCalls()
    const lease = await lock.acquire()
    await lease.release()
    await lock.token()
    expect((await scriptCalls()) - before).toBe(3)
  })
})

describe('crossing over', () => {
  test('one counter: each sees the tokens of the other, and gets a higher one', async () => {
    const lock = await ours()
    expect(await peer().acquireWithToken()).toEqual([-1, 1])
    expect(await lock.token()).toBe(1)
    expect(await lock.tryAcquire()).toBeNull()
    expect(await peer().token()).toBe(1)
    await peer().unlock('1')
    const lease = await lock.acquire({ leaseTime: 20_000 })
    expect([lease.token, await peer().token()]).toEqual([2, 2])
    const [ttl, none] = await peer().acquireWithToken()
    expect(none).toBe(-1)
    expect(ttl).toSatisfy((ms: number) => ms > 0 && ms <= 20_000)
    await lease.release()
    expect(await peer(B).acquireWithToken()).toEqual([-1, 3])
    expect(await peer(B).acquireWithToken()).toEqual([-1, 4])
    await peer(B).unlock('2')
    await peer(B).unlock('3')
    expect((await lock.acquire()).token).toBe(5)
  })

  test('a Java lock key without a TTL, which Java takes for its own, is busy for us', async () => {
    const lock = await ours()
    await peer().acquireWithToken()
    await stage.raw.command('PERSIST', 'n')
    expect(await lock.tryAcquire()).toBeNull()
    await expect(lock.acquire({ waitTime: 100 })).rejects.toMatchObject({
      code: 'HOLDFAST_WAIT_TIMEOUT',
      holder: A,
      holderTtl: -1,
    })
    expect(await lock.token()).toBe(1)
  })

  test('deleted by a Java program, the tokens begin anew', async () => {
    const lock = await ours()
    await (await lock.acquire()).release()
    await (await lock.acquire()).release()
    await peer().delete()
    expect(await lock.token()).toBe(0)
    expect((await lock.acquire()).token).toBe(1)
  })
})

async function scriptCalls(): Promise<number> {
  const info = String(await stage.raw.command('INFO', 'commandstats'))
  const calls = [...info.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)]
  return calls.reduce((sum, [, count]) => sum + Number(count), 0)
}
