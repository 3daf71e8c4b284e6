import { AsyncLocalStorage } from 'node:async_hooks'
import type { HeldLease } from './lease.js'
import { sameLock, type Target } from './target.js'

/**
 * One step of the path that led to the running code: a lease whose callback it runs in (`entered`), or one
 * that the same async tree took by `acquire()` and may still hold (`bare`).
 */
export interface ScopeNode {
  parent: ScopeNode | undefined
  readonly kind: 'entered' | 'bare'
  readonly target: Target
  /** Undefined while a bare acquire has not been granted; null: it came to nothing. */
  lease: HeldLease | null | undefined
  /** Where `acquire()` was called. */
  readonly site: CallSite | undefined
}

/** A call site, formatted only when it is asked for. */
export class CallSite {
  readonly #holder: { readonly stack?: string } = {}
  readonly #ours: number

  /** Remembers the current stack. `ours`: so many of its frames are the library's own, if their files do not tell. */
  constructor(ours: number, depth: number = ours + 1) {
    this.#ours = ours
    const limit = Error.stackTraceLimit
    // No deeper than needed: this is on the path of every acquire.
    Error.stackTraceLimit = depth
    Error.captureStackTrace(this.#holder, CallSite)
    Error.stackTraceLimit = limit
  }

  /** The caller's line. */
  toString(): string {
    const { stack } = this.#holder
    // Programs may put a formatter of their own in place, which gives anything.
    if (typeof stack !== 'string') return 'an unknown place'
    const lines = stack.split('\n').filter((line) => line.trimStart().startsWith('at '))
    const folder = /([^\s(]*)lease[\\/][^\\/]+$/.exec(lines[0] ?? '')?.[1]
    const foreign = folder === undefined ? undefined : lines.find((line) => !line.includes(folder))
    return (foreign ?? lines[this.#ours])?.trim().replace(/^at /, '') ?? 'an unknown place'
  }
}

/** `noteBare`, the lock's private method, and `acquire` or `tryAcquire` itself. */
const BARE_FRAMES = 3
const TRACE_EVERY_MS = 1

/** The scopes of one `Holdfast`: which leases the running code is inside of. Never required to be there. */
export class Scope {
  readonly #storage = new AsyncLocalStorage<ScopeNode>()
  #tracedAtMs = -Infinity
  #closed = false

  /** Where the running code is. */
  get current(): ScopeNode | undefined {
    return this.#storage.getStore()
  }

  /** Whether the running code is inside of any lease that is live. */
  get inside(): boolean {
    for (let node = this.current; node !== undefined; node = node.parent)
      if (node.kind === 'entered' && node.lease?.live === true) return true
    return false
  }

  /** The innermost live lease of the same lock that the running code is inside of, and that fits. */
  find(target: Target, fits: (lease: HeldLease) => boolean = () => true): HeldLease | undefined {
    for (let node = this.current; node !== undefined; node = node.parent) {
      if (node.kind !== 'entered' || !sameLock(node.target, target)) continue
      if (node.lease?.live === true && fits(node.lease)) return node.lease
    }
    return undefined
  }

  /** Runs a callback inside a lease. */
  enter<T>(lease: HeldLease, target: Target, callback: () => T): T {
    if (this.#closed) return callback()
    const node: ScopeNode = { parent: alive(this.current), kind: 'entered', target, lease, site: undefined }
    return this.#storage.run(node, callback)
  }

  /**
   * Notes that the calling async tree takes a lock by `acquire()`. Must run in the caller's own turn, so that
   * what the caller does next inherits the note. The store is ours alone: no context of the user changes.
   */
  noteBare(target: Target, nowMs: number): ScopeNode | undefined {
    if (this.#closed) return undefined
    // A stack trace takes about as long as all the rest: under heavy load one a millisecond must do.
    const traced = nowMs - this.#tracedAtMs >= TRACE_EVERY_MS
    if (traced) this.#tracedAtMs = nowMs
    const site = traced ? new CallSite(BARE_FRAMES) : undefined
    const node: ScopeNode = { parent: alive(this.current), kind: 'bare', target, lease: undefined, site }
    this.#storage.enterWith(node)
    return node
  }

  /** Forgets all paths for good: each storage in use makes every promise of the process dearer. */
  close(): void {
    this.#closed = true
    this.#storage.disable()
  }

  /** A bare lease of the same lock that this tree had before `from` was reached. */
  bareHolder(
    target: Target,
    from: ScopeNode | undefined,
    fits: (holder: Target) => boolean = () => true,
  ): ScopeNode | undefined {
    for (let node = from; node !== undefined; node = node.parent) {
      if (node.kind !== 'bare' || !sameLock(node.target, target)) continue
      if (node.lease?.live === true && fits(node.target)) return node
    }
    return undefined
  }
}

/** The nearest node that can still matter. The path behind it is cleared, too: that of a long loop must not grow. */
function alive(node: ScopeNode | undefined): ScopeNode | undefined {
  const nearest = skipOver(node)
  for (let at = nearest; at !== undefined; at = at.parent) at.parent = skipOver(at.parent)
  return nearest
}

function skipOver(node: ScopeNode | undefined): ScopeNode | undefined {
  let current = node
  while (current?.lease !== undefined && current.lease?.live !== true) current = current.parent
  return current
}
