/** What a proxy does to requests and replies: predicates, gates, and the set of rules of one proxy. */
import { eventually } from './eventually.js'
import type { Value } from './resp.js'

/** A whole command of a client. */
export interface Request {
  /** Counts the client connections of the proxy, from 1. */
  readonly connection: number
  /** The command's name in capitals. */
  readonly name: string
  /** The whole command, name included. */
  readonly words: readonly string[]
  readonly bytes: Buffer
}

/** A whole reply, or a published message (then without `request`). */
export interface Reply {
  readonly connection: number
  readonly request: Request | undefined
  readonly value: Value
  readonly bytes: Buffer
}

/** A name (`'EVALSHA'`), a pattern over the words joined by spaces, or a function. */
export type Match = string | RegExp | ((request: Request) => boolean)

/** Like {@link Match} for the request that is answered; a function looks at the reply. */
export type ReplyMatch = string | RegExp | ((reply: Reply) => boolean)

export function toPredicate(match?: Match): (request: Request) => boolean {
  if (match === undefined) return () => true
  if (typeof match === 'function') return match
  if (typeof match === 'string') return (request) => request.name === match.toUpperCase()
  return (request) => match.test(request.words.join(' '))
}

export function toReplyPredicate(match?: ReplyMatch): (reply: Reply) => boolean {
  if (match === undefined) return () => true
  if (typeof match === 'function') return match
  const predicate = toPredicate(match)
  return (reply) => reply.request !== undefined && predicate(reply.request)
}

type Verdict = 'pass' | 'drop'

interface HeldItem<T> {
  readonly item: T
  readonly decide: (verdict: Verdict) => void
}

/** Withholds what matches until told otherwise. */
export class Gate<T> {
  readonly #match: (item: T) => boolean
  readonly #held: HeldItem<T>[] = []
  #seen = 0
  #open = false

  constructor(match: (item: T) => boolean) {
    this.#match = match
  }

  /** What is withheld now, oldest first. */
  get held(): readonly T[] {
    return this.#held.map(({ item }) => item)
  }

  /** Resolves when so many have been withheld since the gate was set, whatever became of them; gives the last one. */
  async caught(count = 1): Promise<T | undefined> {
    await eventually(() => this.#seen >= count, `the gate holds ${count}`)
    return this.held.at(-1)
  }

  /** Lets go all that is held, and withholds nothing from now on. */
  release(): void {
    this.#open = true
    this.#decideAll('pass')
  }

  /** Lets go the oldest one; the gate stays shut. */
  releaseNext(): void {
    this.#held.shift()?.decide('pass')
  }

  /** Loses all that is held, without a word to anybody, and withholds nothing from now on. */
  drop(): void {
    this.#open = true
    this.#decideAll('drop')
  }

  /** For the proxy: resolves when the item may go on. */
  pass(item: T): Promise<Verdict> {
    if (this.#open || !this.#match(item)) return Promise.resolve('pass')
    this.#seen += 1
    return new Promise((decide) => this.#held.push({ item, decide }))
  }

  #decideAll(verdict: Verdict): void {
    for (const held of this.#held.splice(0)) held.decide(verdict)
  }
}

interface Delay {
  readonly ms: number
  readonly match: (request: Request) => boolean
}

interface Drop<T> {
  readonly match: (item: T) => boolean
  left: number
}

/** The rules of one proxy. */
export class Rules {
  mute = false
  requestDelays: Delay[] = []
  replyDelays: Delay[] = []
  requestGates: Gate<Request>[] = []
  replyGates: Gate<Reply>[] = []
  requestDrops: Drop<Request>[] = []
  replyDrops: Drop<Reply>[] = []

  clear(): void {
    this.mute = false
    for (const gate of [...this.requestGates, ...this.replyGates]) gate.release()
    this.requestDelays = []
    this.replyDelays = []
    this.requestGates = []
    this.replyGates = []
    this.requestDrops = []
    this.replyDrops = []
  }
}

/** The longest delay that applies. */
export function delayOf(delays: readonly Delay[], request: Request | undefined): number {
  if (request === undefined) return 0
  return Math.max(0, ...delays.filter(({ match }) => match(request)).map(({ ms }) => ms))
}

/** True if the item is to be dropped, which uses up one of the times. */
export function takeDrop<T>(drops: readonly Drop<T>[], item: T): boolean {
  const drop = drops.find(({ left, match }) => left > 0 && match(item))
  if (drop === undefined) return false
  drop.left -= 1
  return true
}

/** Asks all gates that are there when the item arrives, one after the other. */
export async function passGates<T>(gates: readonly Gate<T>[], item: T): Promise<Verdict> {
  for (const gate of [...gates]) {
    if ((await gate.pass(item)) === 'drop') return 'drop'
  }
  return 'pass'
}
