/** Random nests of locks and multi-locks: whatever the callers hold and want, all of them get through. */
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { Holdfast, ManualClock, type ExclusiveLock } from '../../src/index.js'
import { startRedis } from '../support/server.js'

const NAMES = ['locks:0', 'locks:1', 'locks:2', 'locks:3'] as const
/** Of those who may wait for each other. */
const PATIENCE_MS = 200
/** Far more than any plan needs; whoever is not done by then waits for himself. */
const GIVE_UP_MS = 600_000
const GIVE_UP_REAL_MS = 60_000
const ALL_TRIALS_MS = 120_000

/** What a caller does: takes some locks, does more inside, or several things at once. */
type Step =
  | { readonly take: readonly number[]; readonly inside: readonly Step[] }
  | { readonly together: readonly (readonly Step[])[] }
  | { readonly pauseMs: number }

const { plans } = fc.letrec<{ plans: readonly Step[]; step: Step }>((tie) => ({
  plans: fc.array(tie('step'), { minLength: 1, maxLength: 3 }),
  step: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.record({ pauseMs: fc.nat({ max: 30 }) }),
    fc.record({
      take: fc.uniqueArray(fc.nat({ max: NAMES.length - 1 }), { minLength: 1, maxLength: 3 }),
      inside: tie('plans'),
    }),
    fc.record({
      take: fc.uniqueArray(fc.nat({ max: NAMES.length - 1 }), { minLength: 2, maxLength: 4 }),
      inside: tie('plans'),
    }),
    fc.record({ together: fc.array(tie('plans'), { minLength: 2, maxLength: 3 }) }),
  ),
}))

/** The callers of one trial, and who is inside of what. */
class Trial {
  readonly #holdfasts: readonly Holdfast[]
  readonly #pause: (ms: number) => Promise<unknown>
  readonly #inside = NAMES.map(() => new Map<number, number>())
  taken = 0

  constructor(holdfasts: readonly Holdfast[], pause: (ms: number) => Promise<unknown>) {
    this.#holdfasts = holdfasts
    this.#pause = pause
  }

  async run(callers: readonly (readonly Step[])[]): Promise<void> {
    await Promise.all(callers.map((steps, caller) => this.#all(steps, caller, [])))
  }

  async #all(steps: readonly Step[], caller: number, held: readonly number[]): Promise<void> {
    for (const step of steps) {
      if ('pauseMs' in step) await this.#pause(step.pauseMs)
      else if ('take' in step) await this.#take(step, caller, held)
      else await Promise.all(step.together.map((part) => this.#all(part, caller, held)))
    }
  }

  async #take(
    { take, inside }: Extract<Step, { readonly take: unknown }>,
    caller: number,
    held: readonly number[],
  ): Promise<void> {
    const lock = this.#lock(caller, take)
    const work = async (): Promise<void> => {
      this.taken += 1
      for (const place of take) this.#enter(place, caller)
      await this.#all(inside, caller, [...held, ...take])
      for (const place of take) this.#leave(place, caller)
    }
    // Who waits without end for what is not behind all that he has may wait for one who waits for him: that is no
    // lock's fault. Whoever holds nothing may want anything, in any order.
    const safe = Math.min(...take) > Math.max(-1, ...held)
    if (safe) await lock.using(work)
    else await lock.tryUsing({ waitTime: PATIENCE_MS }, work)
  }

  #lock(caller: number, take: readonly number[]): ExclusiveLock {
    const holdfast = this.#holdfasts[caller % this.#holdfasts.length]
    if (holdfast === undefined) throw new Error('there is no Holdfast')
    const locks = take.map((place) => holdfast.lock(NAMES[place] ?? ''))
    const [only] = locks
    return only !== undefined && locks.length === 1 ? only : holdfast.multiLock(locks)
  }

  #enter(place: number, caller: number): void {
    const inside = this.#inside[place] ?? new Map<number, number>()
    inside.set(caller, (inside.get(caller) ?? 0) + 1)
    expect([...inside.keys()], `who is inside of ${String(NAMES[place])}`).toEqual([caller])
  }

  #leave(place: number, caller: number): void {
    const inside = this.#inside[place]
    const count = (inside?.get(caller) ?? 1) - 1
    if (count === 0) inside?.delete(caller)
    else inside?.set(caller, count)
  }
}

test('on the memory engine', async () => {
  let taken = 0
  await fc.assert(
    fc.asyncProperty(fc.array(plans, { minLength: 3, maxLength: 6 }), async (callers) => {
      const clock = new ManualClock()
      const name = `memory:progress:${crypto.randomUUID()}`
      const holdfasts = await Promise.all([1, 2, 3].map(() => Holdfast.connect(name, { clock })))
      const trial = new Trial(holdfasts, (ms) => new Promise<void>((resolve) => clock.setTimer(resolve, ms)))
      const running = trial.run(callers)
      const state = { open: true }
      const ended = () => {
        state.open = false
      }
      running.then(ended, ended)
      while (state.open && clock.now() < GIVE_UP_MS) await clock.advance(10)
      if (state.open) throw new Error('somebody never gets through')
      await running
      taken += trial.taken
      for (const holdfast of holdfasts) expect(holdfast.stats().held).toBe(0)
    }),
    { numRuns: 50 },
  )
  expect(taken).toBeGreaterThan(100)
})

test(
  'on a real server, with three clients',
  async () => {
    await using server = await startRedis()
    const clients = [1, 2, 3].map(() => new Redis(server.port, '127.0.0.1'))
    const holdfasts = clients.map((client) => new Holdfast(client))
    // The seed only says which trials these are: each of them must get through.
    for (const callers of fc.sample(fc.array(plans, { minLength: 5, maxLength: 7 }), { numRuns: 8 })) {
      const trial = new Trial(holdfasts, sleep)
      const late = new AbortController()
      const limit = sleep(GIVE_UP_REAL_MS, 'late', { signal: late.signal }).catch(() => 'over')
      const end = await Promise.race([trial.run(callers), limit])
      late.abort()
      expect(end, JSON.stringify(callers)).toBeUndefined()
      for (const name of NAMES) expect(await clients[0]?.exists(name)).toBe(0)
    }
    for (const holdfast of holdfasts) await holdfast.close({ drain: 0 })
    for (const client of clients) client.disconnect()
  },
  ALL_TRIALS_MS,
)
