/** What the actors do in the story, whatever the lock is. */
import { once } from 'node:events'
import type { MakeLock } from './cast.js'
import type { Scene } from './scene.js'

/** What came of a scene. */
export interface Verdict {
  readonly well: boolean
  readonly text: string
}

const LATE_LEASE_MS = 400
const LONG_LEASE_MS = 10_000
const SHORT_WORK_MS = 100
const STAY_MS = 300

/** A frees the lock only after its time ran out and B is inside; C wants the lock too. */
export async function lateRelease(scene: Scene, lockOf: MakeLock): Promise<Verdict> {
  const bIsInside = (): Promise<void> => scene.until(() => scene.isInside('B'))
  const freed = new AbortController()

  async function late(): Promise<void> {
    const lock = lockOf(scene, 'A', LATE_LEASE_MS)
    await lock.take()
    await scene.visit(lock, (signal) => scene.pause(SHORT_WORK_MS, signal))
    await lock.give(async () => {
      scene.tell('A', 'is paused')
      await bIsInside()
    })
    freed.abort()
  }

  async function rightful(): Promise<void> {
    await scene.until(() => scene.isInside('A'))
    await scene.use(lockOf(scene, 'B', LONG_LEASE_MS), async (signal) => {
      if (!freed.signal.aborted) await once(freed.signal, 'abort', { signal })
      await scene.pause(STAY_MS, signal)
    })
  }

  async function third(): Promise<void> {
    await bIsInside()
    await scene.use(lockOf(scene, 'C', LONG_LEASE_MS), (signal) => scene.pause(SHORT_WORK_MS, signal))
  }

  await scene.play(late, rightful, third)
  return judge(scene)
}

export interface WorkTimes {
  readonly leaseMs: number
  readonly workMs: number
}

/** A works longer than the lock lives unless it is renewed; B waits for it. */
export async function longWork(scene: Scene, lockOf: MakeLock, times: WorkTimes): Promise<Verdict> {
  const { leaseMs, workMs } = times

  async function worker(): Promise<void> {
    await scene.use(lockOf(scene, 'A', leaseMs), (signal) => scene.pause(workMs, signal))
  }

  async function waiter(): Promise<void> {
    await scene.until(() => scene.isInside('A'))
    await scene.use(lockOf(scene, 'B', leaseMs), (signal) => scene.pause(SHORT_WORK_MS, signal))
  }

  await scene.play(worker, waiter)
  return judge(scene)
}

function judge({ together }: Scene): Verdict {
  if (together === undefined) return { well: true, text: 'no two were ever inside together' }
  return { well: false, text: `${together.who} were inside together for ${together.ms.toFixed(0)} ms` }
}
