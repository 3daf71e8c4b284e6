import type { Look } from '../engine/operations.js'
import type { WatchEvent } from './change.js'

/** A look, and when the key would end by what was seen. */
export interface Seen {
  readonly look: Look
  /** The earliest and the latest monotonic time at which its time may be over; `Infinity` without an end. */
  readonly expiresFromMs: number
  readonly expiresByMs: number
}

/** What was heard of a key since the last look. */
export interface Heard {
  /** The last word of its end. */
  readonly gone: 'delete' | 'expire' | undefined
  /** The value was written. */
  readonly written: boolean
}

/** One thing that happened to a key. */
export interface Difference {
  readonly event: WatchEvent
  readonly created: boolean
  /** What is there now; of what is gone, what was there. */
  readonly look: Look
}

/** No key. */
export const ABSENT: Look = { type: undefined, mark: '', exact: true, ttlMs: -2 }
/** Nothing was heard. */
export const SILENCE: Heard = { gone: undefined, written: false }

const GONE: Readonly<Record<string, 'delete' | 'expire'>> = {
  expired: 'expire',
  del: 'delete',
  evicted: 'delete',
  rename_from: 'delete',
  move_from: 'delete',
}
/** They are told of the key, but leave the value as it is. */
const BESIDE_THE_VALUE = /^(expire|persist|new|keymiss|keyhit|xgroup.*)$/
/** The clocks of both sides run a little apart. */
const SLACK_MS = 2

/** What is known after one more word of the server. */
export function hear(before: Heard, event: string): Heard {
  const gone = GONE[event]
  if (gone !== undefined) return { gone, written: before.written }
  return BESIDE_THE_VALUE.test(event) ? before : { ...before, written: true }
}

/**
 * What happened between two looks. The looks decide; what was heard tells an end by time from a removal, and
 * that a key ended although it is there again.
 */
export function differences(
  before: Seen,
  { look, heard, byMs }: { readonly look: Look; readonly heard: Heard; readonly byMs: number },
): readonly Difference[] {
  const was = before.look
  const there = look.type !== undefined
  if (was.type === undefined) {
    if (there) return [{ event: 'change', created: true, look }]
    return heard.gone !== undefined && heard.written ? [{ event: heard.gone, created: false, look: was }] : []
  }
  const gone = heard.gone ?? (before.expiresFromMs <= byMs + SLACK_MS ? 'expire' : 'delete')
  if (!there) return [{ event: gone, created: false, look: was }]
  if (heard.gone !== undefined)
    return [
      { event: heard.gone, created: false, look: was },
      { event: 'change', created: true, look },
    ]
  return isOther(was, look) || (heard.written && !look.exact)
    ? [{ event: 'change', created: false, look }]
    : []
}

function isOther(was: Look, is: Look): boolean {
  return was.type !== is.type || was.exact !== is.exact || was.mark !== is.mark
}

/** A look that was asked for and answered at these times. */
export function seen(look: Look, askedAtMs: number, answeredAtMs: number): Seen {
  if (look.ttlMs < 0) return { look, expiresFromMs: Infinity, expiresByMs: Infinity }
  return { look, expiresFromMs: askedAtMs + look.ttlMs, expiresByMs: answeredAtMs + look.ttlMs }
}
