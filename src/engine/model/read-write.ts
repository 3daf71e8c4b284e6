/**
 * The read/write lock as a pure state machine: one hash with a mode, the counts of its owners, and a key with a
 * TTL of its own for each read hold. This is the specification, as for the lock.
 *
 *     free ──read.acquire──▶ read ──the last reader leaves──▶ free
 *      │                      ▲
 *      └─write.acquire──▶ write ──write.release──▶ free, or read while reads inside the write remain
 *
 * A read hold is there only with its field and its first hold key; the hash may be kept alive by others. When a
 * reader leaves, the hash lasts as long as the longest hold that remains. (With more than four other readers
 * the scripts may leave it a longer TTL, but never a shorter one.)
 */
import type {
  AcquireReply,
  Force,
  ForceReply,
  ForeignReply,
  Inspect,
  InspectReply,
  Leave,
  LeaveReply,
  ReadAcquire,
  Release,
  ReleaseReply,
  RenewResult,
  WriteAcquire,
} from '../operations.js'
import {
  at,
  entombed,
  freed,
  raised,
  restOf,
  ttlOf,
  unchanged,
  type KeyState,
  type ReadWriteValue,
  type Step,
} from './state.js'

const FOREIGN: ForeignReply = { outcome: 'foreign' }
const ALL = { hint: 'all' } as const

/** The field of an owner that writes. */
function writerOf(owner: string): string {
  return `${owner}:write`
}

/** The owner as its lease has it. */
function ownerOf(field: string): string {
  return field.replace(/:write$/, '')
}

/** What stands for an ended writer while the rest of its minimum hold lasts. */
function writeRestOf(owner: string): string {
  return `${owner}:00`
}

function isWriter(field: string): boolean {
  return field.endsWith(':write') || field.endsWith(':00')
}

/** Takes the lock for reading: alone, beside readers, or inside the writer's own hold; enters once more, or repeats. */
export function readAcquire(before: KeyState, operation: ReadAcquire, nowMs: number): Step<AcquireReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const { owner, writer, count } = operation
  const value = valueOf(state)
  const held = value !== undefined && heldBy(state, owner) > 0
  if (!held && count > 1) return unchanged(state, { outcome: 'lost' })
  if (!held && state.tombstones.has(owner)) return unchanged(state, { outcome: 'dead' })
  if (foreign(state)) return unchanged(state, FOREIGN)
  const open = value?.mode !== 'write' || value.counts.has(writerOf(writer))
  if (!held && !open) return unchanged(state, busy(state, value, nowMs))
  return { state: withHold(state, operation, nowMs), reply: { outcome: 'granted' }, wake: false }
}

/** Leaves one read hold of several; the hash's TTL stays. */
export function readLeave(before: KeyState, operation: Leave<string>, nowMs: number): Step<LeaveReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const { owner, count } = operation
  const held = heldBy(state, owner)
  if (held === 0) return unchanged(state, absent(state))
  if (held <= count) return unchanged(state, { outcome: 'kept' })
  const holds = new Map(state.holds)
  for (let i = held; i > count; i -= 1) holds.delete(holdKey(owner, i))
  return unchanged(withCount({ ...state, holds }, owner, count), { outcome: 'kept' })
}

/** Ends a reader, or leaves what remains of its minimum hold. */
export function readRelease(before: KeyState, operation: Release<string>, nowMs: number): Step<ReleaseReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const buried = entombed(state, operation, nowMs)
  const { owner, keepMs } = operation
  const counts = countsOf(state)
  if (keepMs > 0 && !counts.has(owner))
    return unchanged(buried, counts.has(restOf(owner)) ? { outcome: 'released' } : absent(state))
  const leaving = counts.has(owner) ? owner : restOf(owner)
  if (!counts.has(leaving)) return unchanged(buried, absent(state))
  const found = heldBy(state, leaving) > 0
  const kept = found && keepMs > 0
  const gone = withoutReader(buried, leaving)
  const rest = kept ? withRest(gone, restOf(owner), { keepMs, nowMs }) : gone
  const left = valueOf(state)?.mode === 'read' ? settled(rest) : rest
  const reply = found ? ({ outcome: 'released' } as const) : absent(left)
  return { state: left, reply, wake: kept || left.value === undefined }
}

