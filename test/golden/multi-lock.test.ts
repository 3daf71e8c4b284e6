/** Several locks as one: each member is in Redis what it is alone. */
import { expect, test } from 'vitest'
import { PeerFairLock } from '../peer/fair-lock.js'
import { PeerLock } from '../peer/lock.js'
import { hash } from '../peer/snapshot.js'
import { A, goldenHoldfast, goldenStage } from './stage.js'

const stage = goldenStage()
const act = <R>(action: () => Promise<R>) => stage.recorder.act(action)

test('two locks: two hashes, two messages, and nothing else', async () => {
  const holdfast = await goldenHoldfast(stage)
  const both = holdfast.multiLock([holdfast.lock('a'), holdfast.lock('b')])
  const { reply: lease, keys } = await act(() => both.acquire({ leaseTime: 60_000 }))
  const owners = Object.fromEntries(lease.leases.map(({ lock, owner }) => [lock, owner]))
  expect(keys).toEqual({
    a: hash({ [owners['a'] ?? '']: 1 }, 60_000),
    b: hash({ [owners['b'] ?? '']: 1 }, 60_000),
  })
  const freed = await act(() => lease.release())
  expect(freed).toMatchObject({ reply: 'released', keys: {} })
  expect(new Set(freed.messages.map(({ channel, payload }) => `${channel} ${payload}`))).toEqual(
    new Set(['redisson_lock__channel:{a} 0', 'redisson_lock__channel:{b} 0']),
  )
})

test('one is held by a Java program: the others are as free as before', async () => {
  const holdfast = await goldenHoldfast(stage)
  const all = holdfast.multiLock([holdfast.lock('a'), holdfast.fairLock('b'), holdfast.spinLock('c')])
  const peer = new PeerLock(stage.raw, 'c', A)
  await act(() => peer.tryAcquire(60_000))
  const { reply, keys } = await act(() => all.tryAcquire({ leaseTime: 60_000 }))
  expect([reply, keys]).toEqual([null, { c: hash({ [A]: 1 }, 60_000) }])
  await peer.unlock('1')
  const lease = await all.acquire({ leaseTime: 60_000 })
  expect(await new PeerFairLock(stage.raw, 'b', { owner: A }).tryOnce()).toBe(1)
  expect(await lease.release()).toBe('released')
  expect((await act(() => Promise.resolve())).keys).toEqual({})
})
