/** A scene of watching: a server that tells of writes or not, watches on it, and what they told. */
import { expect } from 'vitest'
import type { Change, Holdfast, Watch, WatchKeys, WatchOptions } from '../../src/index.js'
import { openScene, type Scene } from '../faults/scene.js'
import { eventually } from '../support/eventually.js'

/** No check and no poll of its own falls into a test. */
export const HOUR = 3_600_000

/** A watch and what it told. */
export interface Told {
  readonly watch: Watch
  readonly lines: string[]
  readonly changes: Change[]
  readonly errors: unknown[]
  /** Waits until exactly these lines were told since the start. */
  until(...lines: readonly string[]): Promise<void>
}

/** A scene on a server with this setting of `notify-keyspace-events`. */
export function watchScene(flags: '' | 'KEA'): Promise<Scene> {
  return openScene(['--notify-keyspace-events', flags])
}

/** A watch after its first look; ended with the scene. */
export async function watching(
  scene: Scene,
  holdfast: Holdfast,
  { keys, ...options }: WatchOptions & { readonly keys: WatchKeys },
): Promise<Told> {
  const told = begin(holdfast, { keys, ...options })
  scene.atEnd(() => told.watch.close())
  await told.watch.ready
  return told
}

/** A watch from its first turn on. */
export function begin(
  holdfast: Holdfast,
  { keys, ...options }: WatchOptions & { readonly keys: WatchKeys },
): Told {
  const [lines, changes, errors]: [string[], Change[], unknown[]] = [[], [], []]
  const onAny = (change: Change): void => {
    changes.push(change)
    lines.push(`${change.created ? 'create' : change.event} ${change.key}`)
  }
  const onError = (error: unknown): void => void errors.push(error)
  const all = { onChange: onAny, onDelete: onAny, onExpire: onAny, onError }
  const watch = holdfast.watch(keys, { ...all, ...options })
  const until = async (...expected: readonly string[]): Promise<void> => {
    await eventually(() => lines.length >= expected.length, `${expected.join()}, not ${lines.join()}`)
    expect(lines).toEqual(expected)
  }
  return { watch, lines, changes, errors, until }
}

/** Resolves when the watch is in this mode. */
export function untilMode({ watch }: Told, mode: Watch['mode']): Promise<void> {
  return eventually(() => watch.mode === mode, `the mode is ${mode}`)
}
