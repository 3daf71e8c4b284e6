import { describe, expect, test } from 'vitest'
import { Watched } from './together.js'
import { lockOf, type KindStage } from './world.js'

const odd: readonly (readonly [what: string, name: string])[] = [
  ['letters of many scripts', 'замок/鎖/قفل'],
  ['an emoji of several code points', 'lock 👩‍🔧'],
  ['spaces and control characters', ' a\tb\r\nc\0d '],
  ['braces', 'orders:{42}:total'],
  ['empty braces', '{}orders'],
  ['an open brace', 'orders{42'],
  ['braces the wrong way round', '}orders{'],
  ['glob characters', 'orders*[a-z]?'],
  ['quotes and backslashes', `it's "so"\\`],
  ['only a digit', '0'],
  ['1024 bytes', 'x'.repeat(1_024)],
  ['1024 bytes in 256 characters', '🔒'.repeat(256)],
  ['the name of a derived key', 'redisson_lock__channel:{orders}'],
]

/** Names: which are good, which are refused, and what becomes of them in the engine. */
export function names({ stage, kind, lock }: KindStage): void {
  describe.for(odd)('a name of %s', ([, name]) => {
    test('excludes, wakes and is released like any other', async () => {
      const lease = await (await lock(name)).acquire()
      expect(lease.lock).toBe(name)
      const other = await lock(name)
      expect(await other.tryAcquire()).toBeNull()
      const waiter = new Watched(other.acquire())
      await stage.world.pass(30)
      expect(waiter.state).toBe('pending')
      expect(await lease.release()).toBe('released')
      const next = await stage.world.settled(waiter.promise)
      expect(await other.isHeldBy(next.owner)).toBe(true)
      expect(await next.release()).toBe('released')
      expect(await stage.world.read(name)).toBeUndefined()
    })
  })

  test.for<[string, unknown, RegExp]>([
    ['undefined', undefined, /must be a string, but is undefined/],
    ['null', null, /must be a string, but is null/],
    ['a number', 42, /must be a string, but is 42/],
    ['an object', {}, /must be a string, but is an object/],
    ['a symbol', Symbol('x'), /must be a string, but is a symbol/],
    ['the empty string', '', /must not be empty/],
    ['1025 bytes', 'x'.repeat(1_025), /must not exceed 1024 bytes in UTF-8, but has 1025/],
    ['1026 bytes in 342 characters', '鎖'.repeat(342), /but has 1026/],
    ['a lone surrogate', 'a\ud800', /valid Unicode/],
  ])('%s is refused as a name', async ([, name, message]) => {
    const holdfast = await stage.world.holdfast()
    const make = () => lockOf(kind, holdfast, name as string)
    expect(make).toThrow(message)
    expect(make).toThrow(typeof name === 'string' ? RangeError : TypeError)
  })

  test('names that look alike are different locks', async () => {
    const base = stage.name()
    const holdfast = await stage.world.holdfast()
    const alike = [base, `${base} `, `${base}:1`, base.toUpperCase(), `{${base}}`, 'é', 'e\u0301']
    for (const name of alike) expect(await lockOf(kind, holdfast, name).tryAcquire()).not.toBeNull()
  })

  test('keyPrefix is put before the mapped name, and the lock keeps the name that was given', async () => {
    const name = stage.name()
    const mine = await lock(name, { keyPrefix: 'shop:', nameMapper: (given) => `${given}/mapped` })
    expect(mine.name).toBe(name)
    const lease = await mine.acquire()
    expect(lease.lock).toBe(name)
    expect(await stage.world.read(`shop:${name}/mapped`)).toBeDefined()
    expect(await stage.world.read(name)).toBeUndefined()
    const plain = await lock(`shop:${name}/mapped`)
    expect(await plain.tryAcquire()).toBeNull()
    const waiter = plain.acquire()
    await stage.world.pass(30)
    await lease.release()
    expect((await stage.world.settled(waiter)).held).toBe(true)
  })

  test('a mapped name must be good too', async () => {
    const maps = [() => '', () => 'x'.repeat(1_025), () => 7 as unknown as string]
    for (const nameMapper of maps)
      await expect(lock('orders', { nameMapper })).rejects.toThrow(/A lock's name must/)
  })

  test('a lock object costs nothing until it is used', async () => {
    const holdfast = await stage.world.holdfast()
    const before = await stage.world.operations()
    for (let i = 0; i < 1_000; i++) lockOf(kind, holdfast, stage.name())
    expect(await stage.world.operations()).toBe(before)
    expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
  })
}
