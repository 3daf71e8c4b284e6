/** Acquiring, group C: other data under the name, and trouble told apart from a busy lock. */
import { expect, test } from 'vitest'
import { Holdfast, WrongTypeError } from '../../src/index.js'
import { startRedis } from '../support/server.js'
import { openScene, type Scene } from './scene.js'

const NAME = 'orders:42'

interface Data {
  readonly what: string
  readonly write: readonly string[]
  readonly read: readonly string[]
}

const STRING: Data = { what: 'a string', write: ['SET', NAME, 'a value'], read: ['GET', NAME] }
const HASH: Data = {
  what: "somebody's hash",
  write: ['HSET', NAME, 'name', 'Ada', 'city', 'London'],
  read: ['HGETALL', NAME],
}
const LIST: Data = { what: 'a list', write: ['RPUSH', NAME, 'a', 'b'], read: ['LRANGE', NAME, '0', '-1'] }

test.each([
  { family: 'lock', ...STRING },
  { family: 'lock', ...HASH },
  { family: 'lock', ...LIST },
  { family: 'mutex', ...HASH },
  { family: 'mutex', ...LIST },
] as const)(
  'fault 39: a $family on $what names the key and touches nothing',
  async ({ family, write, read }) => {
    await using scene = await openScene()
    await scene.command(...write)
    const before = await scene.command('DUMP', NAME)
    const object = scene.holdfast()[family](NAME)
    for (const call of [
      () => object.acquire(),
      () => object.tryAcquire({ waitTime: 1_000 }),
      () => object.using(() => undefined),
      () => object.isLocked(),
      () => object.forceRelease(),
    ]) {
      const error: unknown = await call().then(
        () => undefined,
        (reason: unknown) => reason,
      )
      expect(error).toBeInstanceOf(WrongTypeError)
      expect(error).toMatchObject({ code: 'HOLDFAST_WRONG_TYPE', key: NAME, lock: NAME })
    }
    expect(await scene.command(...read)).not.toEqual([])
    expect(await scene.command('DUMP', NAME)).toEqual(before)
    expect(await scene.command('PTTL', NAME)).toBe(-1)
  },
)

test('fault 39: lock and mutex of one name do not mistake each other', async () => {
  await using scene = await openScene()
  const holdfast = scene.holdfast()
  const lease = await holdfast.lock(NAME).acquire()
  await expect(holdfast.mutex(NAME).acquire()).rejects.toThrow(WrongTypeError)
  expect(await lease.release()).toBe('released')
  const plain = await holdfast.mutex(NAME).acquire()
  await expect(holdfast.lock(NAME).acquire()).rejects.toThrow(WrongTypeError)
  expect(await plain.release()).toBe('released')
})

/** What an error looks like to its caller. */
interface Shape {
  readonly code: string
  readonly outcome?: string
  readonly cause?: RegExp
}

interface Trouble {
  readonly trouble: string
  readonly make: (scene: Scene) => unknown
  readonly undo?: (scene: Scene) => unknown
  readonly shape: Shape
}

const UNAVAILABLE = 'HOLDFAST_UNAVAILABLE'
const refused = (cause: RegExp): Shape => ({ code: UNAVAILABLE, outcome: 'not-applied', cause })
const SILENT: Shape = { code: UNAVAILABLE, outcome: 'unknown' }

/** Each must be known by what the call rejects with. */
const TROUBLES: readonly Trouble[] = [
  {
    trouble: 'a busy lock',
    make: (scene) => scene.command('HSET', NAME, '0a1b2c3d-0001-4000-8000-00000000e15e:7', 1),
    shape: { code: 'HOLDFAST_WAIT_TIMEOUT' },
  },
  {
    trouble: 'a server that stands still',
    make: (scene) => scene.server.pause(),
    undo: (scene) => scene.server.resume(),
    shape: SILENT,
  },
  {
    trouble: 'a server that holds writes back',
    make: (scene) => scene.command('CLIENT', 'PAUSE', 60_000, 'WRITE'),
    undo: (scene) => scene.command('CLIENT', 'UNPAUSE'),
    shape: SILENT,
  },
  {
    trouble: 'a server that is gone',
    make: (scene) => scene.server.kill(),
    shape: { code: UNAVAILABLE, outcome: 'not-applied' },
  },
  {
    trouble: 'a server that became a replica',
    make: (scene) => scene.command('REPLICAOF', '127.0.0.1', 1),
    shape: refused(/READONLY/),
  },
  {
    trouble: 'a full server',
    make: async (scene) => {
      await scene.command('SET', 'ballast', 'x'.repeat(2_000_000))
      await scene.command('CONFIG', 'SET', 'maxmemory', '1mb')
    },
    shape: refused(/OOM/),
  },
  {
    trouble: 'a server that is kept busy by a script',
    make: async (scene) => {
      await scene.command('CONFIG', 'SET', 'busy-reply-threshold', 10)
      const looping = scene.server.send('EVAL', 'while true do end', 0)
      looping.catch(() => undefined)
      await expect.poll(() => scene.command('PING').catch(String), { timeout: 10_000 }).toMatch(/BUSY/)
    },
    undo: (scene) => scene.command('SCRIPT', 'KILL'),
    shape: refused(/BUSY/),
  },
  {
    trouble: 'a user without the right to run scripts',
    make: (scene) => scene.command('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
    shape: refused(/NOPERM/),
  },
  {
    trouble: 'a user without the right to the key',
    make: (scene) => scene.command('ACL', 'SETUSER', 'default', 'resetkeys', '~others:*'),
    shape: { code: UNAVAILABLE, cause: /NOPERM/ },
  },
  {
    trouble: 'other data under the name',
    make: (scene) => scene.command('SET', NAME, 'a value'),
    shape: { code: 'HOLDFAST_WRONG_TYPE' },
  },
]

test.each(TROUBLES)('fault 40: $trouble is told apart', async ({ make, undo, shape }) => {
  await using scene = await openScene()
  const holdfast = scene.holdfast({ commandTimeout: 300, subscriber: 'off' })
  expect(await holdfast.lock('warm').tryAcquire()).not.toBeNull()
  await make(scene)
  try {
    const error: unknown = await holdfast
      .lock(NAME)
      .acquire({ waitTime: 0 })
      .then(
        () => undefined,
        (reason: unknown) => reason,
      )
    const { cause, ...rest } = shape
    expect(error).toMatchObject({ ...rest, lock: NAME })
    if (cause !== undefined) expect(String((error as Error).cause)).toMatch(cause)
  } finally {
    await undo?.(scene)
  }
})

test('fault 40: closing and aborting are told apart', async () => {
  await using server = await startRedis()
  const holdfast = await Holdfast.connect(server.url)
  const reason = new Error('enough')
  await expect(holdfast.lock(NAME).tryAcquire({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  await holdfast.close()
  await expect(holdfast.lock(NAME).tryAcquire()).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
})

test('fault 40: a client that is closed is told apart', async () => {
  await using scene = await openScene()
  const client = scene.ioredis()
  const holdfast = scene.holdfast({}, client)
  client.disconnect()
  await expect(holdfast.lock(NAME).tryAcquire()).rejects.toMatchObject({
    code: UNAVAILABLE,
    outcome: 'not-applied',
    message: expect.stringMatching(/closed/) as string,
  })
})
