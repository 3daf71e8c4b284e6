import { describe, expect, test } from 'vitest'
import { ManualClock, type Clock, type Timer } from '../../src/clock.js'
import { newPassage, type Hint } from '../../src/engine/engine.js'
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { MemoryStore, sharedStore } from '../../src/engine/memory/memory-store.js'
import type { Operation } from '../../src/engine/operations.js'

const A = 'client:1'
const B = 'client:2'

const make = () => {
  const clock = new ManualClock()
  const store = new MemoryStore(clock)
  const engine = new MemoryEngine(store)
  return {
    clock,
    store,
    run: <O extends Operation>(operation: O) => engine.execute(operation, newPassage()),
    engine,
  }
}
const acquire = (name: string, owner = A, leaseMs = 5_000) =>
  ({ op: 'lock.acquire', name, owner, count: 1, leaseMs }) as const
const release = (name: string, owner = A, entombMs = 0) =>
  ({ op: 'lock.release', name, owner, keepMs: 0, entombMs }) as const

describe('the store', () => {
  test('forgets a name when nothing is left under it', async () => {
    const { store, run } = make()
    await run(acquire('a'))
    await run(acquire('b'))
    expect(store.size).toBe(2)
    await run(release('a'))
    expect(store.size).toBe(1)
    await run({ op: 'lock.inspect', name: 'never used' })
    expect(store.size).toBe(1)
  })

  test('sweeps out what has expired although nobody looks, tombstones too', async () => {
    const { clock, store, run } = make()
    for (let i = 0; i < 100; i++) await run(acquire(`lock ${i}`, A, 1_000))
    await run(release('other', A, 25_000))
    await clock.advance(20_000)
    expect(store.size).toBe(1)
    await clock.advance(20_000)
    expect(store.size).toBe(0)
    expect(clock.pendingTimers).toBe(0)
  })

  test('has no timer while it is empty, one while it is not, and none that keeps the process alive', async () => {
    const timers: boolean[] = []
    const clock: Clock = {
      now: () => 0,
      wall: () => 0,
      uptime: () => 0,
      setTimer: (_callback, _delayMs, keepAlive): Timer => {
        timers.push(keepAlive)
        return { cancel: () => undefined, keepAlive: () => undefined }
      },
    }
    const engine = new MemoryEngine(new MemoryStore(clock))
    await engine.execute({ op: 'lock.inspect', name: 'a' }, newPassage())
    expect(timers).toEqual([])
    for (const name of ['a', 'b', 'c']) await engine.execute(acquire(name), newPassage())
    expect(timers).toEqual([false])
  })

  test('is private, or shared by name', async () => {
    const clock = new ManualClock()
    const name = crypto.randomUUID()
    const store = sharedStore(name, clock)
    expect(sharedStore(name, clock)).toBe(store)
    expect(sharedStore(`${name} 2`, clock)).not.toBe(store)
    const [one, two] = [new MemoryEngine(store), new MemoryEngine(sharedStore(name, clock))]
    await one.execute(acquire('a'), newPassage())
    expect(await two.execute(acquire('a', B), newPassage())).toMatchObject({ outcome: 'busy', holder: A })
    expect(await make().run(acquire('a', B))).toEqual({ outcome: 'granted' })
  })

  test('is the same for two copies of the package in one process', () => {
    const name = crypto.randomUUID()
    const store = sharedStore(name, undefined)
    const registry = Reflect.get(globalThis, Symbol.for('holdfast.memory-stores')) as ReadonlyMap<
      string,
      unknown
    >
    expect(registry.get(name)).toMatchObject({ store })
  })
})

