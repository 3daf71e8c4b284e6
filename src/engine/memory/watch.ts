import type { Handlers, Look, WatchOperation } from '../operations.js'
import { globMatcher } from '../../glob.js'
import { ttlOf, type KeyState } from '../model/state.js'
import type { MemoryStore } from './memory-store.js'

type Marks = Map<string, Map<string, string>>

const marksOf = new WeakMap<MemoryStore, Marks>()

/** The operations of watching on the store, whose data are the keys of locks. */
export const watchHandlers: Handlers<WatchOperation, [MemoryStore], false> = {
  'watch.notices': () => ({ notices: 'all' }),
  'watch.look': ({ keys }, store) => ({
    looks: keys.map((key) => look(store.read(key), store.clock.now())),
  }),
  'watch.scan': ({ pattern }, store) => ({
    cursor: '0',
    keys: store.names().filter(globMatcher(pattern)),
  }),
  'watch.marks': ({ name }, store) => ({ outcome: 'read', marks: new Map(allMarks(store).get(name)) }),
  'watch.mark': ({ name, notes }, store) => {
    const marks = allMarks(store).get(name) ?? new Map<string, string>()
    for (let i = 0; i + 1 < notes.length; i += 2) {
      const [field = '', text = ''] = notes.slice(i, i + 2)
      if (text === '') marks.delete(field)
      else marks.set(field, text)
    }
    allMarks(store).set(name, marks)
    return { outcome: 'marked' }
  },
}

/** They live as long as the store: the processes that they are for end with it. */
function allMarks(store: MemoryStore): Marks {
  const marks: Marks = marksOf.get(store) ?? new Map<string, Map<string, string>>()
  marksOf.set(store, marks)
  return marks
}

const GONE: Look = { type: undefined, mark: '', exact: true, ttlMs: -2 }

function look(state: KeyState, nowMs: number): Look {
  const { value } = state
  if (value === undefined) return GONE
  return { type: typeOf(value), mark: JSON.stringify(value, plain), exact: true, ttlMs: ttlOf(state, nowMs) }
}

/** As it would be in Redis. */
function typeOf(value: NonNullable<KeyState['value']>): string {
  if (value.kind === 'foreign') return value.hash ? 'hash' : 'list'
  return value.kind === 'mutex' || value.kind === 'count' ? 'string' : 'hash'
}

function plain(_key: string, value: unknown): unknown {
  return value instanceof Map ? [...value] : value
}
