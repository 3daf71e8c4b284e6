/** The third step of the story: a lock that is taken inside itself. */
import type { Cast } from './cast.js'
import { shortOwner } from './page.js'
import { UnrenewedLock } from './plain-lock.js'
import type { Scene } from './scene.js'

export interface Nesting {
  /** How long the inner function waited for the lock. */
  readonly waitedMs: number
  /** Whether the outer one still held it then. */
  readonly outerHeld: boolean
}

const LEASE_MS = 1_000

export async function nestedByHand(scene: Scene, cast: Cast): Promise<Nesting> {
  const lockOf = cast.plain(UnrenewedLock)
  const outer = lockOf(scene, 'A', LEASE_MS)
  await outer.take()
  scene.tell('A', 'outer() calls inner()')
  const startedAt = performance.now()
  const inner = lockOf(scene, 'A', LEASE_MS)
  await inner.take()
  // The server let it in, so nobody had the lock any more.
  const nesting = { waitedMs: performance.now() - startedAt, outerHeld: false }
  await inner.give()
  await outer.give()
  return nesting
}

export async function nestedInHoldfast(scene: Scene, cast: Cast): Promise<Nesting> {
  const lock = cast.holdfast('A').lock(cast.lockName)
  const nesting = await lock.using(async (outer) => {
    scene.tell('A', 'lock.using() in outer()', await hashOf(cast))
    scene.tell('A', 'outer() calls inner()')
    const startedAt = performance.now()
    const inside = await lock.using(async () => {
      const waitedMs = performance.now() - startedAt
      scene.tell('A', 'lock.using() in inner()', await hashOf(cast))
      return { waitedMs, outerHeld: outer.held }
    })
    scene.tell('A', 'inner() is over', await hashOf(cast))
    return inside
  })
  scene.tell('A', 'outer() is over', await hashOf(cast))
  return nesting
}

async function hashOf({ looker, key }: Cast): Promise<string> {
  const fields = Object.entries(await looker.hgetall(key))
  return `{${fields.map(([owner, holds]) => `${shortOwner(owner)}: ${holds}`).join(', ')}}`
}
