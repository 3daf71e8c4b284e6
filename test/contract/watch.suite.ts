import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change, Holdfast, Watch, WatchKeys, WatchMode, WatchOptions } from '../../src/index.js'
import { hear } from './hear.js'
import { Door } from './together.js'
import { watchInput } from './watch-input.suite.js'
import { watchUnder } from './watch-under.suite.js'
import { atEnd, type Stage } from './world.js'

/** What a watch told, in words. */
export class Diary {
  readonly lines: string[] = []
  readonly changes: Change[] = []
  readonly errors: unknown[] = []

  readonly onAny = (change: Change): void => {
    this.changes.push(change)
    this.lines.push(`${change.created ? 'create' : change.event} ${change.key}`)
  }

  /** The options that fill it. */
  readonly all: WatchOptions = {
    onChange: this.onAny,
    onDelete: this.onAny,
    onExpire: this.onAny,
    onError: (error) => this.errors.push(error),
  }
}

/** A watch and what it told. */
export interface Watched {
  readonly watch: Watch
  readonly diary: Diary
}

/** Shorthands for tests of watching in one mode. */
export class WatchStage {
  readonly stage: Stage
  readonly mode: WatchMode

  constructor(stage: Stage, mode: WatchMode) {
    this.stage = stage
    this.mode = mode
  }

  /** The options by which a watch gets into the mode, with times that a test can wait for. */
  get terms(): WatchOptions {
    const polls = this.mode === 'polling'
    return { interval: 50, ...(polls && this.stage.world.server === undefined && { notifications: 'off' }) }
  }

  /** A watch that has taken its first look, on a Holdfast of its own. */
  async watch(keys: WatchKeys, options: WatchOptions = {}, holdfast?: Holdfast): Promise<Watched> {
    const diary = new Diary()
    const on = holdfast ?? (await this.stage.world.holdfast())
    const watch = on.watch(keys, { ...this.terms, ...diary.all, ...options })
    atEnd(() => this.stage.world.settled(watch.close()))
    await this.stage.world.settled(watch.ready)
    return { watch, diary }
  }

  /** Another program stores a text. */
  async put(key: string, value: string, ttlMs = 3_600_000): Promise<void> {
    const { world } = this.stage
    if (world.server === undefined) await world.take(key, value, { kind: 'mutex', ttlMs })
    else await world.server.command('SET', key, value, 'PX', ttlMs)
  }

  /** Waits until these lines, and no others, stand in the diary. */
  async told({ lines }: Diary, ...expected: readonly string[]): Promise<void> {
    await this.stage.world.until(
      () => lines.length >= expected.length,
      `${expected.join()}, not ${lines.join()}`,
    )
    expect(lines).toEqual(expected)
  }

  /** Resolves when a look at this key, and with it at whatever was done before, was surely taken. */
  async lookedAt(diary: Diary, watchedKey: string): Promise<void> {
    const before = diary.lines.length
    await this.put(watchedKey, `look ${String(this.stage.world.now())}`)
    await this.stage.world.until(() => diary.lines.length > before, 'a look was taken')
  }
}

/** All that watching promises, in both modes. */
export function watchSuite(stage: Stage): void {
  describe.each(['notifications', 'polling'] as const)('watch by %s', (mode) => {
    const its = new WatchStage(stage, mode)
    const configure = async (flags: string) =>
      stage.world.server?.command('CONFIG', 'SET', 'notify-keyspace-events', flags)
    beforeAll(() => configure(mode === 'notifications' ? 'KEA' : ''))
    afterAll(() => configure(''))
    telling(its)
    patterns(its)
    callbacks(its)
    iterating(its)
    ending(its)
    watchUnder(its)
  })
  describe('watch', () => {
    watchInput(stage)
  })
}

