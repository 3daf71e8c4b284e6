/** What a spin lock does differently from a re-entrant lock: its end wakes nobody. */
import type { Force, ForceReply, Release, ReleaseReply } from '../operations.js'
import * as lock from './lock.js'
import type { KeyState, Step } from './state.js'

/** Ends an owner, whatever its count. */
export function release(before: KeyState, operation: Release<string>, nowMs: number): Step<ReleaseReply> {
  return { ...lock.release(before, operation, nowMs), wake: false }
}

/** Takes the lock from the owners that were seen. */
export function force(before: KeyState, operation: Force<string>, nowMs: number): Step<ForceReply> {
  return { ...lock.force(before, operation, nowMs), wake: false }
}
