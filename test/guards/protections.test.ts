/**
 * Two holders add an element to one set: each reads the whole set and writes it back. The first one's lease ends while
 * it works, at every possible place, and the second one comes; every order of their steps is tried, none by chance.
 */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Holdfast, ManualClock, RedisGuard, type FencedLease, type FencedLock } from '../../src/index.js'
import { startRedis, type RedisServer } from '../support/server.js'

/** What stands between the set and a holder whose time is over. */
interface Protection {
  /** The holder asks its lease right before it writes. */
  readonly checks: boolean
  read(lease: FencedLease): Promise<string>
  write(lease: FencedLease, set: string): Promise<void>
}

type Step = 'A reads' | 'A checks' | 'A writes' | 'B comes' | 'B reads' | 'B writes'

const FIRST: readonly Step[] = ['A reads', 'A checks', 'A writes']
const SECOND: readonly Step[] = ['B comes', 'B reads', 'B writes']
const LEASE_MS = 200

let server: RedisServer
let redis: Redis
let guard: RedisGuard
let stories = 0

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port, '127.0.0.1')
  guard = new RedisGuard(redis)
})
afterAll(async () => {
  await guard.close()
  redis.disconnect()
  await server.stop()
})

/** All orders in which the steps of two can follow each other. */
function merges(one: readonly Step[], other: readonly Step[]): Step[][] {
  const [first, ...rest] = one
  const [second, ...others] = other
  if (first === undefined || second === undefined) return [[...one, ...other]]
  return [
    ...merges(rest, other).map((order) => [first, ...order]),
    ...merges(one, others).map((order) => [second, ...order]),
  ]
}

const plain = (key: string, checks: boolean): Protection => ({
  checks,
  read: async () => (await redis.get(key)) ?? '',
  write: async (_, set) => {
    await redis.set(key, set)
  },
})

/** The fence as it is mostly told of: whoever writes brings a token, and nobody asks those who read. */
const fencedOnWrite = (key: string): Protection => ({
  checks: true,
  read: async () => (await redis.hget(key, 'value')) ?? '',
  write: (lease, set) => guard.value(key).write(lease.token, set),
})

const sealedOnRead = (key: string): Protection => ({
  checks: true,
  read: async (lease) => (await guard.value(key).read(lease.token)) ?? '',
  write: (lease, set) => guard.value(key).write(lease.token, set),
})

interface Outcome {
  readonly acknowledged: readonly string[]
  readonly refused: readonly string[]
  readonly lost: readonly string[]
}

/** One holder at work: what it has read, and whether its lease said that it may write. */
class Holder {
  readonly element: string
  readonly lease: FencedLease
  readonly #protection: Protection
  #seen = ''
  #may = true

  constructor(element: string, lease: FencedLease, protection: Protection) {
    this.element = element
    this.lease = lease
    this.#protection = protection
  }

  async read(): Promise<void> {
    try {
      this.#seen = await this.#protection.read(this.lease)
    } catch {
      this.#may = false
    }
  }

  check(): void {
    if (this.#protection.checks && !this.lease.held) this.#may = false
  }

  /** Whether the store has acknowledged it. */
  async write(): Promise<boolean> {
    if (!this.#may) return false
    return this.#protection.write(this.lease, this.#seen + this.element).then(
      () => true,
      (error: unknown) => {
        expect(error).toMatchObject({ code: 'HOLDFAST_STALE_TOKEN' })
        return false
      },
    )
  }
}

/** Plays the steps in this order. */
async function play(order: readonly Step[], protect: (key: string) => Protection): Promise<Outcome> {
  stories += 1
  const protection = protect(`set:${stories}`)
  const clock = new ManualClock()
  const holdfast = await Holdfast.connect('memory:', { clock })
  const lock = holdfast.fencedLock('the set')
  const a = new Holder('a', await lock.acquire({ leaseTime: LEASE_MS }), protection)
  let b: Holder | undefined
  const acknowledged: string[] = []
  const refused: string[] = []
  const write = async (holder: Holder | undefined) => {
    if (holder === undefined) throw new Error('a step before its holder')
    ;((await holder.write()) ? acknowledged : refused).push(holder.element)
  }
  const steps: Record<Step, () => Promise<void> | undefined> = {
    'A reads': () => a.read(),
    'A checks': async () => {
      a.check()
    },
    'A writes': () => write(a),
    'B comes': async () => {
      b = new Holder('b', await comes(lock, clock), protection)
    },
    'B reads': () => b?.read(),
    'B writes': () => write(b),
  }
  for (const step of order) await steps[step]()
  // Whoever looks at the end is the newest.
  clock.block(LEASE_MS)
  const end = await protection.read(await lock.acquire())
  await holdfast.close({ drain: 0 })
  return { acknowledged, refused, lost: acknowledged.filter((element) => !end.includes(element)) }
}

async function comes(lock: FencedLock, clock: ManualClock): Promise<FencedLease> {
  clock.block(LEASE_MS)
  const lease = await lock.tryAcquire({ leaseTime: LEASE_MS })
  if (lease === null) throw new Error('the lease of the first one has not ended')
  return lease
}

const PROTECTIONS = {
  'lock only': (key: string) => plain(key, false),
  'and the lease asked before the write': (key: string) => plain(key, true),
  'and a fence on writes': fencedOnWrite,
  'and the fence sealed by reads': sealedOnRead,
} satisfies Record<string, (key: string) => Protection>

describe('a lock whose first holder is late', () => {
  const orders = merges(FIRST, SECOND)

  test('over all orders of the steps, only the fence that reads seal loses nothing that was acknowledged', async () => {
    const losses: Record<string, number> = {}
    for (const [name, protect] of Object.entries(PROTECTIONS)) {
      losses[name] = 0
      for (const order of orders) {
        const { acknowledged, lost } = await play(order, protect)
        if (lost.length > 0) losses[name] += 1
        // The protection must not be that nobody can write.
        expect(acknowledged, order.join(', ')).toContain('b')
      }
    }
    expect(orders).toHaveLength(20)
    // Without a fence all but the five in which one is done before the other reads. The lease's word leaves those in
    // which the first has asked before its time was over, and the fence on writes the one of them that follows.
    expect(losses).toEqual({
      'lock only': 15,
      'and the lease asked before the write': 2,
      'and a fence on writes': 1,
      'and the fence sealed by reads': 0,
    })
  })

  // The new holder has read, and not yet written: on writes alone nobody has shown the store its token.
  const losing: readonly Step[] = ['A reads', 'A checks', 'B comes', 'B reads', 'A writes', 'B writes']

  test('a fence on writes alone takes a write between the read and the write of the next holder, which is lost', async () => {
    expect(await play(losing, fencedOnWrite)).toEqual({
      acknowledged: ['a', 'b'],
      refused: [],
      lost: ['a'],
    })
  })

  test('sealed by the read, the store refuses that write', async () => {
    expect(await play(losing, sealedOnRead)).toEqual({ acknowledged: ['b'], refused: ['a'], lost: [] })
  })
})
