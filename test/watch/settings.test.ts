/** Rights, databases, prefixes and subscribers of one's own. */
import { readFileSync } from 'node:fs'
import { createClient } from 'redis'
import { describe, expect, test } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { HOUR, untilMode, watching, watchScene } from './watcher.js'

describe('with fewer rights', () => {
  test('CONFIG refused: it polls, and messages bring looks forward all the same', async () => {
    await using scene = await watchScene('KEA')
    await scene.command('ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all', '-config')
    for (const client of [
      scene.ioredis({ username: 'app', password: 'pw' }),
      await nodeRedis(scene, { username: 'app', password: 'pw' }),
    ]) {
      const told = await watching(scene, scene.holdfast({}, client), { keys: 'a', interval: HOUR })
      expect(told.watch.mode).toBe('polling')
      await scene.command('SET', 'a', '1')
      await told.until('create a')
      await scene.command('DEL', 'a')
      await told.until('create a', 'delete a')
      expect(told.errors).toEqual([])
    }
  })

  test('channels refused: it polls', async () => {
    await using scene = await watchScene('KEA')
    await scene.command('ACL', 'SETUSER', 'app', 'on', '>pw', '~*', 'resetchannels', '+@all')
    const client = scene.ioredis({ username: 'app', password: 'pw' })
    const told = await watching(scene, scene.holdfast({}, client), { keys: 'a', interval: 20 })
    expect(told.watch.mode).toBe('polling')
    await scene.command('SET', 'a', '1')
    await told.until('create a')
  })

  test('a key refused: told as trouble, and watched from when it is allowed', async () => {
    await using scene = await watchScene('')
    await scene.command('ACL', 'SETUSER', 'app', 'on', '>pw', '~other:*', '+@all')
    await scene.command('SET', 'a', '1')
    const client = scene.ioredis({ username: 'app', password: 'pw' })
    const holdfast = scene.holdfast({}, client)
    const errors: unknown[] = []
    const watch = holdfast.watch('a', { interval: 20, onError: (error) => errors.push(error) })
    scene.atEnd(() => watch.close())
    await expect.poll(() => errors.length).toBe(1)
    expect(errors[0]).toMatchObject({
      code: 'HOLDFAST_UNAVAILABLE',
      message: expect.stringContaining('NOPERM') as string,
    })
    await scene.command('ACL', 'SETUSER', 'app', '~a')
    await watch.ready
    expect(errors).toHaveLength(1)
  })

  test('the pattern is what the right is judged by', async () => {
    await using scene = await watchScene('KEA')
    await scene.command('ACL', 'SETUSER', 'app', 'on', '>pw', '~app:*', '&*', '+@all')
    const client = scene.ioredis({ username: 'app', password: 'pw' })
    const told = await watching(scene, scene.holdfast({}, client), {
      keys: { pattern: 'app:*' },
      interval: HOUR,
    })
    await scene.command('SET', 'app:1', '1')
    await told.until('create app:1')
  })
})

describe('which keys are meant', () => {
  test('those of the database of the client', async () => {
    await using scene = await watchScene('KEA')
    for (const client of [scene.ioredis({ db: 3 }), await nodeRedis(scene, { database: 3 })]) {
      const told = await watching(scene, scene.holdfast({}, client), { keys: 'a', interval: HOUR })
      expect(told.watch.mode).toBe('notifications')
      await scene.command('SET', 'a', 'of database 0')
      await Promise.all([
        scene.command('SELECT', 3),
        scene.command('SET', 'a', '1'),
        scene.command('SELECT', 0),
      ])
      await told.until('create a')
      await Promise.all([scene.command('SELECT', 3), scene.command('DEL', 'a'), scene.command('SELECT', 0)])
      await told.until('create a', 'delete a')
    }
  })

  test('a prefix of the client applies, whatever is in it; keyPrefix and nameMapper do not', async () => {
    await using scene = await watchScene('KEA')
    for (const client of [
      scene.ioredis({ keyPrefix: 'a[b]*:' }),
      await nodeRedis(scene, { keyPrefix: 'a[b]*:' }),
    ]) {
      const holdfast = scene.holdfast({ keyPrefix: 'locks:', nameMapper: (name) => `mapped:${name}` }, client)
      const byName = await watching(scene, holdfast, { keys: 'config', interval: HOUR })
      const byPattern = await watching(scene, holdfast, { keys: { pattern: 'con*' }, interval: HOUR })
      await scene.command('SET', 'config', 'of somebody else')
      await scene.command('SET', 'ab:config', 'of somebody else')
      await scene.command('SET', 'a[b]*:config', '1')
      await Promise.all([byName.until('create config'), byPattern.until('create config')])
      await scene.command('DEL', 'a[b]*:config')
      await Promise.all([
        byName.until('create config', 'delete config'),
        byPattern.until('create config', 'delete config'),
      ])
    }
  })
})

