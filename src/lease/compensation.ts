import type { Clock } from '../clock.js'
import { diagnose } from '../diagnostics.js'
import { newPassage } from '../engine/engine.js'
import type { Operation } from '../engine/operations.js'
import { nextPause, type Commands } from './commands.js'
import { kindOf, shownOwner, type ReleaseOperation, type Target } from './target.js'
import type { Tenure } from './tenure.js'

/** How long an ended owner's late acquires are refused. What is later than that costs at most one lease. */
export const ENTOMB_MS = 60_000

const RETRY_MS = 50

/**
 * Undoes in the background what may have been applied although its caller gave up: releases the owner until
 * the server has answered, and leaves a tombstone, so that a late copy of the acquire finds its owner dead.
 */
export class Compensations {
  readonly #commands: Commands
  readonly #clock: Clock
  readonly #running = new Set<Promise<void>>()
  #closed = false

  constructor(commands: Commands, clock: Clock) {
    this.#commands = commands
    this.#clock = clock
  }

  /** How many are under way. */
  get size(): number {
    return this.#running.size
  }

  /** Undoes an acquire of unknown outcome. */
  acquire(target: Target, owner: string, leaseMs: number): void {
    diagnose(
      target.title,
      'compensating',
      `The acquire of ${shownOwner(target, owner)} has an unknown outcome and is undone`,
    )
    const operation = kindOf(target).release(target, owner, { keepMs: 0, entombMs: ENTOMB_MS })
    this.#start(() => operation, leaseMs + ENTOMB_MS)
  }

  /** Ends an owner that gave up waiting, in the queue and wherever else it may be. */
  abandon(operation: Operation, forMs: number): void {
    this.#start(() => operation, forMs)
  }

  /** Goes on with a release that got no answer, until the key must have expired by itself. */
  release(tenure: Tenure, entombMs: number): void {
    diagnose(
      tenure.target.title,
      'compensating',
      `The release of ${tenure.shown} got no answer and is repeated`,
    )
    const restMs = Math.max(tenure.deadlineMs - this.#clock.now(), 0)
    this.#start(() => endOperation(tenure, entombMs), restMs + ENTOMB_MS)
  }

  /** Does anything else in the background; what it rejects with is of no use to anybody any more. */
  background(title: string, message: string, work: () => Promise<unknown>): void {
    diagnose(title, 'compensating', message)
    const run = work()
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  /** Resolves when everything is undone, or given up because of `close`. */
  async settled(): Promise<void> {
    await Promise.all(this.#running)
  }

  /** Gives up what is not undone. */
  close(): void {
    this.#closed = true
  }

  #start(operation: () => Operation, forMs: number): void {
    const run = this.#run(operation, this.#clock.now() + forMs).finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  async #run(operation: () => Operation, untilMs: number): Promise<void> {
    for (let pauseMs = RETRY_MS; !this.#closed && this.#clock.now() < untilMs; pauseMs = nextPause(pauseMs)) {
      try {
        const deadlineMs = this.#clock.now() + this.#commands.timeoutMs
        await this.#commands.send(operation(), newPassage(), { deadlineMs, keepAlive: false })
        return
      } catch {
        await this.#commands.pause(pauseMs, false)
      }
    }
  }
}

/** The end of a tenure as it has to be asked for now: what is left of `minHold` becomes less with each repetition. */
export function endOperation(tenure: Tenure, entombMs: number): ReleaseOperation {
  return kindOf(tenure.target).release(tenure.target, tenure.owner, { keepMs: tenure.keepMs, entombMs })
}
