/** Something with a time at which it wants to be looked at. */
export interface Scheduled {
  dueAtMs: number
  /** Its place in the schedule; -1: in none. Written by {@link Schedule} only. */
  place: number
}

/** What is due when: a binary heap whose entries know their places, so that each can be moved or taken out. */
export class Schedule<T extends Scheduled> {
  readonly #items: T[] = []

  /** How many entries there are. */
  get size(): number {
    return this.#items.length
  }

  /** The entry that is due first. */
  get first(): T | undefined {
    return this.#items[0]
  }

  /** All entries, in no particular order. */
  entries(): readonly T[] {
    return [...this.#items]
  }

  /** Adds an entry, or moves one that is there. */
  put(item: T, dueAtMs: number): void {
    item.dueAtMs = dueAtMs
    if (item.place < 0) {
      item.place = this.#items.length
      this.#items.push(item)
    }
    this.#rise(item)
    this.#sink(item)
  }

  /** Takes an entry out; harmless when it is not there. */
  remove(item: T): void {
    const { place } = item
    if (place < 0) return
    item.place = -1
    const last = this.#items.pop()
    if (last === undefined || last === item) return
    this.#set(last, place)
    this.#rise(last)
    this.#sink(last)
  }

  #set(item: T, place: number): void {
    this.#items[place] = item
    item.place = place
  }

  #rise(item: T): void {
    while (item.place > 0) {
      const { place } = item
      const above = (place - 1) >> 1
      const parent = this.#items[above]
      if (parent === undefined || parent.dueAtMs <= item.dueAtMs) return
      this.#set(parent, place)
      this.#set(item, above)
    }
  }

  #sink(item: T): void {
    for (;;) {
      const { place } = item
      const left = this.#items[2 * place + 1]
      const right = this.#items[2 * place + 2]
      const child = right !== undefined && left !== undefined && right.dueAtMs < left.dueAtMs ? right : left
      if (child === undefined || child.dueAtMs >= item.dueAtMs) return
      const below = child.place
      this.#set(child, place)
      this.#set(item, below)
    }
  }
}
