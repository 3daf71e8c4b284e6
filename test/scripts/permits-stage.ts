/** A server on which the scripts of the permit semaphore run one at a time, and what each of them leaves. */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import type { ScriptDefinition } from '../../src/engine/redis/script.js'
import { PeerPermits } from '../peer/permit-semaphore.js'
import { Recorder, type Step } from '../peer/snapshot.js'
import { raw, type Raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { evaluate } from './stage.js'

export const N = 'downloads'
export const Z = '{downloads}:timeout'
export const CHANNEL = 'redisson_sc:{downloads}'
export const DEAD = 'redisson_unlock_latch:{downloads}:'
export const MARK = 'holdfast_request:{downloads}:r1'
export const ENDLESS = 922_337_203_685_477
export const MOST = Number.MAX_SAFE_INTEGER
/** A client's clock that is far ahead of the server's: then every score is exact. */
export const T = 4_000_000_000_000

// With what breaks text protocols and Lua patterns.
export const A = '00000d0a0a0dff00ff2525255d5b5c00'
export const B = 'ff0102030405060708090a0b0c0d0e0f'
export const C = '0000000000000000000000000000000c'
export const D = 'd0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0'

export let server: RedisServer
export let link: Raw
export let recorder: Recorder
export let peer: PeerPermits

/** Starts a server for the tests of a file, empty before each. */
export function onPermitServer(): void {
  beforeAll(async () => {
    server = await startRedis()
    link = await raw(server.port)
    recorder = await Recorder.on(link)
    peer = new PeerPermits(link, N)
  })
  afterAll(async () => {
    recorder.close()
    await link[Symbol.asyncDispose]()
    await server.stop()
  })
  beforeEach(() => recorder.clear())
}

export function run<Args, R>(
  definition: ScriptDefinition<Args, R>,
  args: Args,
  via: Raw = link,
): Promise<Step<R>> {
  return recorder.act(async () => definition.decode(await evaluate(via, definition, args)))
}

export const on = { count: N, leases: Z, channel: CHANNEL, publish: 'PUBLISH' }
export const told = (...payloads: (string | number)[]) =>
  payloads.map((payload) => ({ channel: CHANNEL, payload: String(payload) }))

interface Taking {
  readonly nowMs?: number
  readonly leaseMs?: number
  readonly total?: number
  readonly via?: Raw
}

export function acquire(
  ids: readonly string[],
  taking: Taking = {},
): Promise<Step<scripts.PermitsAcquireReply>> {
  const { nowMs = T, leaseMs = 30_000, total = -1, via } = taking
  const args = { ...on, tombstone: DEAD + String(ids[0]), nowMs, leaseMs, total, ids }
  return run(scripts.permitsAcquire, args, via)
}

export function release(
  ids: readonly string[],
  { entombMs = 0, via = link } = {},
): Promise<Step<scripts.PermitsReleaseReply>> {
  return run(scripts.permitsRelease, { ...on, tombstone: DEAD + String(ids[0]), entombMs, ids }, via)
}

export function give(
  ids: readonly string[],
  { all = true, nowMs = T } = {},
): Promise<Step<scripts.PermitsGiveReply>> {
  return run(scripts.permitsGive, { ...on, nowMs, all: all ? 1 : 0, ids })
}

export const count = (nowMs = T) => run(scripts.permitsCount, { ...on, nowMs })
export const set = (permits: number) =>
  run(scripts.permitsSet, { ...on, request: MARK, permits, markMs: 60_000 })
export const trySet = (permits: number) =>
  run(scripts.permitsTrySet, { ...on, request: MARK, permits, markMs: 60_000 })
export const addPermits = (permits: number, total = -1) =>
  run(scripts.permitsAdd, { ...on, request: MARK, permits, total, markMs: 60_000 })
export const renew = (owners: readonly string[], { ttlMs = 30_000, nowMs = T, via = link } = {}) =>
  run(scripts.permitsRenew, { leases: owners.map(() => Z), nowMs, ttlMs, owners }, via)

/** What is there, as a program without our scripts would have put it. */
export async function seed(available: number, out: Readonly<Record<string, number>> = {}): Promise<void> {
  await link.command('SET', N, available)
  for (const [id, score] of Object.entries(out)) await add(id, score)
}

export function add(id: string, score: number): Promise<unknown> {
  const script = `return redis.call('ZADD', KEYS[1], ARGV[1],
    (ARGV[2]:gsub('..', function(pair) return string.char(tonumber(pair, 16)) end)))`
  return link.command('EVAL', script, 1, Z, score, id)
}
export const update = (id: string, leaseMs: number, request = `${MARK}${id}${leaseMs}`) =>
  run(scripts.permitsUpdate, { leases: Z, request, nowMs: T, leaseMs, markMs: 60_000, id })
