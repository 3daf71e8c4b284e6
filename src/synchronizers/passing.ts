/**
 * Whether smaller requests may pass by a larger one at the head of the line. Always would let the large one starve;
 * never would let a small one wait for ever whose caller holds what the large one waits for. So in turns: a second
 * open, then shut, twice as long each time.
 */
const OPEN_MS = 1_000
const LONGEST_SHUT_MS = 60_000

/** Whether passing is open, and for how long it stays so. */
export interface Passing {
  readonly open: boolean
  readonly restMs: number
}

/** What holds so long after the first one passed by. */
export function passingAfter(elapsedMs: number): Passing {
  let startMs = 0
  for (let shutMs = OPEN_MS; ; shutMs = Math.min(shutMs * 2, LONGEST_SHUT_MS)) {
    const shutAtMs = startMs + OPEN_MS
    if (elapsedMs < shutAtMs) return { open: true, restMs: shutAtMs - elapsedMs }
    startMs = shutAtMs + shutMs
    if (elapsedMs < startMs) return { open: false, restMs: startMs - elapsedMs }
  }
}
