import { describe, expect, test } from 'vitest'
import * as fair from '../../src/engine/model/fair.js'
import { FREE, type KeyState, type Step } from '../../src/engine/model/state.js'
import type { FairAbandon, FairAcquire, Release } from '../../src/engine/operations.js'

const [A, B, C] = ['client:1', 'client:2', 'client:3'] as const
const name = 'orders'
/** Where the client's clock stands when the model's store begins. */
const WALL = 1_000_000

/** One state, and what owners do to it one after the other. */
class History {
  state: KeyState = FREE
  readonly wakes: unknown[] = []

  acquire(owner: string, atMs: number, terms: Partial<FairAcquire> = {}): unknown {
    const usual = { leaseMs: 30_000, waitMs: 300_000, join: true, lookMs: 10_000 }
    const operation = { op: 'fair.acquire', name, owner, ...usual, ...terms } as const
    return this.#step(fair.acquire(this.state, operation, clocks(atMs)))
  }

  abandon(owner: string, atMs: number, terms: Partial<FairAbandon> = {}): unknown {
    const usual = { waitMs: 300_000, entombMs: 60_000, lookMs: 10_000 }
    return this.#step(
      fair.abandon(this.state, { op: 'fair.abandon', name, owner, ...usual, ...terms }, clocks(atMs)),
    )
  }

  release(owner: string, atMs: number, terms: Partial<Release<'fair.release'>> = {}): unknown {
    const usual = { keepMs: 0, entombMs: 0 }
    return this.#step(
      fair.release(this.state, { op: 'fair.release', name, owner, ...usual, ...terms }, clocks(atMs)),
    )
  }

  get queue(): readonly (readonly [string, number | undefined])[] {
    const { owners = [], deadlines = new Map<string, number>() } = this.state.fair ?? {}
    return owners.map((owner) => [owner, deadlines.get(owner)] as const)
  }

  #step<R>({ state, reply, wake }: Step<R>): R {
    this.state = state
    this.wakes.push(wake)
    return reply
  }
}

function clocks(atMs: number): fair.FairClocks {
  return { nowMs: atMs, wallMs: WALL + atMs, serverMs: WALL + atMs }
}

describe('the table of the wire', () => {
  test('deadlines add up, and the wait of whoever is through is taken out again', () => {
    const history = new History()
    expect(history.acquire(A, 0)).toEqual({ outcome: 'granted' })
    // The first TTL is still whole when the second one comes.
    history.state = { ...history.state, expiresAtMs: 30_010 }
    expect(history.acquire(B, 10)).toMatchObject({ outcome: 'queued', untilMs: 30_000, holder: A, head: B })
    expect(history.acquire(C, 20)).toMatchObject({
      untilMs: 329_990,
      ttlMs: 29_990,
      head: B,
      headMs: 329_990,
    })
    expect(history.queue).toEqual([
      [B, 1_330_010],
      [C, 1_630_010],
    ])
    expect(history.acquire(B, 10)).toMatchObject({ untilMs: 30_000 })
    expect(history.acquire(B, 10, { join: false })).toEqual({ outcome: 'busy', ttlMs: 30_000, holder: A })
    history.state = { ...history.state, value: undefined }
    expect(history.acquire(C, 20)).toMatchObject({ untilMs: 0, ttlMs: -2, holder: '' })
    expect(history.acquire(B, 30)).toEqual({ outcome: 'granted' })
    expect(history.queue).toEqual([[C, 1_330_010]])
  })

  test('whoever gives up takes its wait out of the deadlines behind it, once', () => {
    const history = new History()
    for (const owner of [A, B, C]) history.acquire(owner, 0)
    expect(history.abandon(B, 0)).toEqual({ outcome: 'left' })
    expect(history.queue).toEqual([[C, WALL + 330_000]])
    expect(history.abandon(B, 0)).toEqual({ outcome: 'none' })
    expect(history.queue).toEqual([[C, WALL + 330_000]])
    expect(history.acquire(B, 0)).toEqual({ outcome: 'dead' })
  })
})

describe('the living and the dead', () => {
  test('only the head moves its deadline on, and takes those behind it along', () => {
    const history = new History()
    history.acquire(A, 0, { leaseMs: 1_000_000 })
    history.acquire(B, 0, { waitMs: 1_000 })
    history.acquire(C, 0, { waitMs: 2_000 })
    history.state = { ...history.state, expiresAtMs: 1_500_000 }
    history.acquire(C, 500, { waitMs: 2_000 })
    expect(history.queue.map(([, ms]) => ms)).toEqual([WALL + 1_001_000, WALL + 1_003_000])
    history.acquire(B, 500, { waitMs: 1_000 })
    expect(history.queue.map(([, ms]) => ms)).toEqual([WALL + 1_501_000, WALL + 1_503_000])
  })

  test('heads are dropped in the millisecond in which their deadline is over, by the earlier of two clocks', () => {
    const history = new History()
    history.acquire(A, 0, { leaseMs: 100 })
    history.acquire(B, 0, { waitMs: 100 })
    const look = (wallMs: number, serverMs: number) => {
      const terms = {
        op: 'fair.acquire',
        name,
        owner: C,
        leaseMs: 100,
        waitMs: 100,
        join: false,
        lookMs: 0,
      } as const
      return fair.acquire(history.state, terms, {
        nowMs: 200,
        wallMs: WALL + wallMs,
        serverMs: WALL + serverMs,
      })
    }
    expect(look(199, 1_000_000).reply).toMatchObject({ outcome: 'busy' })
    expect(look(1_000_000, 199).reply).toMatchObject({ outcome: 'busy' })
    expect(look(200, 200).reply).toEqual({ outcome: 'granted' })
  })

  test('a new head is told by whoever drops the one before it', () => {
    const history = new History()
    for (const owner of [A, B, C]) history.acquire(owner, 0)
    history.release(A, 0)
    expect(history.wakes.at(-1)).toEqual({ hint: 'one', owner: B })
    history.acquire('client:4', 330_000)
    expect(history.wakes.at(-1)).toEqual({ hint: 'one', owner: C })
  })

  test('an empty queue is no state', () => {
    const history = new History()
    for (const owner of [A, B]) history.acquire(owner, 0)
    history.abandon(B, 0, { entombMs: 0 })
    history.release(A, 0)
    expect(history.state).toEqual(FREE)
  })
})