/** Raises the TTL of one reader's holds, and of the hash. */
export function readRenew(
  before: KeyState,
  hold: { readonly owner: string; readonly ttlMs: number },
  nowMs: number,
): Step<RenewResult> {
  const state = at(before, nowMs)
  const held = heldBy(state, hold.owner)
  if (held === 0) return unchanged(state, absent(state).outcome)
  const holds = new Map(state.holds)
  for (let i = 1; i <= held; i += 1) {
    const key = holdKey(hold.owner, i)
    const endMs = holds.get(key)
    if (endMs !== undefined) holds.set(key, later(endMs, nowMs + hold.ttlMs))
  }
  return unchanged(raised({ ...state, holds }, hold.ttlMs, nowMs), 'renewed')
}

/** Reads who holds the lock for reading; who has run out has the count 0. */
export function readInspect(
  before: KeyState,
  _operation: Inspect<string>,
  nowMs: number,
): Step<InspectReply> {
  const state = at(before, nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const readers = [...countsOf(state).keys()].filter((field) => isReader(state, field))
  return unchanged(state, held(state, new Map(readers.map((owner) => [owner, heldBy(state, owner)])), nowMs))
}

/** Takes the lock from the readers that were seen, while it is read. */
export function readForce(before: KeyState, operation: Force<string>, nowMs: number): Step<ForceReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const seen = operation.owners.filter((owner) => countsOf(state).has(owner))
  if (valueOf(state)?.mode !== 'read' || seen.length === 0) return unchanged(state, { outcome: 'none' })
  const left = settled(seen.reduce(withoutReader, state))
  return { state: left, reply: { outcome: 'freed' }, wake: left.value === undefined }
}

/** Takes the lock for writing, enters it once more, or repeats an attempt. */
export function writeAcquire(before: KeyState, operation: WriteAcquire, nowMs: number): Step<AcquireReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const { owner, count, leaseMs } = operation
  const writer = writerOf(owner)
  const value = valueOf(state)
  const held = value?.counts.get(writer)
  if (held !== undefined) {
    const next = held < count ? withCount(state, writer, count) : state
    return { state: raised(next, leaseMs, nowMs), reply: { outcome: 'granted' }, wake: false }
  }
  if (count > 1) return unchanged(state, { outcome: 'lost' })
  if (state.tombstones.has(writer)) return unchanged(state, { outcome: 'dead' })
  if (foreign(state)) return unchanged(state, FOREIGN)
  if (value !== undefined) return unchanged(state, busy(state, value, nowMs))
  const taken = { ...state, value: writing(writer), expiresAtMs: nowMs + leaseMs }
  return { state: taken, reply: { outcome: 'granted' }, wake: false }
}

/** Lowers the writer's count; the TTL stays. */
export function writeLeave(before: KeyState, operation: Leave<string>, nowMs: number): Step<LeaveReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const writer = writerOf(operation.owner)
  const held = countsOf(state).get(writer)
  if (held === undefined) return unchanged(state, absent(state))
  const next = held > operation.count ? withCount(state, writer, operation.count) : state
  return unchanged(next, { outcome: 'kept' })
}

/**
 * Ends a writer, or leaves the lock shut for the rest of its minimum hold. Reads inside the write go on, and others
 * may join them: then only writers are kept out.
 */
