import { randomBytes } from 'node:crypto'

const BYTES = 16

/** An owner of so many permits: their new ids, joined. */
export function newPermits(count: number): string {
  const hex = randomBytes(BYTES * count).toString('hex')
  return (hex.match(/.{32}/g) ?? []).join(',')
}

/** As many new permits as an owner had. */
export function permitsInstead(owner: string): string {
  return newPermits(owner.split(',').length)
}

/** An owner for messages: its first id, and how many more there are. */
export function shownPermits(owner: string): string {
  const [first = '', ...more] = owner.split(',')
  return more.length === 0 ? first : `${first}+${String(more.length)}`
}
