/** The Redis protocol, as far as tests need it: encode commands, find whole values in a stream, decode them. */

/** A decoded value. Maps come as flat arrays; error replies as `Error` objects. */
export type Value = null | number | bigint | boolean | string | Error | Value[]

const CR = 13

/** Encodes a command as an array of bulk strings. */
export function encode(command: readonly (string | Buffer)[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${command.length}\r\n`)]
  for (const word of command) {
    const bytes = Buffer.from(word)
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'))
  }
  return Buffer.concat(parts)
}

interface Parsed {
  readonly value: Value
  readonly end: number
}

/** Decodes the value that begins at `start`; undefined while it is not complete. */
export function parse(bytes: Buffer, start = 0): Parsed | undefined {
  const lineEnd = bytes.indexOf('\r\n', start)
  if (lineEnd < 0) return undefined
  const type = String.fromCharCode(bytes[start] ?? CR)
  const line = bytes.toString('utf8', start + 1, lineEnd)
  const next = lineEnd + 2
  if ('$=!'.includes(type)) return parseBulk(bytes, type, Number(line), next)
  if ('*~>'.includes(type)) return parseMany(bytes, Number(line), next)
  if (type === '%') return parseMany(bytes, Number(line) * 2, next)
  if (type === '|') return parseAttributed(bytes, Number(line) * 2, next)
  return { value: parseLine(type, line), end: next }
}

function parseBulk(bytes: Buffer, type: string, length: number, start: number): Parsed | undefined {
  if (length < 0) return { value: null, end: start }
  const end = start + length
  if (bytes.length < end + 2) return undefined
  const text = bytes.toString('utf8', start, end)
  return { value: type === '!' ? new Error(text) : text, end: end + 2 }
}

function parseMany(bytes: Buffer, count: number, start: number): Parsed | undefined {
  if (count < 0) return { value: null, end: start }
  const value: Value[] = []
  let end = start
  for (let i = 0; i < count; i++) {
    const item = parse(bytes, end)
    if (item === undefined) return undefined
    value.push(item.value)
    end = item.end
  }
  return { value, end }
}

function parseAttributed(bytes: Buffer, count: number, start: number): Parsed | undefined {
  const attributes = parseMany(bytes, count, start)
  return attributes === undefined ? undefined : parse(bytes, attributes.end)
}

function parseLine(type: string, line: string): Value {
  switch (type) {
    case '+':
      return line
    case '-':
      return new Error(line)
    case ':':
    case ',':
      return Number(line)
    case '(':
      return BigInt(line)
    case '#':
      return line === 't'
    case '_':
      return null
    default:
      // An inline command: a line of words.
      return (type + line).trim().split(/\s+/)
  }
}

/** One whole value of a stream, as bytes and decoded. */
export interface Frame {
  readonly bytes: Buffer
  readonly value: Value
}

/** Cuts a stream of chunks into whole values. */
export class Splitter {
  #rest: Buffer = Buffer.alloc(0)

  push(chunk: Buffer): Frame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const frames: Frame[] = []
    let start = 0
    for (let item = parse(this.#rest, start); item !== undefined; item = parse(this.#rest, start)) {
      frames.push({ bytes: this.#rest.subarray(start, item.end), value: item.value })
      start = item.end
    }
    this.#rest = this.#rest.subarray(start)
    return frames
  }
}