export function writeRelease(
  before: KeyState,
  operation: Release<string>,
  nowMs: number,
): Step<ReleaseReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const { owner, keepMs, entombMs } = operation
  const writer = writerOf(owner)
  const rest = writeRestOf(owner)
  const buried = entombed(state, { owner: writer, entombMs }, nowMs)
  const counts = countsOf(state)
  if (!counts.has(writer) && !counts.has(rest)) return unchanged(buried, absent(state))
  const gone = counts.has(writer) ? without(buried, writer) : withoutReader(buried, rest)
  if (keepMs === 0) return { state: ended(gone), reply: { outcome: 'released' }, wake: ALL }
  if (!counts.has(writer)) return unchanged(buried, { outcome: 'released' })
  // Beside reads the rest is a read, too: it keeps writers out, and nobody when it is over.
  const kept =
    counts.size === 1
      ? { ...withCount(gone, rest, 1), expiresAtMs: nowMs + keepMs }
      : ended(withRest(gone, rest, { keepMs, nowMs }))
  return { state: kept, reply: { outcome: 'released' }, wake: ALL }
}

/** Raises the TTL for the writer. */
export function writeRenew(
  before: KeyState,
  hold: { readonly owner: string; readonly ttlMs: number },
  nowMs: number,
): Step<RenewResult> {
  const state = at(before, nowMs)
  if (!countsOf(state).has(writerOf(hold.owner))) return unchanged(state, absent(state).outcome)
  return unchanged(raised(state, hold.ttlMs, nowMs), 'renewed')
}

/** Reads who holds the lock for writing. */
export function writeInspect(
  before: KeyState,
  _operation: Inspect<string>,
  nowMs: number,
): Step<InspectReply> {
  const state = at(before, nowMs)
  if (foreign(state)) return unchanged(state, FOREIGN)
  const writing = valueOf(state)?.mode === 'write'
  const writers = [...countsOf(state)].filter(([field]) => writing && isWriter(field))
  return unchanged(
    state,
    held(state, new Map(writers.map(([field, count]) => [ownerOf(field), count])), nowMs),
  )
}

/** Takes the lock from the writer that was seen, while it is written; reads inside the write go on. */
export function writeForce(before: KeyState, operation: Force<string>, nowMs: number): Step<ForceReply> {
  const state = at(before, nowMs)
  if (wrongType(state)) return unchanged(state, FOREIGN)
  const fields = operation.owners.map((owner) => (isWriter(owner) ? owner : writerOf(owner)))
  const seen = fields.filter((field) => countsOf(state).has(field))
  if (valueOf(state)?.mode !== 'write' || seen.length === 0) return unchanged(state, { outcome: 'none' })
  return { state: ended(seen.reduce(without, state)), reply: { outcome: 'freed' }, wake: ALL }
}

function foreign(state: KeyState): boolean {
  return state.value !== undefined && state.value.kind !== 'read-write'
}

/** Not even a hash: no field can be looked for. */
function wrongType({ value }: KeyState): boolean {
  switch (value?.kind) {
    case undefined:
    case 'lock':
    case 'read-write':
      return false
    case 'foreign':
      return !value.hash
    default:
      return true
  }
}

function valueOf({ value }: KeyState): ReadWriteValue | undefined {
  return value?.kind === 'read-write' ? value : undefined
}

const NO_COUNTS: ReadWriteValue['counts'] = new Map()

function countsOf(state: KeyState): ReadWriteValue['counts'] {
  return valueOf(state)?.counts ?? NO_COUNTS
}

function writing(writer: string): ReadWriteValue {
  return { kind: 'read-write', mode: 'write', counts: new Map([[writer, 1]]) }
}

function isReader(state: KeyState, field: string): boolean {
  return !field.endsWith(':write') && (valueOf(state)?.mode === 'read' || !field.endsWith(':00'))
}

function holdKey(owner: string, i: number): string {
  return `${owner}:rwlock_timeout:${String(i)}`
}

/** How often a reader has entered; 0 also if its hold has run out. */
function heldBy(state: KeyState, owner: string): number {
  return state.holds?.has(holdKey(owner, 1)) === true ? (countsOf(state).get(owner) ?? 0) : 0
}

