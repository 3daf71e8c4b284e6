import { EngineError, type Passage } from '../../engine.js'
import type {
  Handlers,
  Look,
  WatchForeignReply,
  WatchNoticesReply,
  WatchOperation,
} from '../../operations.js'
import { watchMarks } from '../names.js'
import * as scripts from '../scripts.js'
import type { Wire } from './wire.js'

/** A script stops when it has read so much: a few milliseconds' work. */
const BUDGET_BYTES = 262_144
const KEYS_PER_SCAN = 500
const WORDS_PER_KEY = 4

/** The operations of watching as scripts. */
export const watchCommands: Handlers<WatchOperation, [Wire, Passage], true> = {
  'watch.notices': async (_operation, wire) => ({
    notices: noticesOf(await wire.setting('notify-keyspace-events')),
  }),
  'watch.look': async ({ keys, exactBytes }, wire, passage) => {
    const args = { keys, exactBytes, budgetBytes: BUDGET_BYTES }
    const reply = await wire.send(scripts.watchLook, args, passage)
    return { looks: 'values' in reply ? looksIn(reply.values) : neverForeign() }
  },
  'watch.scan': async ({ pattern, cursor }, wire, passage) => {
    const reply = await wire.send(scripts.watchScan, { pattern, cursor, count: KEYS_PER_SCAN }, passage)
    return reply.outcome === 'scanned' ? reply : neverForeign()
  },
  'watch.marks': async ({ name }, wire, passage) => {
    const reply = await wire.send(scripts.watchMarks, { marks: watchMarks(name) }, passage)
    return 'marks' in reply ? { outcome: 'read', marks: pairsIn(reply.marks) } : foreign(name)
  },
  'watch.mark': async ({ name, ttlMs, notes }, wire, passage) => {
    const reply = await wire.send(scripts.watchMark, { marks: watchMarks(name), ttlMs, notes }, passage)
    return reply.outcome === 'marked' ? reply : foreign(name)
  },
}

/** What the server's setting means: `K` the channels of keys, `A` all kinds of writes. */
function noticesOf(flags: string | undefined): WatchNoticesReply['notices'] {
  if (flags === undefined) return 'unknown'
  if (!flags.includes('K') || !/[Ag$lshzxetdmn]/.test(flags)) return 'none'
  return flags.includes('A') ? 'all' : 'some'
}

function looksIn(words: readonly string[]): readonly Look[] {
  const looks: Look[] = []
  for (let i = 0; i + WORDS_PER_KEY <= words.length; i += WORDS_PER_KEY) {
    const [type = 'none', mark = '', exact, ttl] = words.slice(i, i + WORDS_PER_KEY)
    looks.push({ type: type === 'none' ? undefined : type, mark, exact: exact === '1', ttlMs: Number(ttl) })
  }
  return looks
}

function pairsIn(words: readonly string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>()
  for (let i = 0; i + 1 < words.length; i += 2) pairs.set(words[i] ?? '', words[i + 1] ?? '')
  return pairs
}

function foreign(name: string): WatchForeignReply {
  return { outcome: 'foreign', key: watchMarks(name) }
}

/** The scripts ask each key for its type first. */
function neverForeign(): never {
  throw new EngineError('A look at keys was answered with WRONGTYPE', {
    kind: 'refused',
    outcome: 'not-applied',
  })
}
