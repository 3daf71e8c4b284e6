import type { Clock, Timer } from '../clock.js'
import type { Call } from './call.js'
import type { Member } from './member.js'
import type { Runtime } from './runtime.js'
import { kindOf } from './target.js'
import { publishWait } from './wait.js'

/** A caller in the line. */
interface Entry {
  readonly keys: ReadonlySet<string>
  /** Told when nobody before it wants any of the same locks; undefined: it was told. */
  tell: (() => void) | undefined
}

/**
 * The callers of one process that are taking several locks as one: where these overlap, one is at it at a time, so
 * that they do not take each other's away one by one. Each turn is short, and whoever gets nowhere goes to the tail.
 */
export class MultiLine {
  readonly #clock: Clock
  readonly #onEmpty: () => void
  readonly #entries: Entry[] = []

  constructor(clock: Clock, onEmpty: () => void) {
    this.#clock = clock
    this.#onEmpty = onEmpty
  }

  /** The line of a process. */
  static of(runtime: Runtime): MultiLine {
    return runtime.gathering('multi', (onEmpty) => new MultiLine(runtime.clock, onEmpty))
  }

  /** Waits for a turn; the function ends it. Undefined: the waiting is over. @throws the reason why the call ended */
  async turn(call: Call, members: readonly Member[]): Promise<(() => void) | undefined> {
    const entry: Entry = { keys: new Set(members.map(keyOf)), tell: undefined }
    const free = this.#isFree(entry)
    this.#entries.push(entry)
    const leave = (): void => {
      this.#leave(entry)
    }
    if (free) return leave
    publishWait(call)
    if (await this.#wait(call, entry)) return leave
    leave()
    if (call.fired) throw call.reason
    return undefined
  }

  #wait(call: Call, entry: Entry): Promise<boolean> {
    return new Promise((resolve) => {
      let timer: Timer | undefined = undefined
      const settle = (mine: boolean): void => {
        timer?.cancel()
        call.listen(undefined)
        entry.tell = undefined
        resolve(mine)
      }
      entry.tell = () => {
        settle(true)
      }
      const waitMs = call.deadlineMs - this.#clock.now()
      if (waitMs !== Infinity)
        timer = this.#clock.setTimer(
          () => {
            settle(false)
          },
          waitMs,
          true,
        )
      call.listen(() => {
        settle(false)
      })
    })
  }

  /** Whether nobody before it wants any of the same locks. */
  #isFree(entry: Entry): boolean {
    for (const other of this.#entries) {
      if (other === entry) return true
      for (const key of entry.keys) if (other.keys.has(key)) return false
    }
    return true
  }

  #leave(entry: Entry): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1)
    for (const other of [...this.#entries]) if (other.tell !== undefined && this.#isFree(other)) other.tell()
    if (this.#entries.length === 0) this.#onEmpty()
  }
}

function keyOf({ runtime, target, key }: Member): string {
  return key ?? `${runtime.clientId} ${kindOf(target).keyspace} ${target.name}`
}
