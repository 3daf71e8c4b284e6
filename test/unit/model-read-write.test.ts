import { describe, expect, test } from 'vitest'
import * as model from '../../src/engine/model/read-write.js'
import { FREE, type KeyState } from '../../src/engine/model/state.js'
import type { ReadAcquire, Release, WriteAcquire } from '../../src/engine/operations.js'

const A = 'client:1'
const B = 'client:2'
const name = 'catalogue'
const ALL = { hint: 'all' }

const read = (state: KeyState, terms: Partial<ReadAcquire> = {}, nowMs = 0) =>
  model.readAcquire(
    state,
    { op: 'read.acquire', name, owner: A, writer: '', count: 1, leaseMs: 5_000, ...terms },
    nowMs,
  )
const write = (state: KeyState, terms: Partial<WriteAcquire> = {}, nowMs = 0) =>
  model.writeAcquire(
    state,
    { op: 'write.acquire', name, owner: A, count: 1, leaseMs: 5_000, ...terms },
    nowMs,
  )
const endRead = (state: KeyState, terms: Partial<Release<'read.release'>> = {}, nowMs = 0) =>
  model.readRelease(state, { op: 'read.release', name, owner: A, keepMs: 0, entombMs: 0, ...terms }, nowMs)
const endWrite = (state: KeyState, terms: Partial<Release<'write.release'>> = {}, nowMs = 0) =>
  model.writeRelease(state, { op: 'write.release', name, owner: A, keepMs: 0, entombMs: 0, ...terms }, nowMs)
const fields = ({ value }: KeyState) =>
  value?.kind === 'read-write' ? { mode: value.mode, ...Object.fromEntries(value.counts) } : undefined

const bothRead = read(read(FREE).state, { owner: B, leaseMs: 9_000 }).state
const written = write(FREE, { leaseMs: 20_000 }).state
const writtenAndRead = read(written, { writer: A }).state

describe('readers', () => {
  test('are let in together, each with a hold of its own', () => {
    expect(fields(bothRead)).toEqual({ mode: 'read', [A]: 1, [B]: 1 })
    expect(bothRead.expiresAtMs).toBe(9_000)
    expect([...(bothRead.holds ?? [])]).toEqual([
      [`${A}:rwlock_timeout:1`, 5_000],
      [`${B}:rwlock_timeout:1`, 9_000],
    ])
    expect(write(bothRead, { owner: 'client:3' }).reply).toEqual({ outcome: 'busy', ttlMs: 9_000, holder: A })
  })

  test('leave the time that the others need; the last one frees the lock and wakes one', () => {
    const left = endRead(bothRead, { owner: B })
    expect(left.state.expiresAtMs).toBe(5_000)
    expect(left.wake).toBe(false)
    const free = endRead(left.state)
    expect([free.state.value, free.state.holds?.size, free.wake]).toEqual([undefined, 0, true])
  })

  test('that ran out beside others hold no more, and go with the last', () => {
    expect(read(bothRead, { count: 2 }, 5_000).reply).toEqual({ outcome: 'lost' })
    expect(model.readRenew(bothRead, { owner: A, ttlMs: 5_000 }, 5_000).reply).toBe('taken')
    expect(endRead(bothRead, {}, 5_000).reply).toEqual({ outcome: 'taken' })
    expect(endRead(bothRead, { owner: B }, 6_000).state.value).toBeUndefined()
    expect(model.readInspect(bothRead, { op: 'read.inspect', name }, 5_000).reply).toMatchObject({
      holders: new Map([
        [A, 0],
        [B, 1],
      ]),
    })
  })

  test('are renewed by themselves only, and never for less', () => {
    const { state } = model.readRenew(bothRead, { owner: A, ttlMs: 30_000 }, 1_000)
    expect([...(state.holds?.values() ?? [])]).toEqual([31_000, 9_000])
    expect(model.readRenew(state, { owner: B, ttlMs: 1 }, 1_000).state).toEqual(state)
  })
})

describe('a writer', () => {
  test('is alone, but for reads that name it', () => {
    expect(read(written, { owner: B }).reply).toEqual({ outcome: 'busy', ttlMs: 20_000, holder: A })
    expect(read(written, { owner: B, writer: B }).reply).toMatchObject({ outcome: 'busy' })
    expect(fields(read(written, { owner: B, writer: A }).state)).toEqual({
      mode: 'write',
      [`${A}:write`]: 1,
      [B]: 1,
    })
  })

  test('that ends wakes all; reads inside go on for as long as they last', () => {
    expect(endWrite(written)).toMatchObject({ reply: { outcome: 'released' }, wake: ALL })
    const downgraded = endWrite(writtenAndRead)
    expect(fields(downgraded.state)).toEqual({ mode: 'read', [A]: 1 })
    expect(downgraded.state.expiresAtMs).toBe(5_000)
    expect(downgraded.wake).toEqual(ALL)
    expect(endWrite(writtenAndRead, {}, 5_000).state.value).toBeUndefined()
  })

  test('keeps its time when a read inside leaves', () => {
    expect(endRead(writtenAndRead)).toMatchObject({ state: { expiresAtMs: 20_000 }, wake: false })
  })

  test('is not let in beside a reader, even one of its own name', () => {
    expect(write(read(FREE).state).reply).toEqual({ outcome: 'busy', ttlMs: 5_000, holder: A })
  })

  test('that is dead is so as a writer, not as a reader', () => {
    const buried = endWrite(written, { entombMs: 60_000 }).state
    expect(write(buried).reply).toEqual({ outcome: 'dead' })
    expect(read(buried).reply).toEqual({ outcome: 'granted' })
  })
})

describe('a forced end', () => {
  const force = { name, owners: [A] }

  test('is for its own mode and for those that were seen', () => {
    expect(model.readForce(written, { op: 'read.force', ...force }, 0).reply).toEqual({ outcome: 'none' })
    expect(model.writeForce(bothRead, { op: 'write.force', ...force }, 0).reply).toEqual({ outcome: 'none' })
    const left = model.readForce(bothRead, { op: 'read.force', ...force }, 0)
    expect(fields(left.state)).toEqual({ mode: 'read', [B]: 1 })
    const downgraded = model.writeForce(writtenAndRead, { op: 'write.force', ...force }, 0)
    expect(fields(downgraded.state)).toEqual({ mode: 'read', [A]: 1 })
  })
})

test.each([true, false])('data of somebody else stays as it is (hash: %s)', (hash) => {
  const data: KeyState = { ...FREE, value: { kind: 'foreign', hash } }
  for (const step of [read(data), write(data)])
    expect(step).toEqual({ state: data, reply: { outcome: 'foreign' }, wake: false })
})
