/** Waiting for a state, with a deadline that only says when to give up. */
import { setTimeout as sleep } from 'node:timers/promises'

const GIVE_UP_MS = 15_000
const STEP_MS = 5

/** Polls until the condition holds. Rejects with the description after 15 s, or so long. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string,
  giveUpMs = GIVE_UP_MS,
): Promise<void> {
  const deadline = performance.now() + giveUpMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`never came true: ${what}`)
    await sleep(STEP_MS)
  }
}
