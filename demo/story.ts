/** Why each part of a lock is there: every step fails with plain commands first, and is then mended. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { RenewOkEvent } from '../src/index.js'
import { Cast } from './cast.js'
import { BlindLock, CheckingLock, UnrenewedLock } from './plain-lock.js'
import { nestedByHand, nestedInHoldfast, type Nesting } from './nesting.js'
import { Scene } from './scene.js'
import { lateRelease, longWork, type Verdict } from './scenes.js'
import type { Part } from './turns.js'

interface Step {
  readonly title: string
  readonly why: readonly string[]
  readonly fails: (scene: Scene) => Promise<Verdict>
  readonly mended: (scene: Scene) => Promise<Verdict>
}

const WATCHDOG_MS = 600
const LONG_WORK_MS = 1_200

/** True: with Holdfast every step went well. */
export async function tellStory({ stage, page, stop }: Part): Promise<boolean> {
  await using cast = await Cast.gather(stage, WATCHDOG_MS)
  const steps = stepsOf(cast)
  let well = true
  for (const [i, step] of steps.entries()) {
    page.heading(`${i + 1}  ${step.title}`)
    for (const line of step.why) page.line(`  ${line}`)
    const byHand = await step.fails(new Scene(page, 'by hand', stop))
    page.verdict(byHand.well, byHand.well ? `${byHand.text}, this time` : byHand.text)
    await cast.tidyUp()
    const mended = await step.mended(new Scene(page, 'with Holdfast', stop))
    page.verdict(mended.well, mended.text)
    await cast.tidyUp()
    well &&= mended.well
  }
  return well
}

function stepsOf(cast: Cast): readonly Step[] {
  const times = { leaseMs: WATCHDOG_MS, workMs: LONG_WORK_MS }
  return [
    {
      title: 'Freeing a lock that is somebody else’s by now',
      why: [
        'SET … NX PX takes the lock, DEL frees it. A is late: it pauses before its DEL, and',
        'meanwhile its time runs out and B gets the lock.',
      ],
      fails: (scene) => lateRelease(scene, cast.plain(BlindLock)),
      mended: (scene) => lateRelease(scene, cast.leased),
    },
    {
      title: 'Looking first, in a step of its own',
      why: ['Now A looks whether the lock is still its own. It is; but A pauses between GET and DEL.'],
      fails: (scene) => lateRelease(scene, cast.plain(CheckingLock)),
      mended: (scene) => lateRelease(scene, cast.leased),
    },
    {
      title: 'A function that takes the lock calls another one that takes it too',
      why: ['outer() holds the lock and calls inner(), which needs the same lock.'],
      fails: async (scene) => judgeNesting(await nestedByHand(scene, cast)),
      mended: async (scene) => judgeNesting(await nestedInHoldfast(scene, cast)),
    },
    {
      title: 'Work that takes longer than the lock lives',
      why: [
        `The lock lives ${WATCHDOG_MS} ms, so that it does not outlive a process that crashes for long;`,
        `but the work takes ${LONG_WORK_MS} ms.`,
      ],
      fails: (scene) => longWork(scene, cast.plain(UnrenewedLock), times),
      mended: (scene) => tellingRenewals(scene, cast, () => longWork(scene, cast.renewed, times)),
    },
  ]
}

async function tellingRenewals<T>(scene: Scene, cast: Cast, act: () => Promise<T>): Promise<T> {
  const told = (event: unknown): void => {
    const { slack } = event as RenewOkEvent
    scene.tell('A', 'the watchdog renews the lock', `${slack.toFixed(0)} ms were left`)
  }
  subscribe('holdfast:renew:ok', told)
  try {
    return await act()
  } finally {
    unsubscribe('holdfast:renew:ok', told)
  }
}

function judgeNesting({ waitedMs, outerHeld }: Nesting): Verdict {
  const waited = `inner() waited ${waitedMs.toFixed(1)} ms`
  return outerHeld
    ? { well: true, text: `${waited} for the lock, which outer() held throughout` }
    : { well: false, text: `${waited}, until the time of outer()'s own lock had run out` }
}
