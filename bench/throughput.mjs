// Runs contenders in interleaved rounds in one process and prints one JSON object: pairs per second, per round.
// usage: node bench/throughput.mjs REDIS_URL ROUNDS SLICE_MS
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { Holdfast } from 'holdfast'
import { floorIoredis, floorNodeRedis } from './contenders/floor.mjs'
import { holdfastLock } from './contenders/holdfast.mjs'
import { sameScripts } from './contenders/same-scripts.mjs'

const [url, rounds, sliceMs] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]

/** The sources that the package really sends, by name. */
async function packagedScripts() {
  const folder = createRequire(import.meta.url)
    .resolve('holdfast')
    .replace(/index\.js$/, '')
  const { lockAcquire, lockRelease } = await import(`file://${folder}engine/redis/scripts.js`)
  return { acquire: lockAcquire.script, release: lockRelease.script }
}

async function contenders() {
  const { acquire, release } = await packagedScripts()
  const ioredis = new Redis(url)
  const nodeRedis = createClient({ url })
  await nodeRedis.connect()
  const both = { acquire: acquire.sha, release: release.sha }
  const byIoredis = {
    ...both,
    load: () => Promise.all([acquire, release].map((s) => ioredis.script('LOAD', s.source))),
  }
  const byNodeRedis = {
    ...both,
    load: () => Promise.all([acquire, release].map((s) => nodeRedis.scriptLoad(s.source))),
  }
  const onIoredis = new Holdfast(ioredis)
  const onNodeRedis = new Holdfast(nodeRedis)
  const list = {
    'ioredis floor': floorIoredis(ioredis),
    'ioredis same scripts': sameScripts(
      (sha, keys, args) => ioredis.evalsha(sha, keys.length, ...keys, ...args),
      byIoredis,
    ),
    'ioredis Lock': holdfastLock(onIoredis, 'lock'),
    'ioredis Mutex': holdfastLock(onIoredis, 'mutex'),
    'node-redis floor': floorNodeRedis(nodeRedis),
    'node-redis same scripts': sameScripts(
      (sha, keys, args) => nodeRedis.evalSha(sha, { keys, arguments: args }),
      byNodeRedis,
    ),
    'node-redis Lock': holdfastLock(onNodeRedis, 'lock'),
    'node-redis Mutex': holdfastLock(onNodeRedis, 'mutex'),
  }
  const close = async () => {
    await Promise.all([onIoredis.close(), onNodeRedis.close()])
    ioredis.disconnect()
    nodeRedis.destroy()
  }
  return { list, close }
}

/** Pairs per second of so many callers, each on a lock of its own, for one slice of time. */
async function slice({ pair }, callers, ms) {
  const begun = performance.now()
  let pairs = 0
  const caller = async (_, i) => {
    while (performance.now() - begun < ms) {
      await pair(`bench:${String(i)}`)
      pairs += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return (pairs * 1_000) / (performance.now() - begun)
}

async function measure(list, callers) {
  const names = Object.keys(list)
  const rates = Object.fromEntries(names.map((name) => [name, []]))
  for (const name of names) await slice(list[name], callers, sliceMs)
  for (let round = 0; round < rounds; round++) {
    // Each round begins with another contender, so that nobody always follows the same one.
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length]
      rates[name].push(await slice(list[name], callers, sliceMs))
    }
  }
  return rates
}

const { list, close } = await contenders()
for (const contender of Object.values(list)) await contender.prepare()
const result = { sequential: await measure(list, 1), 'concurrent-64': await measure(list, 64) }
await close()
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
console.log(JSON.stringify({ holdfast: version, node: process.version, result }))
