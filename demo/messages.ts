/** What the demo and its worker processes tell each other. */

/** What a worker needs to know about the server. */
export interface WorkerSettings {
  readonly label: string
  readonly url: string
  readonly keyPrefix: string
  readonly watchdogMs: number
}

export type Order =
  | ({ readonly order: 'connect' } & WorkerSettings)
  | ({ readonly order: 'turn' } & TurnOrder)
  | ({ readonly order: 'count' } & CountOrder)

/** Hold the lock once. */
export interface TurnOrder {
  readonly lock: string
  readonly workMs: number
}

/** Add one many times. */
export interface CountOrder {
  readonly counter: string
  /** Undefined: without a lock. */
  readonly lock: string | undefined
  readonly times: number
  readonly pauseMs: number
}

export type Report =
  | { readonly report: 'ready'; readonly at: number; readonly pid: number }
  | ({ readonly report: 'event' } & WorkerEvent)
  | { readonly report: 'counted'; readonly times: number }
  | { readonly report: 'finished' }
  | { readonly report: 'failed'; readonly message: string }

export interface WorkerEvent {
  readonly at: number
  readonly what: EventName
  readonly detail: string
}

export type EventName = 'wants' | 'waits' | 'woken' | 'has it' | 'renewed' | 'done' | 'released' | 'lost'
