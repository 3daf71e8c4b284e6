/** What tests of held locks wait for and look at. */
import type { Holdfast, HoldfastStats, ManualClock } from '../../../src/index.js'
import { eventually } from '../../support/eventually.js'
import { watch, type Heard, type Scene } from '../scene.js'

/** A `Holdfast` with nothing to do. */
export const IDLE: HoldfastStats = { held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 }

/** Another owner, as other programs write it. */
export const OTHER = '0a1b2c3d-0001-4000-8000-00000000e15e:7'

/** Keeps the event loop busy: no timer and no reply is served meanwhile. */
export function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Keeps a rejection from counting as unobserved until somebody waits for it. */
export function expected<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/** The rest of a key's life; -2: it is not there. */
export async function ttl(scene: Scene, key: string): Promise<number> {
  return Number(await scene.command('PTTL', key))
}

/** The events about this lock. */
export function about<E extends { readonly lock: string }>(heard: readonly E[], lock: string): readonly E[] {
  return heard.filter((event) => event.lock === lock)
}

/** Resolves when `times` more events about this lock were heard. */
export function more<N extends 'holdfast:renew:ok' | 'holdfast:renew:failed'>(
  heard: Heard<N>,
  lock: string,
  times: number,
): Promise<void> {
  const count = (): number => about<{ readonly lock: string }>(heard, lock).length
  const before = count()
  return eventually(() => count() >= before + times, `${times} more renewals of ${lock}`)
}

/** Resolves when nothing is being undone any more. */
export function untilUndone(holdfast: Holdfast): Promise<void> {
  return eventually(() => holdfast.stats().compensating === 0, 'everything is undone')
}

/** Resolves when somebody listens on this channel. */
export function untilHeard(scene: Scene, channel: string): Promise<void> {
  return eventually(async () => {
    const [, count] = (await scene.command('PUBSUB', 'NUMSUB', channel)) as [string, number]
    return count > 0
  }, `somebody listens on ${channel}`)
}

/** Lets the clock run slowly while something is waited for. */
export async function untilSettled(clock: ManualClock, promise: Promise<unknown>): Promise<void> {
  const state = watch(promise)
  await eventually(async () => {
    await clock.advance(5)
    return state.settled
  }, 'it settles')
}
