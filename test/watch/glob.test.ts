import fc from 'fast-check'
import { expect, test } from 'vitest'
import { globEscape, globMatcher, globMistake } from '../../src/glob.js'
import { raw } from '../support/raw.js'
import { startRedis } from '../support/server.js'

const piece = fc.constantFrom('a', 'b', 'c', '-', '^', '*', '?', '[', ']', '\\', '[a-c]', '[^b]', '\\*', 'ü')
const texts = fc.sample(
  fc.string({
    unit: fc.constantFrom('a', 'b', 'c', '-', '^', '*', '?', '[', ']', '\\', 'ü'),
    minLength: 1,
    maxLength: 5,
  }),
  { numRuns: 400, seed: 7 },
)

test('patterns without a mistake mean what they mean to Redis', async () => {
  await using server = await startRedis()
  await using link = await raw(server.port)
  await link.command('MSET', ...texts.flatMap((text) => [text, '1']))
  const all = [...new Set(texts)]
  const good = fc.array(piece, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''))
  let fitting = 0
  await fc.assert(
    fc.asyncProperty(good, async (pattern) => {
      if (globMistake(pattern) !== undefined) return
      const theirs = ((await link.command('KEYS', pattern)) as string[]).sort()
      fitting += theirs.length
      expect(all.filter(globMatcher(pattern)).sort(), pattern).toEqual(theirs)
    }),
    { numRuns: 500 },
  )
  expect(fitting).toBeGreaterThan(100)
})

test('an escaped text fits itself and nothing else', () => {
  for (const text of texts) {
    expect(globMistake(globEscape(text))).toBeUndefined()
    expect(texts.filter(globMatcher(globEscape(text))).every((other) => other === text)).toBe(true)
    expect(globMatcher(globEscape(text))(text)).toBe(true)
  }
})

test.each([
  ['a[', "its '[' is never closed"],
  ['[a-]', "its '[' is never closed"],
  ['[\\]', "its '[' is never closed"],
  ['[]', 'it has an empty set'],
  ['[^]', 'it has an empty set'],
  ['a\\', 'it ends with a backslash'],
])('the pattern %s is refused: %s', (pattern, mistake) => {
  expect(globMistake(pattern)).toBe(mistake)
})

test('many stars end in time', () => {
  expect(globMatcher('*a'.repeat(30))('a'.repeat(29) + 'b'.repeat(2_000))).toBe(false)
})
