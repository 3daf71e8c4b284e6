/** What became of a request, and until when that is known. */
export interface RequestNote {
  /** What it added to the number, in decimal; or a word. */
  readonly note: string
  readonly endMs: number
}

/** Some of the notes, and the end of the one that stays longest. */
interface Part {
  readonly notes: ReadonlyMap<string, RequestNote>
  readonly endMs: number
}

/**
 * Notes of requests. A value like a map that is copied with each change, at a price that hardly grows with the number
 * of notes: they lie in parts, the oldest and largest first, and a new note is put together with those parts only
 * that are no larger than what it has grown to (the logarithmic method of Bentley and Saxe).
 */
export class Notes implements Iterable<readonly [request: string, note: RequestNote]> {
  readonly #parts: readonly Part[]
  /** What ends by then is not there any more. */
  readonly #nowMs: number

  constructor(parts: readonly Part[] = [], nowMs: number = -Infinity) {
    this.#parts = parts
    this.#nowMs = nowMs
  }

  /** Whether there are none. */
  get empty(): boolean {
    return this.#parts.length === 0
  }

  /** The note of a request. */
  get(request: string): string | undefined {
    for (let i = this.#parts.length - 1; i >= 0; i--) {
      const found = this.#parts[i]?.notes.get(request)
      if (found !== undefined) return found.endMs > this.#nowMs ? found.note : undefined
    }
    return undefined
  }

  /** These and one more, in the place of what the request had before. */
  with(request: string, note: RequestNote): Notes {
    const parts = [...this.#parts]
    let last: Part = { notes: new Map([[request, note]]), endMs: note.endMs }
    for (let before = parts.at(-1); before !== undefined; before = parts.at(-1)) {
      if (before.notes.size > last.notes.size) break
      parts.pop()
      // What is due may go where no older part has a note of the same request, which it hides.
      last = together([before, last], parts.length === 0 ? this.#nowMs : -Infinity)
    }
    return new Notes([...parts, last], this.#nowMs)
  }

  /** These without what is due. */
  at(nowMs: number): Notes {
    if (nowMs <= this.#nowMs) return this
    // A newer part may hide notes of an older one, and goes after it.
    const kept = this.#parts.findIndex(({ endMs }) => endMs > nowMs)
    return new Notes(kept < 0 ? [] : this.#parts.slice(kept), nowMs)
  }

  *[Symbol.iterator](): Iterator<readonly [string, RequestNote]> {
    const seen = new Set<string>()
    for (const { notes } of [...this.#parts].reverse())
      for (const [request, note] of notes) {
        if (!seen.has(request) && note.endMs > this.#nowMs) yield [request, note]
        seen.add(request)
      }
  }
}

/** Two parts in one, the older first, without what is due. */
function together([older, newer]: readonly [Part, Part], nowMs: number): Part {
  const notes = new Map<string, RequestNote>()
  for (const [request, note] of older.notes)
    if (note.endMs > nowMs && !newer.notes.has(request)) notes.set(request, note)
  for (const [request, note] of newer.notes) if (note.endMs > nowMs) notes.set(request, note)
  let endMs = -Infinity
  for (const note of notes.values()) endMs = Math.max(endMs, note.endMs)
  return { notes, endMs }
}
