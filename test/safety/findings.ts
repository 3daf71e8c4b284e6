/** What a check found. */
export interface Finding {
  readonly check: Check
  readonly lock: string | undefined
  /** Where in the history to look. */
  readonly at: number
  readonly what: string
  /** The calls that it is about. */
  readonly calls: readonly string[]
  /** How long the forbidden state lasted, where that has a meaning. */
  readonly ms?: number | undefined
}

/** The checks, each with the promise that it is about. */
export const CHECKS = {
  overlap: 'no two owners believe in one lock at the same time, nor in more permits than there are',
  server: 'who believes in a lock has it on the server',
  theft: 'no lease is taken away without force',
  revival: 'a lease that was lost stays lost',
  canary: 'nobody is inside when a holder enters or leaves',
  update: 'no update of a holder is lost',
  token: 'tokens of a fenced lock grow in the order of grants',
  fence: 'a store behind a fence loses no update, whoever writes',
  order: 'a fair lock serves in the order of its queue',
  lateness: 'the loss is told before anybody else can be granted',
  regrant: 'after each fault somebody is granted again',
  waiting: 'every call is answered in time',
  final: 'at the end every worker gets every lock once more',
  ghost: 'a call that gave up leaves no lock and no place in a queue behind',
  count: 'hold counts are not above what the holder knows of',
  exit: 'workers end by themselves and leave nothing pending',
  remains: 'nothing is left but tombstones with a TTL, counters, and all permits',
  coverage: 'the run has done what it is for',
} as const

export type Check = keyof typeof CHECKS
