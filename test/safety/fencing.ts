/** Tokens of fenced locks, and the store that refuses those who come too late. */
import { byBase } from './canary.js'
import type { Finding } from './findings.js'
import { excusesOf } from './ownership.js'
import type { Hold, Story } from './story.js'

/** Each token is above those of all who were granted before; one owner may keep its own. */
export function checkTokens(story: Story): Finding[] {
  return locksOf(story).flatMap((lock) => {
    const found: Finding[] = []
    let highest: Hold | undefined
    for (const hold of story.of(lock).filter((candidate) => excusesOf(story, candidate).length === 0)) {
      if (highest !== undefined && !grows(highest, hold)) found.push(lower(highest, hold))
      if (tokenOf(hold) > tokenOf(highest)) highest = hold
    }
    return found
  })
}

function grows(before: Hold, after: Hold): boolean {
  return before.owner === after.owner ? tokenOf(after) >= tokenOf(before) : tokenOf(after) > tokenOf(before)
}

function tokenOf(hold: Hold | undefined): number {
  return hold?.token ?? 0
}

function lower(before: Hold, after: Hold): Finding {
  return {
    check: 'token',
    lock: after.lock,
    at: after.grantedAt,
    calls: [before.call, after.call],
    what: `call ${after.call} has token ${String(tokenOf(after))} after ${before.call} with ${String(tokenOf(before))}`,
  }
}

/** Whoever held the lock when: of the acknowledged writes no two are on top of the same one. */
export function checkFence(story: Story): Finding[] {
  return locksOf(story).flatMap((lock) => {
    const written = story.of(lock).filter(({ fenced, wroteAt }) => fenced && wroteAt !== undefined)
    return byBase(written)
      .filter((group) => group.length > 1)
      .map((group) => ({
        check: 'fence',
        lock,
        at: Math.max(...group.map(({ wroteAt = 0 }) => wroteAt)),
        calls: group.map(({ call }) => call),
        what: `the fence let calls ${group.map(({ call }) => call).join(' and ')} write on top of the same update`,
      }))
  })
}

function locksOf({ terms }: Story): string[] {
  return terms.locks.filter(({ kind }) => kind === 'fenced').map(({ name }) => name)
}
