/** The shortest pause before a look at an expiry; doubled while what was due does not come. */
const FLOOR_MS = 5
const CAP_MS = 5_000

/** When to look again because a permit expires then. */
export class ExpiryPlan {
  #atMs = Infinity
  #floorMs = FLOOR_MS
  /** A look at the last expiry was due, and nothing was told since. */
  #looked = false

  /** The engine has told how long it is until the next expiry; `Infinity`: none is known of. */
  told(nowMs: number, untilMs: number): void {
    if (untilMs > this.#floorMs) this.#floorMs = FLOOR_MS
    else if (this.#looked) this.#floorMs = Math.min(this.#floorMs * 2, CAP_MS)
    this.#looked = false
    this.#atMs = nowMs + Math.max(untilMs + 1, this.#floorMs)
  }

  /** How long it is until the look. */
  restMs(nowMs: number): number {
    return Math.max(0, this.#atMs - nowMs)
  }

  /** Whether the look is due; if so, it is done with. */
  due(nowMs: number): boolean {
    if (nowMs < this.#atMs) return false
    this.#atMs = Infinity
    this.#looked = true
    return true
  }
}
