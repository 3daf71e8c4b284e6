/** What each of the two workers does, and what it hears from Holdfast meanwhile. */
import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Holdfast, HoldfastEvents } from '../src/index.js'
import type { EventName, TurnOrder, WorkerEvent } from './messages.js'
import { shortOwner } from './page.js'
import { now } from './timeline.js'

type Tell = (event: WorkerEvent) => void

interface Turn extends TurnOrder {
  /** Ends the work. */
  readonly stop: AbortSignal
}

/** Works with the lock for a while. */
export async function takeTurn(holdfast: Holdfast, { lock, workMs, stop }: Turn, tell: Tell): Promise<void> {
  await holdfast.lock(lock).using(async (lease) => {
    await sleep(workMs, undefined, { signal: AbortSignal.any([lease.signal, stop]) })
    tell({ at: now(), what: 'done', detail: `worked ${workMs} ms` })
  })
}

type Owned = Partial<{ readonly owner: string }>

/** Tells what Holdfast publishes about the locks of this process, and whose it is where that is known. */
export function observe(tell: (event: WorkerEvent & Owned) => void): void {
  on('holdfast:acquire:start', () => ({ what: 'wants', detail: 'the lock' }))
  on('holdfast:acquire:wait', ({ holder = '', holderTtl = 0 }) => ({
    what: 'waits',
    detail: `${shortOwner(holder)} has it for ${holderTtl} ms more`,
  }))
  on('holdfast:wakeup', ({ cause }) => ({ what: 'woken', detail: `by ${WAKE_UP[cause]}` }))
  on('holdfast:acquire:granted', ({ waited, owner }) => ({
    what: 'has it',
    detail: `after ${waited.toFixed(0)} ms`,
    owner,
  }))
  on('holdfast:renew:ok', ({ slack, owner }) => ({
    what: 'renewed',
    detail: `with ${slack.toFixed(0)} ms left`,
    owner,
  }))
  on('holdfast:release', ({ outcome, held, owner }) => ({
    what: 'released',
    detail: outcome === 'released' ? `held ${held.toFixed(0)} ms` : outcome,
    owner,
  }))
  on('holdfast:lost', ({ reason, owner }) => ({ what: 'lost', detail: reason, owner }))

  function on<C extends keyof HoldfastEvents>(
    channel: C,
    describe: (event: HoldfastEvents[C]) => { readonly what: EventName; readonly detail: string } & Owned,
  ): void {
    subscribe(channel, (event) => {
      tell({ at: now(), ...describe(event as HoldfastEvents[C]) })
    })
  }
}

const WAKE_UP = {
  message: 'the message of the release',
  expiry: 'the end of the holder’s time',
  poll: 'the clock',
  resync: 'a new subscription',
} as const
