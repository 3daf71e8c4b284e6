import { EngineError } from '../engine/engine.js'
import type { Look } from '../engine/operations.js'
import { WrongTypeError } from '../errors.js'
import type { Runtime } from '../lease/runtime.js'
import { seen, type Seen } from './compare.js'
import type { Baseline } from './observer.js'

/** How long it is known what was handled, after the last process that watched has gone. */
const KEEP_MS = 86_400_000
const NOTES_PER_COMMAND = 200
const ABSENT = '-'

/** Where, and about what, notes are kept. */
export interface MarksSetting {
  /** The full name of the lock. */
  readonly name: string
  readonly title: string
  readonly pattern: string | undefined
  /** The notes live for at least three of these. */
  checkMs(): number
}

/**
 * What the handlers under a lock have handled, kept beside it in Redis, so that whoever gets the lock next finds
 * what happened in between.
 */
export class Marks {
  readonly #runtime: Runtime
  readonly #setting: MarksSetting
  readonly #prefix: string
  /** Tells that all keys that fit the pattern are noted. */
  readonly #flag: string

  constructor(runtime: Runtime, setting: MarksSetting) {
    const { pattern } = setting
    this.#runtime = runtime
    this.#setting = setting
    // With the length, so that no pattern's notes are taken for those of another one.
    this.#flag = pattern === undefined ? 'keys' : `pattern ${String(pattern.length)} ${pattern}`
    this.#prefix = `${this.#flag} `
  }

  /** What was handled. @throws EngineError, WrongTypeError */
  async read(): Promise<Baseline> {
    const { name, title } = this.#setting
    const reply = await this.#runtime.commands.ask({ op: 'watch.marks', name }, title)
    if (reply.outcome === 'foreign') throw new WrongTypeError(title, reply.key, 'the notes of a watch')
    const keys = new Map<string, Seen>()
    for (const [field, text] of reply.marks)
      if (field.startsWith(this.#prefix)) keys.set(field.slice(this.#prefix.length), this.#decode(text))
    return { keys, complete: reply.marks.has(this.#flag) && this.#setting.pattern !== undefined }
  }

  /** Notes what was seen first. @throws EngineError, WrongTypeError */
  async begin(view: Iterable<readonly [string, Seen]>, known: Baseline): Promise<void> {
    const atMs = this.#runtime.clock.wall()
    const notes = Array.from(view).flatMap(([key, { look }]) =>
      known.keys.has(key) ? [] : [this.#prefix + key, encode(look, atMs)],
    )
    // Last, so that it stands for all the others.
    await this.#write([...notes, this.#flag, '1'])
  }

  /** Notes that a change was handled, as it was seen at `atMs` of the wall clock. @throws EngineError, WrongTypeError */
  async handled(key: string, look: Look, atMs: number): Promise<void> {
    const gone = this.#setting.pattern === undefined ? ABSENT : ''
    await this.#write([this.#prefix + key, look.type === undefined ? gone : encode(look, atMs)])
  }

  /** Keeps the notes for some time longer. @throws EngineError, WrongTypeError */
  async keep(): Promise<void> {
    await this.#write([])
  }

  async #write(notes: readonly string[]): Promise<void> {
    const { name, title } = this.#setting
    const ttlMs = Math.max(KEEP_MS, Math.min(3 * this.#setting.checkMs(), Number.MAX_SAFE_INTEGER))
    for (let at = 0; at === 0 || at < notes.length; at += 2 * NOTES_PER_COMMAND) {
      const part = notes.slice(at, at + 2 * NOTES_PER_COMMAND)
      const reply = await this.#runtime.commands.ask({ op: 'watch.mark', name, ttlMs, notes: part }, title)
      if (reply.outcome === 'foreign') throw new WrongTypeError(title, reply.key, 'the notes of a watch')
    }
  }

  #decode(text: string): Seen {
    if (text === ABSENT) return seen({ type: undefined, mark: '', exact: true, ttlMs: -2 }, 0, 0)
    const [, exact, end, type, mark] = /^([01]) (\S+) (\S+) (.*)$/s.exec(text) ?? []
    if (mark === undefined)
      throw new EngineError(`A note of the watch of ${this.#setting.title} cannot be read: ${text}`, {
        kind: 'refused',
        outcome: 'not-applied',
      })
    const look = { type, mark, exact: exact === '1', ttlMs: -1 }
    if (end === ABSENT) return seen(look, 0, 0)
    const endMs = this.#runtime.clock.now() + Number(end) - this.#runtime.clock.wall()
    return { look, expiresFromMs: endMs, expiresByMs: endMs }
  }
}

/** With the end by the wall clock, the only one that processes share. */
function encode({ type, mark, exact, ttlMs }: Look, atMs: number): string {
  if (type === undefined) return ABSENT
  const end = ttlMs < 0 ? ABSENT : String(Math.ceil(atMs + ttlMs))
  return `${exact ? '1' : '0'} ${end} ${type} ${mark}`
}
