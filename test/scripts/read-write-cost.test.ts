/** A reader costs the same however many others there are: counted in the commands that its scripts run. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as scripts from '../../src/engine/redis/scripts.js'
import type { ScriptDefinition } from '../../src/engine/redis/script.js'
import { raw, type Raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { evaluate } from './stage.js'

const lock = 'catalogue'
const to = { channel: 'redisson_rwlock:{catalogue}', publish: 'PUBLISH' }
/** Every fifth reader has a lease of its own. */
const leaseOf = (i: number) => (i % 5 === 0 ? 60_000 : 30_000)
const ownerOf = (i: number) => `9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:${i}`
const keysOf = (owner: string) => ({ lock, tombstone: `redisson_unlock_latch:{catalogue}:${owner}`, owner })

let server: RedisServer
let link: Raw

beforeAll(async () => {
  server = await startRedis()
  link = await raw(server.port)
})
afterAll(async () => {
  await link[Symbol.asyncDispose]()
  await server.stop()
})

const enter = (i: number, leaseMs = leaseOf(i)) =>
  run(scripts.readAcquire, { ...keysOf(ownerOf(i)), writer: '', count: 1, leaseMs })
const leave = (i: number) =>
  run(scripts.readRelease, { ...keysOf(ownerOf(i)), ...to, keepMs: 0, entombMs: 0 })
const renew = (i: number) => run(scripts.readRenew, { locks: [lock], ttlMs: 30_000, owners: [ownerOf(i)] })

/** Runs a script and counts the commands inside of it. */
async function run<A, R>(definition: ScriptDefinition<A, R>, args: A): Promise<number> {
  await link.command('CONFIG', 'RESETSTAT')
  await evaluate(link, definition, args)
  const info = String(await link.command('INFO', 'commandstats'))
  const calls = [...info.matchAll(/^cmdstat_(?!eval|config|info)\S+?:calls=(\d+)/gm)]
  return calls.reduce((sum, [, count]) => sum + Number(count), 0)
}

async function fill(readers: number): Promise<void> {
  await link.command('FLUSHALL')
  for (let i = 0; i < readers; i++) await enter(i)
}

describe('with one other reader, and with 500', () => {
  const costs: Record<string, number[]> = {}

  test.for([1, 4, 16, 100, 500])('%i', async (readers) => {
    await fill(readers)
    const cost = {
      enter: await enter(9_999, 30_000),
      renew: await renew(9_999),
      leave: await leave(9_999),
      leaveAsLongest: await enter(9_998, 31_000).then(() => leave(9_998)),
    }
    for (const [what, calls] of Object.entries(cost)) (costs[what] ??= []).push(calls)
  })

  test('each step runs as many commands, but for a look at a few others', () => {
    for (const calls of Object.values(costs)) {
      expect(calls).toHaveLength(5)
      expect(Math.max(...calls) - Math.min(...calls)).toBeLessThanOrEqual(5)
      expect(Math.max(...calls)).toBeLessThanOrEqual(15)
    }
    const spread = (calls: readonly number[] = []) => Math.max(...calls) - Math.min(...calls)
    expect(spread(costs['enter'])).toBe(0)
    // Whether a time has to be raised depends on the millisecond.
    expect(spread(costs['renew'])).toBeLessThanOrEqual(2)
  })
})

test.for([
  ['in the order of their coming', (i: number) => i],
  ['the last first', (i: number, n: number) => n - 1 - i],
] as const)('500 readers leave %s: few commands each, and the lock is free', async ([, whose]) => {
  await fill(500)
  let total = 0
  for (let i = 0; i < 500; i++) {
    const calls = await leave(whose(i, 500))
    total += calls
  }
  expect(total / 500).toBeLessThan(15)
  expect(await link.command('EXISTS', lock)).toBe(0)
})

test('the one reader with a long lease pays for a look at all, so that nobody waits for it in vain', async () => {
  await fill(0)
  for (let i = 0; i < 200; i++) await enter(i, 30_000)
  await enter(9_999, 3_600_000)
  expect(await leave(9_999)).toBeGreaterThan(200)
  expect(await link.command('PTTL', lock)).toBeLessThanOrEqual(30_000)
})
