import { Holdfast, ManualClock } from '../../src/index.js'
import { FREE, type KeyState } from '../../src/engine/model/state.js'
import { sharedStore, type MemoryStore } from '../../src/engine/memory/memory-store.js'
import { closeLater, TRAITS, type Kind, type Stored, type World } from './world.js'

const STEP_MS = 10
/** No wait in these tests is longer. */
const GIVE_UP_MS = 300_000

/** The memory engine on a clock that the tests move. */
export function memoryWorld(): Promise<World> {
  const clock = new ManualClock()
  const name = `contract:${crypto.randomUUID()}`
  const store = sharedStore(name, clock)
  const counted = countOperations(store)
  const change = (key: string, part: Partial<KeyState>) => {
    store.write(key, { ...store.read(key), ...part })
    return Promise.resolve()
  }
  const until = async (condition: () => boolean | Promise<boolean>, what: string) => {
    const endMs = clock.now() + GIVE_UP_MS
    while (!(await condition())) {
      if (clock.now() > endMs) throw new Error(`never came true: ${what}`)
      await clock.advance(STEP_MS)
    }
  }
  const world: World = {
    server: undefined,
    holdfast: async (options) =>
      closeLater(world, await Holdfast.connect(`memory:${name}`, { clock, ...options })),
    now: () => clock.now(),
    pass: (ms) => clock.advance(ms),
    until,
    settled: async (promise) => {
      let open = true
      const done = () => {
        open = false
      }
      promise.then(done, done)
      // Most are settled without any time.
      await clock.advance(0)
      await until(() => !open, 'the promise settles')
      return promise
    },
    operations: () => Promise.resolve(counted()),
    read: (key) => Promise.resolve(stored(store.read(key), clock.now())),
    storeData: (key, type) =>
      change(key, { value: { kind: 'foreign', hash: type === 'hash' }, expiresAtMs: Infinity }),
    take: (key, owner, { kind, ttlMs }) =>
      change(key, {
        value: taken(kind, owner),
        expiresAtMs: clock.now() + ttlMs,
      }),
    remove: (key) => change(key, FREE),
    persist: (key) => change(key, { expiresAtMs: Infinity }),
    end: () => Promise.resolve(),
  }
  return Promise.resolve(world)
}

function taken(kind: Kind, owner: string): KeyState['value'] {
  if (kind === 'read' || kind === 'write')
    return { kind: 'read-write', mode: 'write', counts: new Map([[`${owner}:write`, 1]]) }
  return TRAITS[kind].hash ? { kind: 'lock', counts: new Map([[owner, 1]]) } : { kind: 'mutex', owner }
}

function countOperations(store: MemoryStore): () => number {
  let count = 0
  const apply = store.apply.bind(store)
  store.apply = (topic, step) => {
    count += 1
    return apply(topic, step)
  }
  return () => count
}

function stored({ value, expiresAtMs }: KeyState, nowMs: number): Stored | undefined {
  if (value === undefined) return undefined
  const ttlMs = expiresAtMs === Infinity ? -1 : expiresAtMs - nowMs
  switch (value.kind) {
    case 'lock':
      return { value: Object.fromEntries(value.counts), ttlMs }
    case 'read-write':
      return { value: { mode: value.mode, ...Object.fromEntries(value.counts) }, ttlMs }
    case 'mutex':
      return { value: value.owner, ttlMs }
    case 'count':
      return { value: String(value.count), ttlMs }
    case 'foreign':
      return { value: value.hash ? { 'item:42': '3' } : ['theirs'], ttlMs }
  }
}
