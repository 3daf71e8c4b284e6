// Objects against each other in interleaved rounds, in one process. Prints one JSON object: rates per round.
// usage: node bench/objects.mjs REDIS_URL ROUNDS SLICE_MS
import { Redis } from 'ioredis'
import { Holdfast } from 'holdfast'

const [url, rounds, sliceMs] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const redis = new Redis(url)
const holdfast = new Holdfast(redis)

async function pair(taking) {
  const lease = await taking
  const outcome = await lease.release()
  if (outcome !== 'released') throw new Error(`not released: ${outcome}`)
}

/** Takes so many holds that stay, so many at a time. */
async function keep(count, take) {
  for (let first = 0; first < count; first += 500)
    await Promise.all(Array.from({ length: Math.min(500, count - first) }, () => take()))
}

/** Pairs per second of so many callers for one slice of time. */
async function slice({ callers, run }) {
  const begun = performance.now()
  let pairs = 0
  const caller = async (_, i) => {
    while (performance.now() - begun < sliceMs) {
      await run(i)
      pairs += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return (pairs * 1_000) / (performance.now() - begun)
}

async function compare(contenders) {
  const rates = contenders.map(() => [])
  for (const contender of contenders) await slice(contender)
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < contenders.length; i++) {
      const at = (i + round) % contenders.length
      rates[at].push(await slice(contenders[at]))
    }
  }
  return { base: rates[0], compared: rates[1] }
}

async function readersTogether() {
  const { read } = holdfast.readWriteLock('bench:readers')
  return compare([
    { callers: 64, run: (i) => pair(holdfast.lock(`bench:lock:${String(i)}`).acquire()) },
    { callers: 64, run: () => pair(read.acquire()) },
  ])
}

async function oneMoreReader() {
  const [few, many] = ['bench:few', 'bench:many'].map((name) => holdfast.readWriteLock(name).read)
  await keep(1, () => few.acquire())
  await keep(500, () => many.acquire())
  return compare([
    { callers: 1, run: () => pair(few.acquire()) },
    { callers: 1, run: () => pair(many.acquire()) },
  ])
}

async function onePermitMore() {
  const [few, many] = [10, 10_000].map((live) => ({
    live,
    permits: holdfast.permitSemaphore(`bench:permits:${String(live)}`, { permits: live + 10 }),
  }))
  for (const { live, permits } of [few, many])
    await keep(live, () => permits.acquire(1, { leaseTime: 3_600_000 }))
  return compare([
    { callers: 1, run: () => pair(few.permits.acquire()) },
    { callers: 1, run: () => pair(many.permits.acquire()) },
  ])
}

const result = {
  '64 readers of one lock, of 64 plain locks': await readersTogether(),
  'a reader beside 500 readers, of one beside 1': await oneMoreReader(),
  'a permit beside 10,000 live ones, of one beside 10': await onePermitMore(),
}
await holdfast.close({ drain: 0 })
redis.disconnect()
console.log(JSON.stringify(result))