describe('how messages come', () => {
  test('over a client that the user keeps for messages', async () => {
    await using scene = await watchScene('KEA')
    const pairs: [object, object][] = [
      [scene.ioredis(), scene.ioredis()],
      [await scene.nodeRedis(), await scene.nodeRedis()],
    ]
    for (const [client, subscriber] of pairs) {
      const holdfast = scene.holdfast({ subscriber }, client)
      const byName = await watching(scene, holdfast, { keys: 'a', interval: HOUR })
      const byPattern = await watching(scene, holdfast, { keys: { pattern: 'a*' }, interval: HOUR })
      expect([byName.watch.mode, byPattern.watch.mode]).toEqual(['notifications', 'notifications'])
      await scene.command('SET', 'a', '1')
      await Promise.all([byName.until('create a'), byPattern.until('create a')])
      await Promise.all([scene.command('CLIENT', 'KILL', 'TYPE', 'pubsub'), scene.command('SET', 'a', '2')])
      await Promise.all([byName.until('create a', 'change a'), byPattern.until('create a', 'change a')])
      await holdfast.close()
      await expect.poll(() => scene.command('PUBSUB', 'NUMPAT')).toBe(0)
      expect(await scene.command('PUBSUB', 'CHANNELS')).toEqual([])
      await scene.command('DEL', 'a')
    }
  })

  test('without a subscriber it polls', async () => {
    await using scene = await watchScene('KEA')
    const told = await watching(scene, scene.holdfast({ subscriber: 'off' }), { keys: 'a', interval: 20 })
    expect(told.watch.mode).toBe('polling')
    await scene.command('SET', 'a', '1')
    await told.until('create a')
  })

  test('nothing is subscribed any more after the end', async () => {
    await using scene = await watchScene('KEA')
    const holdfast = scene.holdfast()
    const byName = await watching(scene, holdfast, { keys: ['a', 'b'], interval: HOUR })
    const byPattern = await watching(scene, holdfast, { keys: { pattern: 'a*' }, interval: HOUR })
    expect(await scene.command('PUBSUB', 'NUMPAT')).toBe(1)
    await Promise.all([byName.watch.close(), byPattern.watch.close()])
    await expect.poll(() => scene.command('PUBSUB', 'NUMPAT')).toBe(0)
    await expect.poll(() => scene.command('PUBSUB', 'CHANNELS')).toEqual([])
  })
})

describe('with notifications', () => {
  test('a key that went and came back between two looks is told as both', async () => {
    await using scene = await watchScene('KEA')
    await scene.command('SET', 'a', '1')
    const told = await watching(scene, scene.holdfast(), { keys: ['a', 'b'], interval: HOUR })
    await scene.command('EVAL', `redis.call('del', 'a') return redis.call('set', 'a', '1')`, 0)
    await told.until('delete a', 'create a')
    await scene.command('RENAME', 'a', 'b')
    await expect.poll(() => [...told.lines].sort()).toEqual(['create a', 'create b', 'delete a', 'delete a'])
  })

  test('a key that is written all the time costs a look every 20 ms at most', async () => {
    await using scene = await watchScene('KEA')
    const told = await watching(scene, scene.holdfast(), { keys: 'a', interval: HOUR })
    await scene.forgetCalls()
    const startMs = performance.now()
    for (let i = 0; i < 2_000; i++) await scene.command('SET', 'a', i)
    const ms = performance.now() - startMs
    await untilMode(told, 'notifications')
    expect(await scene.scripts()).toBeLessThanOrEqual(ms / 20 + 2)
    expect(told.lines.length).toBeGreaterThan(0)
  })
})

