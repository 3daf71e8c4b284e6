import { QuorumError, type MemberResult } from '../errors.js'
import type { HeldLease } from './lease.js'
import type { Runtime } from './runtime.js'
import type { Target } from './target.js'

/** A lock over several servers: the same re-entrant lock on each of them. */
export interface Red {
  readonly title: string
  readonly members: readonly RedMember[]
  /** So many of them decide. */
  readonly quorum: number
  /** How long one attempt waits for a member; undefined: a part of the lease time. */
  readonly memberTimeoutMs: number | undefined
  /** The same for the same lock on the same members. */
  readonly key: string
}

/** The lock on one server. */
export interface RedMember {
  readonly runtime: Runtime
  readonly target: Target
}

/** What one member answered. */
export interface Vote {
  readonly result: MemberResult
  /** Of a member that granted. */
  readonly lease?: HeldLease
  /** Of a member that is busy: the rest of its holder's time; -1: without an end. */
  readonly ttlMs?: number
}

const SHORTEST_MS = 50
const LONGEST_MS = 500

/** How long an attempt waits for a member: short against the lease, so that one that hangs does not use it up. */
export function memberTimeout(red: Red, leaseMs: number | undefined): number {
  if (red.memberTimeoutMs !== undefined) return red.memberTimeoutMs
  const part = leaseTimeOf(red, leaseMs) / 10
  const commandMs = Math.min(...red.members.map(({ runtime }) => runtime.settings.commandTimeout))
  return Math.min(commandMs, LONGEST_MS, Math.max(SHORTEST_MS, part))
}

/** The TTL that a grant begins with; without a lease time the shortest of the members' watchdogs counts. */
export function leaseTimeOf(red: Red, leaseMs: number | undefined): number {
  return leaseMs ?? Math.min(...red.members.map(({ runtime }) => runtime.settings.lockWatchdogTimeout))
}

/** The error when too few members have answered; a lock over one server fails as a plain one does. */
export function troubleOf(
  { title, quorum, size }: { readonly title: string; readonly quorum: number; readonly size: number },
  results: readonly MemberResult[],
): Error {
  const failed = results.find((result) => result.outcome === 'error')
  if (size === 1 && failed?.error instanceof Error) return failed.error
  return new QuorumError(title, quorum, results)
}
