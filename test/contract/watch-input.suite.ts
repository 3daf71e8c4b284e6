import { expect, test } from 'vitest'
import type { WatchKeys, WatchOptions } from '../../src/index.js'
import type { Stage } from './world.js'

type Bad = readonly [value: unknown, error: 'TypeError' | 'RangeError', message: string]

const KEYS: readonly Bad[] = [
  [[], 'RangeError', 'There must be at least one key to watch'],
  ['', 'RangeError', 'A key must not be empty'],
  [['a', ''], 'RangeError', 'A key must not be empty'],
  [['a', 7], 'TypeError', 'A key must be a string, but is 7'],
  ['\ud800', 'RangeError', 'A key must be valid Unicode'],
  [undefined, 'TypeError', 'What is watched must be a key, keys or { pattern }, but is undefined'],
  [null, 'TypeError', 'but is null'],
  [5, 'TypeError', 'but is 5'],
  [{ pattern: '' }, 'RangeError', 'A pattern must not be empty'],
  [{ pattern: 'a[b' }, 'RangeError', `The pattern "a[b" is bad: its '[' is never closed`],
  [{ pattern: 'a[]' }, 'RangeError', 'it has an empty set'],
  [{ pattern: 'a\\' }, 'RangeError', 'it ends with a backslash'],
  [{ pattern: /a/ }, 'TypeError', 'A pattern must be a string, but is an object'],
  [{}, 'TypeError', 'A pattern must be a string, but is undefined'],
  [{ pattern: 'a*', keys: ['b'] }, 'TypeError', `Unknown key 'keys' in what is watched`],
]

const OPTIONS: readonly Bad[] = [
  [{ interval: 9 }, 'RangeError', 'interval must be from 10 to 9007199254740991, but is 9'],
  [{ interval: Infinity }, 'RangeError', 'but is Infinity'],
  [{ interval: '1s' }, 'TypeError', 'interval must be a number, but is the string "1s"'],
  [{ intervall: 100 }, 'TypeError', `Unknown key 'intervall' in watch options; known are onChange`],
  [{ buffer: 0 }, 'RangeError', 'buffer must be from 1'],
  [{ exactUpTo: -1 }, 'RangeError', 'exactUpTo must be from 0'],
  [{ notifications: 'on' }, 'TypeError', `notifications must be 'auto' or 'off', but is the string "on"`],
  [{ keepAlive: 1 }, 'TypeError', 'keepAlive must be a boolean, but is 1'],
  [{ onChange: 'x' }, 'TypeError', 'onChange must be a function, but is the string "x"'],
  [{ onDelete: [() => 0, null] }, 'TypeError', 'onDelete must be a function, but is null'],
  [{ signal: {} }, 'TypeError', 'signal must be an AbortSignal, but is an object'],
  [{ under: 'a lock' }, 'TypeError', 'under must be a lock, but is the string "a lock"'],
  [null, 'TypeError', 'watch options must be an object, but are null'],
]

/** Bad input is refused before anything is sent. */
export function watchInput(stage: Stage): void {
  const refused = async (call: () => unknown, error: string, message: string): Promise<void> => {
    const before = await stage.world.operations()
    let thrown: unknown
    try {
      call()
    } catch (caught) {
      thrown = caught
    }
    expect(thrown).toMatchObject({ name: error, message: expect.stringContaining(message) as string })
    expect(await stage.world.operations()).toBe(before)
  }

  test.each(KEYS)('refuses to watch %j: %s, %s', async (keys, error, message) => {
    const holdfast = await stage.world.holdfast()
    await refused(() => holdfast.watch(keys as WatchKeys), error, message)
  })

  test.each(OPTIONS)('refuses the options %j: %s, %s', async (options, error, message) => {
    const holdfast = await stage.world.holdfast()
    await refused(() => holdfast.watch('a', options as WatchOptions), error, message)
  })

  test('refuses events that there are not, and an iteration under a lock', async () => {
    const holdfast = await stage.world.holdfast()
    const watch = holdfast.watch(stage.name())
    expect(() => watch.on('changed' as 'change', () => 0)).toThrow('There is no event changed')
    expect(() => watch.on('toString' as 'change', () => 0)).toThrow(TypeError)
    expect(() => watch.off('change', 5 as never)).toThrow('The callback must be a function, but is 5')
    await stage.world.settled(watch.close())
    const under = holdfast.watch(stage.name(), { under: holdfast.lock(stage.name()) })
    expect(() => under[Symbol.asyncIterator]()).toThrow('A watch under a lock has callbacks only')
    await stage.world.settled(under.close())
  })
}
