import type { RawReply } from './port.js'

/**
 * Brings a reply of any client into the port's form. Integers must be numbers or bigints here; where a
 * client hands them over as strings, {@link normaliseTyped} is needed.
 */
export function normalise(reply: unknown): RawReply {
  if (isPlain(reply)) return reply
  if (Array.isArray(reply)) return normaliseList(reply)
  return fromOther(reply)
}

/**
 * Like {@link normalise} for clients that give integers as strings (`stringNumbers`): they were asked for
 * Buffers, so that what is a string must be an integer.
 */
export function normaliseTyped(reply: unknown): RawReply {
  if (typeof reply === 'string') return Number(reply)
  if (Array.isArray(reply)) return reply.map(normaliseTyped)
  return normalise(reply)
}

/** The value in a reply to CONFIG GET; undefined: no setting of that name. */
export function settingIn(reply: RawReply): string | undefined {
  const value = Array.isArray(reply) ? (reply as readonly RawReply[])[1] : undefined
  return typeof value === 'string' ? value : undefined
}

function isPlain(reply: unknown): reply is null | number | string {
  return typeof reply === 'number' || typeof reply === 'string' || reply === null
}

function normaliseList(list: readonly unknown[]): readonly RawReply[] {
  return list.every(isPlain) ? list : list.map(normalise)
}

function fromOther(reply: unknown): RawReply {
  if (reply === undefined) return null
  if (typeof reply === 'bigint') return Number(reply)
  if (typeof reply === 'boolean') return reply ? 1 : 0
  if (Buffer.isBuffer(reply) || reply instanceof String) return reply.toString()
  if (reply instanceof Error) throw reply
  if (reply instanceof Map) return normaliseList([...reply].flat())
  if (reply instanceof Set) return normaliseList([...reply])
  if (typeof reply === 'object') return normaliseList(Object.entries(reply as object).flat())
  throw new TypeError(`A reply of type ${typeof reply} is not known`)
}
