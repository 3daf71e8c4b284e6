/** The memory engine with a stage manager: a test sees every operation and decides what becomes of it. */
import { MemoryEngine } from '../../src/engine/memory/memory-engine.js'
import { MemoryStore } from '../../src/engine/memory/memory-store.js'
import { EngineError, type Passage } from '../../src/engine/engine.js'
import type { Operation, ReplyOf } from '../../src/engine/operations.js'
import { Runtime } from '../../src/lease/runtime.js'
import { HolderLock } from '../../src/locks/holder-lock.js'
import { ManualClock } from '../../src/clock.js'
import { resolveHoldfastOptions, type HoldfastOptions } from '../../src/options.js'

/** What becomes of one operation; `run` executes it. */
export type Direction = (
  operation: Operation,
  run: () => Promise<unknown>,
  passage: Passage,
) => Promise<unknown>

/** The memory engine, directed. */
export class StagedEngine extends MemoryEngine {
  /** Everything that was asked, in order. */
  readonly asked: Operation[] = []
  direction: Direction = (_operation, run) => run()

  override async execute<O extends Operation>(operation: O, passage: Passage): Promise<ReplyOf<O>> {
    this.asked.push(operation)
    const run = (): Promise<ReplyOf<O>> => super.execute(operation, passage)
    return (await this.direction(operation, run, passage)) as ReplyOf<O>
  }
}

/** A runtime on a staged engine, and a clock that the test moves. */
export function stage(options: HoldfastOptions = {}): Stage {
  const clock = new ManualClock()
  const store = new MemoryStore(clock)
  const engine = new StagedEngine(store)
  const runtime = new Runtime(engine, resolveHoldfastOptions({ ...options, clock }))
  return { clock, store, engine, runtime, lock: (name = 'x') => lockOn(runtime, name) }
}

/** What {@link stage} gives. */
export interface Stage {
  readonly clock: ManualClock
  readonly store: MemoryStore
  readonly engine: StagedEngine
  readonly runtime: Runtime
  readonly lock: (name?: string) => HolderLock
}

function lockOn(runtime: Runtime, name: string): HolderLock {
  return new HolderLock(runtime, { family: 'lock', name, title: name }, true)
}

/** Another runtime on the same store: somebody else's process. */
export function elsewhere({ store, clock }: Stage): HolderLock {
  return lockOn(new Runtime(new MemoryEngine(store), resolveHoldfastOptions({ clock })), 'x')
}

/** The operation was sent, but no answer will come. */
export function silence(_operation: Operation, _run: unknown, passage: Passage): Promise<never> {
  passage.sends += 1
  return new Promise(() => undefined)
}

/** There is no connection: nothing is sent. */
export function noConnection(): Promise<never> {
  return new Promise(() => undefined)
}

/** The engine does not serve. */
export function unavailable(outcome: 'unknown' | 'not-applied'): Promise<never> {
  return Promise.reject(new EngineError('away', { kind: 'unavailable', outcome }))
}

/** A promise and how it ended, so that a test can look without waiting. */
export function watched<T>(promise: Promise<T>): { value?: T; error?: unknown; settled: boolean } {
  const seen: { value?: T; error?: unknown; settled: boolean } = { settled: false }
  promise.then(
    (value) => Object.assign(seen, { value, settled: true }),
    (error: unknown) => Object.assign(seen, { error, settled: true }),
  )
  return seen
}
