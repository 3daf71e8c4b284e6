/** Histories of the safety run written by hand, and what its checks say of them. */
import { judge, judgeSoFar } from '../safety/checker.js'
import type { Check } from '../safety/findings.js'
import type { CallEvent, Entry, Holder, ProcessEvent, WorldEvent } from '../safety/history.js'
import { Story } from '../safety/story.js'
import { judgedOf, type Thing } from '../safety/things.js'

export const LOCK = 'stock'
export const TTL = 1_000
export const A = 'client-a:1'
export const B = 'client-b:1'

type Granted = Extract<CallEvent, { readonly is: 'granted' }>
type Invoked = Extract<CallEvent, { readonly is: 'invoke' }>

/** Times are milliseconds from its beginning. */
export class Chronicle {
  readonly entries: Entry[] = []
  readonly #things: readonly Thing[]

  constructor(things: readonly Thing[] = [{ kind: 'lock', name: LOCK }]) {
    this.#things = things
  }

  call(t: number, call: string, event: CallEvent): this {
    this.entries.push({ t, process: call.split('#')[0] ?? '', call, ...event })
    return this
  }

  process(t: number, process: string, event: ProcessEvent): this {
    this.entries.push({ t, process, ...event })
    return this
  }

  world(t: number, event: WorldEvent): this {
    this.entries.push({ t, process: 'world', ...event })
    return this
  }

  /** A call that is granted: `until` is the local deadline. */
  grant(t: number, call: string, owner: string, until: number = t + TTL - 12): this {
    return this.take(t, call, { owner, until })
  }

  /** The same with more details. */
  take(t: number, call: string, { owner, until = t + TTL - 12, token, ids, ...asked }: Taking): this {
    this.call(t - 1, call, { is: 'invoke', lock: LOCK, waitMs: null, ...asked })
    return this.call(t, call, { is: 'granted', owner, until, ttlMs: TTL, token, ids })
  }

  release(t: number, call: string, outcome = 'released'): this {
    return this.call(t, call, { is: 'release' }).call(t + 1, call, { is: 'released', outcome })
  }

  seen(t: number, owner: string | null, count = 1): this {
    return this.shows(t, owner === null ? [] : [{ field: owner, count }])
  }

  /** A look at the server. */
  shows(t: number, holders: readonly Holder[], queue?: readonly string[]): this {
    return this.world(t + 0.5, { is: 'seen', from: t, lock: LOCK, holders, queue })
  }

  fault(from: number, to: number, on: string | null = null): this {
    const id = this.entries.length
    return this.world(from, { is: 'fault', id, fault: 'links cut', on }).world(to, { is: 'heal', id })
  }

  wrote(t: number, call: string, saw: string, answered: number = t + 1): this {
    return this.call(t - 1, call, { is: 'read', saw })
      .call(t, call, { is: 'write' })
      .call(answered, call, { is: 'wrote' })
  }

  get story(): Story {
    const terms = { locks: judgedOf(this.#things), longestTtlMs: 5_000, commandTimeoutMs: 800 }
    return new Story(
      [...this.entries].sort((a, b) => a.t - b.t),
      terms,
    )
  }

  /** The checks that found something, each once. */
  get found(): Check[] {
    return [...new Set(judgeSoFar(this.story).map(({ check }) => check))]
  }

  /** The same of a complete history. */
  get foundAtEnd(): Check[] {
    const checks = judge(this.story).map(({ check }) => check)
    return [...new Set(checks)].filter((check) => check !== 'coverage')
  }
}

type Taking = Partial<Omit<Invoked, 'is'>> &
  Pick<Granted, 'owner'> &
  Partial<Pick<Granted, 'until' | 'token' | 'ids'>>
