import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { HoldfastEvents } from '../../src/index.js'
import { atEnd } from './world.js'

/** Collects the events about one lock until the test is finished. */
export function hear<N extends keyof HoldfastEvents>(channel: N, lock: string): HoldfastEvents[N][] {
  const heard: HoldfastEvents[N][] = []
  onEvent(channel, lock, (event) => heard.push(event))
  return heard
}

/** Calls back at every event about one lock, in the tick of the event, until the test is finished. */
export function onEvent<N extends keyof HoldfastEvents>(
  channel: N,
  lock: string,
  listener: (event: HoldfastEvents[N]) => void,
): void {
  const filter = (message: unknown) => {
    const event = message as HoldfastEvents[N]
    if (event.lock === lock) listener(event)
  }
  subscribe(channel, filter)
  atEnd(() => {
    unsubscribe(channel, filter)
  })
}

/** Collects process warnings of Holdfast that mention a lock, until the test is finished. */
export function hearWarnings(lock: string): (Error & { readonly code?: string })[] {
  const heard: Error[] = []
  const listener = (warning: Error) => {
    if (warning.name === 'HoldfastWarning' && warning.message.includes(`'${lock}'`)) heard.push(warning)
  }
  process.on('warning', listener)
  atEnd(() => {
    process.off('warning', listener)
  })
  return heard
}