function telling(its: WatchStage): void {
  const { stage, mode } = its

  test('tells of changes, new keys, removals and expiry, and how it learns of them', async () => {
    const key = stage.name()
    await its.put(key, 'one')
    const { watch, diary } = await its.watch(key)
    expect(watch.mode).toBe(mode)
    await its.put(key, 'two')
    await its.told(diary, `change ${key}`)
    await stage.world.remove(key)
    await its.told(diary, `change ${key}`, `delete ${key}`)
    await its.put(key, 'three', 300)
    await its.told(diary, `change ${key}`, `delete ${key}`, `create ${key}`)
    await its.told(diary, `change ${key}`, `delete ${key}`, `create ${key}`, `expire ${key}`)
    expect(diary.errors).toEqual([])
    expect(diary.changes).toMatchObject([
      { event: 'change', created: false, type: 'string', sampled: false, merged: 0 },
      { event: 'delete', created: false, type: 'string', ttl: 0 },
      { event: 'change', created: true, type: 'string' },
      { event: 'expire', created: false, type: 'string', ttl: 0 },
    ])
    expect(diary.changes[2]?.ttl).toBeGreaterThan(0)
    expect(diary.changes[2]?.ttl).toBeLessThanOrEqual(300)
  })

  test('tells nothing of the same value once more, of another time to live, and of other keys', async () => {
    const [key, second, other] = [stage.name(), stage.name(), stage.name()]
    await its.put(key, 'one')
    const { diary } = await its.watch([key, second])
    await stage.world.persist(key)
    await its.put(key, 'one')
    await its.put(other, 'x')
    await its.lookedAt(diary, second)
    await its.lookedAt(diary, second)
    expect(diary.lines).toEqual([`create ${second}`, `change ${second}`])
  })

  test('watches values of any type, and a change of type', async () => {
    const key = stage.name()
    await stage.world.storeData(key, 'hash')
    const { diary } = await its.watch([key, key])
    if (stage.world.server !== undefined) await stage.world.server.command('HSET', key, 'item:42', '4')
    else await stage.world.storeData(key, 'list')
    await its.told(diary, `change ${key}`)
  })

  test('does not take the end of a long life for an expiry', async () => {
    const key = stage.name()
    await its.put(key, 'one', 60_000)
    const { diary } = await its.watch(key)
    await stage.world.remove(key)
    await its.told(diary, `delete ${key}`)
  })

  test('takes another interval while it runs', async () => {
    const key = stage.name()
    const { watch, diary } = await its.watch(key, { interval: 3_600_000 })
    expect(watch.interval).toBe(3_600_000)
    if (mode === 'notifications') {
      // A check is due at once.
      await stage.world.remove(key)
    } else {
      await its.put(key, 'one')
      await stage.world.pass(100)
      expect(diary.lines).toEqual([])
    }
    watch.interval = 20
    expect(watch.interval).toBe(20)
    await stage.world.pass(100)
    await its.put(key, 'two')
    await stage.world.until(() => diary.lines.length > 0, 'it is told')
    expect(() => (watch.interval = 9)).toThrow(RangeError)
    expect(() => (watch.interval = NaN)).toThrow(TypeError)
    expect(watch.interval).toBe(20)
  })

  test('watches the keys of locks, and is not disturbed by their renewal', async () => {
    const name = stage.name()
    const holdfast = await stage.world.holdfast({ lockWatchdogTimeout: 300 })
    const { diary } = await its.watch(name, {}, holdfast)
    const lease = await holdfast.lock(name).acquire()
    await its.told(diary, `create ${name}`)
    await stage.world.pass(700)
    await stage.world.settled(lease.release())
    await its.told(diary, `create ${name}`, `delete ${name}`)
  })

  test('says so when it polls', async () => {
    const key = stage.name()
    const diagnoses = hear('holdfast:diagnosis', `'${key}'`)
    await its.watch(key, mode === 'polling' ? { notifications: 'auto' } : {})
    const polls = mode === 'polling' && stage.world.server !== undefined
    expect(diagnoses.map(({ kind }) => kind)).toEqual(polls ? ['watch-polling'] : [])
  })
}

