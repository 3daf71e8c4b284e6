import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Operation } from '../../src/engine/operations.js'
import { FREE } from '../../src/engine/model/state.js'
import type { Change, WatchKeys, WatchOptions } from '../../src/index.js'
import { DataWatch } from '../../src/watch/watch.js'
import { resolveWatchKeys, resolveWatchOptions } from '../../src/watch/watch-options.js'
import { Door } from '../contract/together.js'
import { stage, unavailable, type Stage } from '../support/staged-engine.js'

/** A watch on a directed engine. */
async function scene(keys: WatchKeys, options: WatchOptions = {}) {
  const { runtime, engine, clock, store }: Stage = stage()
  const lines: string[] = []
  const onAny = ({ event, key, created }: Change): void =>
    void lines.push(`${created ? 'create' : event} ${key}`)
  const watch = new DataWatch(runtime, {
    keys: resolveWatchKeys(keys),
    options: resolveWatchOptions({ onChange: onAny, onDelete: onAny, onExpire: onAny, ...options }),
    lockName: undefined,
  })
  await clock.advance(0)
  await watch.ready
  const put = (key: string, owner: string, ttlMs = Infinity) => {
    store.write(key, { ...FREE, value: { kind: 'mutex', owner }, expiresAtMs: clock.now() + ttlMs })
  }
  const remove = (key: string) => {
    store.write(key, FREE)
  }
  const looks = () => engine.asked.filter(({ op }) => op === 'watch.look')
  return { watch, lines, put, remove, engine, clock, looks, runtime }
}

const isLook = ({ op }: Operation): boolean => op === 'watch.look'

describe('an observer', () => {
  test('looks again at what was written while a look was under way', async () => {
    const { lines, put, engine, clock } = await scene('a')
    // So that the next look does not keep its distance to the first one.
    await clock.advance(50)
    const door = new Door()
    engine.direction = async (operation, run) => {
      const reply = await run()
      if (isLook(operation)) await door.opened
      return reply
    }
    put('a', 'one')
    await clock.advance(0)
    put('a', 'two')
    await clock.advance(0)
    expect(lines).toEqual([])
    door.open()
    await clock.advance(50)
    expect(lines).toEqual(['create a', 'change a'])
  })

  test('asks for the rest where an engine stops early', async () => {
    const keys = ['a', 'b', 'c']
    const { lines, put, engine, clock } = await scene(keys, { notifications: 'off' })
    engine.direction = async (operation, run) => {
      const reply = await run()
      return isLook(operation) ? { looks: (reply as { looks: unknown[] }).looks.slice(0, 2) } : reply
    }
    for (const key of keys) put(key, 'one')
    await clock.advance(1_000)
    expect(lines).toEqual(['create a', 'create b', 'create c'])
  })

  test('what was heard before a look that failed still counts', async () => {
    const errors: unknown[] = []
    const { lines, put, remove, engine, clock } = await scene('a', { onError: (error) => errors.push(error) })
    put('a', 'one')
    await clock.advance(50)
    engine.direction = (operation, run) => (isLook(operation) ? unavailable('not-applied') : run())
    remove('a')
    put('a', 'one')
    await clock.advance(3_000)
    expect(errors).toHaveLength(1)
    engine.direction = (_operation, run) => run()
    await clock.advance(1_000)
    expect(lines).toEqual(['create a', 'delete a', 'create a'])
  })

  test('looks when the time of a key is over, and not before', async () => {
    const { watch, lines, put, clock, looks } = await scene('a', { interval: 3_600_000 })
    put('a', 'one', 5_000)
    await clock.advance(4_990)
    expect(lines).toEqual(['create a'])
    const before = looks().length
    await clock.advance(20)
    expect(lines).toEqual(['create a', 'expire a'])
    expect(looks().length - before).toBe(1)
    await watch.close()
  })

  test('looks at all keys every interval while polling, every tenth while it is told', async () => {
    const polling = await scene(['a', 'b'], { interval: 100, notifications: 'off' })
    const told = await scene(['a', 'b'], { interval: 100 })
    for (const { clock, looks, count } of [
      { ...polling, count: 20 },
      { ...told, count: 2 },
    ]) {
      const before = looks().length
      await clock.advance(2_000)
      expect(looks().length - before).toBe(count)
    }
  })

  test('polls until the next check when it finds what it was not told', async () => {
    const { watch, lines, engine, clock, looks } = await scene('a', { interval: 100 })
    engine.direction = async (operation, run) =>
      isLook(operation) ? { looks: [{ type: 'string', mark: 'unheard', exact: true, ttlMs: -1 }] } : run()
    await clock.advance(1_000)
    expect(lines).toEqual(['create a'])
    expect(watch.mode).toBe('polling')
    const before = looks().length
    await clock.advance(500)
    expect(looks().length - before).toBe(5)
    await clock.advance(500)
    expect(watch.mode).toBe('notifications')
  })

  test('leaves nothing behind when it is closed, in whatever state', async () => {
    for (const direction of ['going', 'stuck', 'failing'] as const) {
      const { watch, engine, clock, put } = await scene('a', { interval: 100, onError: () => undefined })
      put('a', 'one')
      engine.direction = (_operation, run) => {
        if (direction === 'going') return run()
        return direction === 'stuck' ? new Promise(() => undefined) : unavailable('unknown')
      }
      await clock.advance(1_050)
      const asked = engine.asked.length
      const closing = watch.close()
      await clock.advance(0)
      await closing
      await clock.advance(60_000)
      expect(engine.asked.length, direction).toBe(asked)
    }
  })
})

describe('errors', () => {
  const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  afterEach(() => warnings.mockClear())

  test('that nobody asks for are one process warning for each watch', async () => {
    const { put, clock } = await scene('a', {
      onChange: () => {
        throw new Error('no')
      },
    })
    for (const value of ['one', 'two', 'three']) {
      put('a', value)
      await clock.advance(100)
    }
    expect(warnings).toHaveBeenCalledTimes(1)
    expect(warnings).toHaveBeenCalledWith(
      "The watch of 'a': a callback for 'a' failed: no",
      expect.objectContaining({ code: 'HOLDFAST_WATCH' }),
    )
  })

  test('of onError itself, too, and it does not end the watch', async () => {
    let calls = 0
    const { put, clock } = await scene('a', {
      onChange: () => {
        calls += 1
        throw new Error('no')
      },
      onError: [
        () => {
          throw new Error('neither')
        },
        () => Promise.reject(new Error('nor')),
      ],
    })
    for (const value of ['one', 'two']) {
      put('a', value)
      await clock.advance(100)
    }
    expect(calls).toBe(2)
    expect(warnings).toHaveBeenCalledTimes(1)
    expect(warnings.mock.calls[0]?.[0]).toContain('onError itself failed: Error: neither')
  })
})
