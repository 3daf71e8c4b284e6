/** Which step of a lock a request on the wire is. */
import * as scripts from '../../../src/engine/redis/scripts.js'
import type { Reply, Request } from '../../support/proxy.js'
import type { Scene } from '../scene.js'

const STEPS = {
  acquire: [
    scripts.fairAcquire,
    scripts.lockAcquire,
    scripts.mutexAcquire,
    scripts.readAcquire,
    scripts.writeAcquire,
  ],
  leave: [scripts.lockLeave, scripts.readLeave],
  abandon: [scripts.fairAbandon],
  release: [
    scripts.fairRelease,
    scripts.lockRelease,
    scripts.mutexRelease,
    scripts.readRelease,
    scripts.writeRelease,
  ],
  renew: [scripts.lockRenew, scripts.mutexRenew, scripts.readRenew],
} as const

/** A step of a lock or a mutex. */
export type Step = keyof typeof STEPS

/** A script call of this step, of any lock or of the one under this key. */
export function sends(step: Step, key?: string): (request: Request) => boolean {
  const known = new Set(STEPS[step].flatMap(({ script: { sha, source } }) => [sha, source]))
  return (request) => {
    if (!request.name.startsWith('EVAL') || !known.has(request.words[1] ?? '')) return false
    return key === undefined || keysOf(request).includes(key)
  }
}

/** The reply to a script call of this step. */
export function answers(step: Step, key?: string): (reply: Reply) => boolean {
  const sent = sends(step, key)
  return ({ request }) => request !== undefined && sent(request)
}

/** The keys of a script call. */
export function keysOf({ words }: Request): readonly string[] {
  return words.slice(3, 3 + Number(words[2]))
}

/** Teaches the server all scripts, so that every step is a single EVALSHA. */
export async function teach(scene: Scene): Promise<void> {
  for (const { script } of Object.values(STEPS).flat()) await scene.command('SCRIPT', 'LOAD', script.source)
}