describe('operations', () => {
  test('keys expire by the clock', async () => {
    const { clock, run } = make()
    await run(acquire('a'))
    await clock.advance(4_999)
    expect(await run(acquire('a', B))).toEqual({ outcome: 'busy', ttlMs: 1, holder: A })
    await clock.advance(1)
    expect(await run(acquire('a', B))).toEqual({ outcome: 'granted' })
  })

  test('a renewal is about many names at once, in their order', async () => {
    const { run, store, clock } = make()
    await run(acquire('a'))
    await run(acquire('b', B))
    const holds = ['a', 'b', 'c', 'a'].map((name) => ({ name, owner: A }))
    expect(await run({ op: 'lock.renew', ttlMs: 9_000, holds })).toEqual({
      results: ['renewed', 'taken', 'gone', 'renewed'],
    })
    expect([store.read('a').expiresAtMs, store.read('b').expiresAtMs]).toEqual([9_000, 5_000])
    expect(clock.now()).toBe(0)
  })

  test('both kinds of lock meet on one name and leave each other alone', async () => {
    const { run } = make()
    await run(acquire('a'))
    expect(await run({ op: 'mutex.acquire', name: 'a', owner: B, leaseMs: 1 })).toEqual({
      outcome: 'foreign',
    })
    expect(await run({ op: 'mutex.release', name: 'a', owner: A, keepMs: 0, entombMs: 0 })).toEqual({
      outcome: 'foreign',
    })
    expect(await run({ op: 'mutex.renew', ttlMs: 1, holds: [{ name: 'a', owner: A }] })).toEqual({
      results: ['taken'],
    })
    expect(await run({ op: 'lock.leave', name: 'a', owner: A, count: 1 })).toEqual({ outcome: 'kept' })
  })

  test('stamp the passage', async () => {
    const { engine, clock } = make()
    const passage = newPassage()
    clock.block(7)
    await engine.execute(acquire('a'), passage)
    expect(passage).toMatchObject({ sends: 1, firstSentAtMs: 7, lastSentAtMs: 7, once: true })
    clock.block(5)
    await engine.execute(acquire('a'), passage)
    expect(passage).toMatchObject({ sends: 2, firstSentAtMs: 7, lastSentAtMs: 12, once: false })
  })
})

describe('messages', () => {
  test('reach every listener of that kind and name, after the operation', async () => {
    const { engine, run } = make()
    const heard: string[] = []
    const listen = (family: 'lock' | 'mutex', name: string) =>
      engine.subscribe({ family, name }, (hint: Hint) => heard.push(`${family} ${name} ${hint}`))
    const subscriptions = [
      listen('lock', 'a'),
      listen('lock', 'a'),
      listen('mutex', 'a'),
      listen('lock', 'b'),
    ]
    expect(await Promise.all(subscriptions.map(({ live }) => live))).toEqual([true, true, true, true])
    await run(acquire('a'))
    const released = run(release('a'))
    expect(heard).toEqual([])
    await released
    expect(heard).toEqual(['lock a one', 'lock a one'])
  })

  test('do not reach those who have left, and an end may be told twice', async () => {
    const { engine, run } = make()
    const heard: Hint[] = []
    const subscription = engine.subscribe({ family: 'lock', name: 'a' }, (hint) => heard.push(hint))
    const other = engine.subscribe({ family: 'lock', name: 'a' }, () => undefined)
    subscription.close()
    subscription.close()
    await run(acquire('a'))
    await run(release('a'))
    other.close()
    await run(acquire('a'))
    await run(release('a'))
    expect(heard).toEqual([])
  })

  test('come with a release, a minimum hold and a forced release, not with an expiry or in vain', async () => {
    const { engine, clock, run } = make()
    const heard: Hint[] = []
    engine.subscribe({ family: 'lock', name: 'a' }, (hint) => heard.push(hint))
    await run(acquire('a'))
    await run({ ...release('a'), keepMs: 100 })
    expect(heard.splice(0)).toEqual(['one'])
    await clock.advance(100)
    await run(release('a'))
    expect(heard).toEqual([])
    await run(acquire('a'))
    await run({ op: 'lock.force', name: 'a', owners: [B] })
    expect(heard).toEqual([])
    await run({ op: 'lock.force', name: 'a', owners: [A] })
    expect(heard).toEqual(['one'])
  })
})
