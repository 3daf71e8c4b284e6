/** What the workers take turns on. */

export const KINDS = [
  'lock',
  'mutex',
  'fair',
  'fenced',
  'spin',
  'read-write',
  'permits',
  'multi',
  'red',
] as const

export type Kind = (typeof KINDS)[number]

/** An object by its kind and name. */
export interface Thing {
  readonly kind: Kind
  readonly name: string
  /** How many permits there are in all. */
  readonly permits?: number
  /** The locks of a multi-lock, in the order in which they may be taken one inside the other. */
  readonly members?: readonly Thing[]
}

/** One thing of each kind; a semaphore with one permit, which is a mutex, and one with several. */
export function thingsOf(kinds: readonly Kind[]): Thing[] {
  return kinds.flatMap((kind): Thing[] => {
    const name = `turns on a ${kind}`
    switch (kind) {
      case 'permits':
        return [
          { kind, name: 'turns on one permit', permits: 1 },
          { kind, name: 'turns on 3 permits', permits: 3 },
        ]
      case 'multi':
        return [{ kind, name, members: membersOf(['lock', 'lock', 'mutex']) }]
      default:
        return [{ kind, name }]
    }
  })
}

function membersOf(kinds: readonly Kind[]): Thing[] {
  return kinds.map((kind, i) => ({ kind, name: `member ${String(i + 1)}` }))
}

/** The things themselves and those that they are made of. */
export function judgedOf(things: readonly Thing[]): Thing[] {
  return things.flatMap((thing) => [thing, ...(thing.members ?? [])])
}

/** What can be seen on the one server. A majority of several is not to be seen on one of them. */
export function seenOf(things: readonly Thing[]): Thing[] {
  return judgedOf(things).filter(({ kind, members }) => members === undefined && kind !== 'red')
}

/** Several may hold it at once. */
export function isShared(thing: Thing | undefined): boolean {
  return thing?.kind === 'read-write' || (thing?.permits ?? 1) > 1
}