function patterns(its: WatchStage): void {
  const { stage } = its

  test('watches all keys that fit a pattern, also those that come later', async () => {
    const base = stage.name()
    await its.put(`${base}:a`, 'one')
    await its.put(`${base}:b1`, 'one')
    const { diary } = await its.watch({ pattern: `${base}:[ac]*` })
    await its.put(`${base}:b2`, 'one')
    await its.put(`${base}:c`, 'one')
    await its.told(diary, `create ${base}:c`)
    await its.put(`${base}:a`, 'two')
    await its.told(diary, `create ${base}:c`, `change ${base}:a`)
    await stage.world.remove(`${base}:c`)
    await its.told(diary, `create ${base}:c`, `change ${base}:a`, `delete ${base}:c`)
    await its.put(`${base}:c`, 'three', 200)
    await stage.world.until(() => diary.lines.at(-1) === `expire ${base}:c`, 'it expires')
    expect(diary.lines.slice(3)).toEqual([`create ${base}:c`, `expire ${base}:c`])
  })

  test('watches hundreds of keys', async () => {
    const base = stage.name()
    const keys = Array.from({ length: 300 }, (_, i) => `${base}:${String(i)}`)
    for (const key of keys) await its.put(key, 'one')
    const byName = await its.watch(keys)
    const byPattern = await its.watch({ pattern: `${base}:*` })
    for (const key of keys) await its.put(key, 'two')
    for (const { diary } of [byName, byPattern]) {
      await stage.world.until(() => diary.lines.length >= 300, 'all are told')
      expect(diary.lines.sort()).toEqual(keys.map((key) => `change ${key}`).sort())
    }
  })
}

function callbacks(its: WatchStage): void {
  const { stage } = its

  test('calls several callbacks in order, and tells onError what one throws or rejects with', async () => {
    const key = stage.name()
    const calls: string[] = []
    const failures: unknown[] = []
    const { watch } = await its.watch(key, {
      onChange: [
        () => {
          calls.push('first')
          throw new Error('first')
        },
        async () => {
          calls.push('second')
          await Promise.resolve()
          throw new Error('second')
        },
        () => calls.push('third'),
      ],
      onError: (error, change) => failures.push([(error as Error).message, change?.key]),
    })
    const fourth = (): void => void calls.push('fourth')
    expect(watch.on('change', fourth)).toBe(watch)
    await its.put(key, 'one')
    await stage.world.until(() => calls.length === 4 && failures.length === 2, 'all are called')
    expect(calls).toEqual(['first', 'second', 'third', 'fourth'])
    expect(failures).toEqual([
      ['first', key],
      ['second', key],
    ])
    expect(watch.off('change', fourth)).toBe(watch)
    await its.put(key, 'two')
    await stage.world.until(() => calls.length === 7 && failures.length === 4, 'they are called again')
    expect(calls.slice(4)).toEqual(['first', 'second', 'third'])
  })

  test('lets a slow callback hold up its own key only, and keeps the order', async () => {
    const [slow, quick] = [stage.name(), stage.name()]
    const door = new Door()
    const lines: string[] = []
    await its.watch([slow, quick], {
      onChange: async ({ key }) => {
        lines.push(`begin ${key}`)
        if (key === slow) await door.opened
        lines.push(`end ${key}`)
      },
      onDelete: ({ key }) => lines.push(`delete ${key}`),
    })
    await its.put(slow, 'one')
    await stage.world.until(() => lines.length === 1, 'the slow one has begun')
    await stage.world.remove(slow)
    await its.put(quick, 'one')
    await stage.world.until(() => lines.length === 3, 'the quick one is done')
    expect(lines).toEqual([`begin ${slow}`, `begin ${quick}`, `end ${quick}`])
    door.open()
    await stage.world.until(() => lines.length === 5, 'the slow one is done')
    expect(lines.slice(3)).toEqual([`end ${slow}`, `delete ${slow}`])
  })

  test('merges the changes of a key when the buffer is full, and drops none of the newest', async () => {
    const [key, other] = [stage.name(), stage.name()]
    const door = new Door()
    const seen: Change[] = []
    await its.watch([key, other], {
      buffer: 1,
      onChange: async (change) => {
        if (change.key === other) return
        seen.push(change)
        await door.opened
      },
      onDelete: (change) => seen.push(change),
    })
    const looker = await its.watch(other)
    // Long enough for a look of the watch that is under test, whose pace is the same.
    const looked = async (): Promise<void> => {
      await its.lookedAt(looker.diary, other)
      await stage.world.pass(200)
    }
    await its.put(key, 'one')
    await stage.world.until(() => seen.length === 1, 'it is called')
    for (const value of ['two', 'three', 'four']) {
      await its.put(key, value)
      await looked()
    }
    await stage.world.remove(key)
    await looked()
    door.open()
    await stage.world.until(() => seen.length === 2, 'it is called again')
    expect(seen[1]).toMatchObject({ event: 'delete', merged: 3 })
  })
}

