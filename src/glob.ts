/**
 * Redis' glob patterns, over bytes of UTF-8 as there: `*` anything, `?` one byte, `[abc]`, `[^abc]`, `[a-c]` one
 * of, or none of, a set, `\x` the character itself.
 */

interface Token {
  /** Whether a character fits; undefined: `*`. */
  readonly fits: ((character: string) => boolean) | undefined
}

/** Why a pattern is probably not what its author meant, or undefined. */
export function globMistake(pattern: string): string | undefined {
  const characters = bytesOf(pattern)
  for (let at = 0; at < characters.length; at += 1) {
    if (characters[at] === '[') {
      const set = setAt(characters, at)
      if (set === undefined) return "its '[' is never closed"
      if (set.ranges.length === 0) return 'it has an empty set'
      at = set.end
    } else if (characters[at] === '\\') {
      if (at === characters.length - 1) return 'it ends with a backslash'
      at += 1
    }
  }
  return undefined
}

/** A pattern that fits this text and no other. */
export function globEscape(text: string): string {
  return text.replace(/[\\*?[\]^]/g, '\\$&')
}

/** Tells whether a text fits a pattern that has no mistake. */
export function globMatcher(pattern: string): (text: string) => boolean {
  const tokens = tokensOf(pattern)
  return (text) => fits(tokens, bytesOf(text))
}

function fits(tokens: readonly Token[], text: readonly string[]): boolean {
  let [token, at, star, retry] = [0, 0, -1, 0]
  while (at < text.length) {
    const current = tokens[token]
    if (current !== undefined && current.fits === undefined) {
      star = token
      token += 1
      retry = at
    } else if (current?.fits?.(text[at] ?? '') === true) {
      token += 1
      at += 1
    } else if (star >= 0) {
      // The last star takes one character more.
      retry += 1
      at = retry
      token = star + 1
    } else return false
  }
  return tokens.slice(token).every((rest) => rest.fits === undefined)
}

function tokensOf(pattern: string): readonly Token[] {
  const tokens: Token[] = []
  const characters = bytesOf(pattern)
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? ''
    if (character === '*') tokens.push({ fits: undefined })
    else if (character === '?') tokens.push({ fits: () => true })
    else if (character === '[') {
      const set = setAt(characters, at)
      if (set === undefined) return tokens
      tokens.push({ fits: (other) => isIn(set, other) })
      at = set.end
    } else {
      const literal = character === '\\' ? characters[(at += 1)] : character
      tokens.push({ fits: (other) => other === literal })
    }
  }
  return tokens
}

/** A character for each byte. */
function bytesOf(text: string): readonly string[] {
  return Array.from(Buffer.from(text).toString('latin1'))
}

interface CharacterSet {
  /** Where its `]` stands. */
  readonly end: number
  readonly not: boolean
  readonly ranges: readonly (readonly [from: string, to: string])[]
}

/** The set that begins here, read as Redis does; undefined: it has no end. */
function setAt(pattern: readonly string[], start: number): CharacterSet | undefined {
  const not = pattern[start + 1] === '^'
  const ranges: (readonly [string, string])[] = []
  for (let at = start + (not ? 2 : 1); at < pattern.length; at += 1) {
    const [first = '', second, third] = pattern.slice(at, at + 3)
    if (first === ']') return { end: at, not, ranges }
    if (first === '\\' && second !== undefined) {
      ranges.push([second, second])
      at += 1
    } else if (second === '-' && third !== undefined) {
      // Whatever comes third, be it a bracket, is the end of the range.
      ranges.push(first <= third ? [first, third] : [third, first])
      at += 2
    } else ranges.push([first, first])
  }
  return undefined
}

function isIn({ not, ranges }: CharacterSet, character: string): boolean {
  return ranges.some(([from, to]) => from <= character && character <= to) !== not
}