async function nodeRedis(
  scene: { readonly port: number; atEnd(ending: () => unknown): void },
  options: { username?: string; password?: string; database?: number; keyPrefix?: string },
): Promise<object> {
  const client = createClient({ socket: { host: '127.0.0.1', port: scene.port }, ...options })
  client.on('error', () => undefined)
  await client.connect()
  scene.atEnd(() => {
    client.destroy()
  })
  return client
}

test('Holdfast.connect watches, too', async () => {
  await using scene = await watchScene('KEA')
  const holdfast = await Holdfast.connect(scene.server.url)
  scene.atEnd(() => holdfast.close())
  const told = await watching(scene, holdfast, { keys: 'a', interval: HOUR })
  await scene.command('SET', 'a', '1')
  await told.until('create a')
})

describe('with no more rights than the documents name', () => {
  test('values of every type are watched, by name and by pattern, and under a lock', async () => {
    await using scene = await watchScene('KEA')
    const page = readFileSync(new URL('../../docs/watching.md', import.meta.url), 'utf8')
    const section = page.split('## Rights')[1] ?? ''
    const named = [...section.matchAll(/`\+?([a-z_|]+)`/g)].map(([, command = '']) => `+${command}`)
    expect(named.length).toBeGreaterThan(20)
    const keys = ['~app:*', '~holdfast_watch:*', '~lock', '~redisson*']
    const lockNeeds = ['+exists', '+hget', '+hexists', '+hscan', '+publish']
    // The clients' own.
    const others = ['+ping', '+info', '+client', '+hello', '+select']
    const channels = ['resetchannels', '&__keyspace@0__:app:*', '&redisson*']
    const rights = [...keys, ...channels, '-@all', ...named, ...lockNeeds, ...others]
    await scene.command('ACL', 'SETUSER', 'app', 'on', '>pw', ...rights)
    const client = scene.ioredis({ username: 'app', password: 'pw' })
    const holdfast = scene.holdfast({}, client)
    const make: readonly (readonly string[])[] = [
      ['SET', 'app:string', 'x'.repeat(50)],
      ['RPUSH', 'app:list', 'x'.repeat(50)],
      ['SADD', 'app:set', 'x'.repeat(50)],
      ['ZADD', 'app:zset', '1', 'x'.repeat(50)],
      ['HSET', 'app:hash', 'x', 'x'.repeat(50)],
      ['XADD', 'app:stream', '*', 'x', 'x'.repeat(50)],
    ]
    const names = make.map(([, name = '']) => name)
    const watches = [
      await watching(scene, holdfast, { keys: names, interval: HOUR }),
      await watching(scene, holdfast, { keys: { pattern: 'app:*' }, interval: HOUR, exactUpTo: 10 }),
      await watching(scene, holdfast, { keys: names, interval: HOUR, under: holdfast.lock('lock') }),
    ]
    for (const words of make) await scene.command(...words)
    for (const told of watches) {
      await expect.poll(() => [...told.lines].sort()).toEqual(names.map((name) => `create ${name}`).sort())
      expect(told.errors).toEqual([])
      expect(told.watch.mode).toBe('notifications')
    }
  })
})

test('other data where the notes of a lock belong is told, and left alone', async () => {
  await using scene = await watchScene('')
  await scene.command('SET', 'holdfast_watch:{lock}', 'theirs')
  const holdfast = scene.holdfast()
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const watch = holdfast.watch('a', { interval: 20, under: holdfast.lock('lock'), onError })
  scene.atEnd(() => watch.close())
  await expect.poll(() => errors.length).toBe(1)
  expect(errors[0]).toMatchObject({ code: 'HOLDFAST_WRONG_TYPE', key: 'holdfast_watch:{lock}' })
  await scene.command('DEL', 'holdfast_watch:{lock}')
  await watch.ready
  expect(errors).toHaveLength(1)
})