function iterating(its: WatchStage): void {
  const { stage } = its
  const plain = async (key: WatchKeys, options: WatchOptions = {}): Promise<Watch> => {
    const holdfast = await stage.world.holdfast()
    const watch = holdfast.watch(key, { ...its.terms, ...options })
    atEnd(() => stage.world.settled(watch.close()))
    await stage.world.settled(watch.ready)
    return watch
  }

  test('gives changes to for await, from the start of the watch on, until the loop is left', async () => {
    const key = stage.name()
    const watch = await plain(key)
    const { diary } = await its.watch(key)
    await its.put(key, 'one')
    await its.told(diary, `create ${key}`)
    await stage.world.remove(key)
    await its.told(diary, `create ${key}`, `delete ${key}`)
    await stage.world.pass(100)
    const events: string[] = []
    const loop = async (): Promise<void> => {
      for await (const { event } of watch) {
        events.push(event)
        if (events.length === 2) break
      }
    }
    await stage.world.settled(loop())
    expect(events).toEqual(['change', 'delete'])
    expect(watch.mode).toBe('ended')
  })

  test('gives the same changes to several iterations', async () => {
    const key = stage.name()
    const watch = await plain(key)
    const [one, two] = [watch[Symbol.asyncIterator](), watch[Symbol.asyncIterator]()]
    const asked = [one.next(), two.next()]
    await its.put(key, 'one')
    for (const answer of await stage.world.settled(Promise.all(asked)))
      expect(answer).toMatchObject({ done: false, value: { key, created: true } })
    await one.return?.()
    expect(watch.mode).not.toBe('ended')
    await two.return?.()
    expect(watch.mode).toBe('ended')
  })
}

function ending(its: WatchStage): void {
  const { stage } = its

  test('ends with close: iterations end, nothing is told any more, running callbacks are waited for', async () => {
    const key = stage.name()
    const door = new Door()
    const calls: string[] = []
    const { watch } = await its.watch(key, {
      onChange: async ({ signal }) => {
        calls.push('begin')
        await door.opened
        calls.push(`end, aborted: ${String(signal.aborted)}`)
      },
    })
    const next = watch[Symbol.asyncIterator]()
    await its.put(key, 'one')
    await stage.world.until(() => calls.length === 1, 'it is called')
    await stage.world.settled(next.next())
    const waiting = next.next()
    let closed = false
    const closing = watch.close().then(() => (closed = true))
    expect(await waiting).toEqual({ done: true, value: undefined })
    await its.put(key, 'two')
    await stage.world.pass(150)
    expect(closed).toBe(false)
    door.open()
    await stage.world.settled(closing)
    expect(calls).toEqual(['begin', 'end, aborted: true'])
    await watch.close()
    expect(watch.mode).toBe('ended')
  })

  test('ends with its signal, whose reason an iteration rejects with', async () => {
    const key = stage.name()
    const controller = new AbortController()
    const { watch, diary } = await its.watch(key, { signal: controller.signal })
    const next = watch[Symbol.asyncIterator]()
    const waiting = next.next()
    const reason = new Error('enough')
    controller.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    expect(await next.next()).toEqual({ done: true, value: undefined })
    expect(watch.mode).toBe('ended')
    await its.put(key, 'one')
    await stage.world.pass(150)
    expect(diary.lines).toEqual([])
  })

  test('ends with its Holdfast', async () => {
    const key = stage.name()
    const holdfast = await stage.world.holdfast()
    const { watch } = await its.watch(key, {}, holdfast)
    const waiting = watch[Symbol.asyncIterator]().next()
    const turnedAway = expect(waiting).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    await stage.world.settled(holdfast.close())
    await turnedAway
    expect(() => holdfast.watch(key)).toThrow(expect.objectContaining({ code: 'HOLDFAST_CLOSED' }) as Error)
  })

  test('with an aborted signal nothing is sent', async () => {
    const holdfast = await stage.world.holdfast()
    const before = await stage.world.operations()
    const watch = holdfast.watch(stage.name(), { signal: AbortSignal.abort('why not') })
    await expect(watch.ready).rejects.toBe('why not')
    await expect(watch[Symbol.asyncIterator]().next()).rejects.toBe('why not')
    await stage.world.pass(50)
    expect(await stage.world.operations()).toBe(before)
  })
}