function busy(state: KeyState, value: ReadWriteValue, nowMs: number): AcquireReply {
  const [field = ''] = value.counts.keys()
  return { outcome: 'busy', ttlMs: ttlOf(state, nowMs), holder: ownerOf(field) }
}

function held(state: KeyState, holders: ReadonlyMap<string, number>, nowMs: number): InspectReply {
  return holders.size === 0 ? { outcome: 'free' } : { outcome: 'held', ttlMs: ttlOf(state, nowMs), holders }
}

function absent(state: KeyState): { readonly outcome: 'gone' } | { readonly outcome: 'taken' } {
  return state.value === undefined ? { outcome: 'gone' } : { outcome: 'taken' }
}

function later(oneMs: number, otherMs: number): number {
  return oneMs === Infinity ? otherMs : Math.max(oneMs, otherMs)
}

function withHold(state: KeyState, operation: ReadAcquire, nowMs: number): KeyState {
  const { owner, count, leaseMs } = operation
  const endMs = nowMs + leaseMs
  const holds = new Map(state.holds)
  const before = heldBy(state, owner)
  // What is left of an owner's former holds says nothing about a new one.
  if (before === 0) holds.set(holdKey(owner, 1), endMs)
  for (const key of [holdKey(owner, 1), holdKey(owner, count)])
    holds.set(key, later(holds.get(key) ?? 0, endMs))
  const value = valueOf(state) ?? { kind: 'read-write', mode: 'read', counts: NO_COUNTS }
  const next = before < count ? withCount({ ...state, value, holds }, owner, count) : { ...state, holds }
  return state.value === undefined ? { ...next, expiresAtMs: endMs } : raised(next, leaseMs, nowMs)
}

function withRest(
  state: KeyState,
  rest: string,
  { keepMs, nowMs }: { readonly keepMs: number; readonly nowMs: number },
): KeyState {
  const holds = new Map(state.holds).set(holdKey(rest, 1), nowMs + keepMs)
  return raised(withCount({ ...state, holds }, rest, 1), keepMs, nowMs)
}

function withCount(state: KeyState, field: string, count: number): KeyState {
  const value = valueOf(state)
  if (value === undefined) return state
  return { ...state, value: { ...value, counts: new Map(value.counts).set(field, count) } }
}

function without(state: KeyState, field: string): KeyState {
  const value = valueOf(state)
  if (value === undefined) return state
  const counts = new Map(value.counts)
  counts.delete(field)
  return { ...state, value: { ...value, counts } }
}

function withoutReader(state: KeyState, owner: string): KeyState {
  const holds = new Map(state.holds)
  const count = countsOf(state).get(owner) ?? 0
  for (let i = 1; i <= count; i += 1) holds.delete(holdKey(owner, i))
  return without({ ...state, holds }, owner)
}

/** After a reader has left: the hash lasts as long as the longest hold of those that remain, or is gone. */
function settled(state: KeyState): KeyState {
  let endMs = -Infinity
  for (const [owner, count] of countsOf(state)) endMs = Math.max(endMs, endOf(state, owner, count))
  if (endMs === -Infinity) return freed(state)
  return endMs < state.expiresAtMs ? { ...state, expiresAtMs: endMs } : state
}

/** The end of the longest of an owner's holds. */
function endOf({ holds }: KeyState, owner: string, count: number): number {
  let endMs = -Infinity
  for (let i = 1; i <= count; i += 1) endMs = Math.max(endMs, holds?.get(holdKey(owner, i)) ?? -Infinity)
  return endMs
}

/** After the writer has gone: reads inside the write go on as readers. */
function ended(state: KeyState): KeyState {
  const value = valueOf(state)
  if (value === undefined || value.counts.size === 0) return freed(state)
  return settled({ ...state, value: { ...value, mode: 'read' } })
}
