/** What one section does to the resource behind one lock: sets a canary, reads; writes, and takes the canary out. */
import type { GuardedValue, Lease } from '../../src/index.js'
import type { CallEvent } from './history.js'
import { now } from './journal.js'
import type { Store } from './store.js'

/** What a visit needs. */
export interface VisitParts {
  readonly call: string
  readonly name: string
  /** As the server shows it. */
  readonly owner: string
  /** The one that decides whether to write. */
  readonly lease: Lease
  readonly store: Store
  /** The value behind a fence, which is written whether the lease is held or not. */
  readonly guarded: GuardedValue | undefined
  readonly tell: (event: CallEvent) => void
}

/** The resource may be out of reach; then the section goes on without it. */
export class Visit {
  readonly #parts: VisitParts
  #entered = false

  constructor(parts: VisitParts) {
    this.#parts = parts
  }

  async enter(): Promise<void> {
    const { name, owner, store, tell } = this.#parts
    try {
      const from = now()
      const found = await store.enter(name, owner)
      tell({ is: 'entered', from, found })
      tell({ is: 'read', saw: await this.#read() })
      this.#entered = true
    } catch (error) {
      this.#failed(error)
    }
  }

  async leave(): Promise<void> {
    if (!this.#entered) return
    const { name, owner, store, tell } = this.#parts
    try {
      await this.#write()
      const from = now()
      const intact = await store.leave(name, owner)
      tell({ is: 'left', from, intact })
    } catch (error) {
      // The write is told as one without an answer.
      this.#failed(error)
    }
  }

  async #read(): Promise<string> {
    const { name, lease, store, guarded } = this.#parts
    return guarded === undefined ? store.read(name) : ((await guarded.read(tokenOf(lease) ?? 0)) ?? '')
  }

  async #write(): Promise<void> {
    const { call, name, lease, store, guarded, tell } = this.#parts
    if (guarded !== undefined) {
      const token = tokenOf(lease) ?? 0
      tell({ is: 'write', fenced: true })
      await guarded.write(token, call)
    } else if (isHeld(lease)) {
      tell({ is: 'write' })
      await store.write(name, call)
    } else return
    tell({ is: 'wrote' })
  }

  #failed(error: unknown): void {
    if (codeOf(error) === 'HOLDFAST_STALE_TOKEN') this.#parts.tell({ is: 'stale' })
  }
}

/** Of a fenced lock. */
export function tokenOf(lease: Lease): number | undefined {
  return 'token' in lease && typeof lease.token === 'number' ? lease.token : undefined
}

function isHeld(lease: Lease): boolean {
  try {
    lease.assertHeld()
    return true
  } catch {
    return false
  }
}

/** Told apart by code, not by class: the library may be another copy. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
