/** docs/faults.md is true: every row is there, and rows and tests name each other. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, test } from 'vitest'

const page = readFileSync(new URL('../../docs/faults.md', import.meta.url), 'utf8')
const faults = fileURLToPath(new URL('../faults/', import.meta.url))

/** The numbers of each group of the list. They never change. */
const ROWS: Readonly<Record<string, readonly number[]>> = {
  A: [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17],
  B: [18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28],
  C: [29, 30, 31, 32, 34, 35, 36, 37, 38, 39, 40, 41, 42],
  D: [44, 45, 46, 47, 48, 50, 53, 54, 55],
  F: [67, 68, 69, 70, 71, 72],
  G: [73, 74, 75, 76, 77, 78, 79],
  H: [80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90],
  I: [91, 92],
  J: [93, 94, 95, 96, 98, 99, 101, 102, 104],
  K: [105, 106, 108, 109, 111, 112, 113, 114, 115],
  L: [116, 117, 118, 119, 120, 122, 123],
}

interface Row {
  /** Empty in the tables of tests without a number. */
  readonly number: string
  readonly kind: string
  /** Empty where there is no test. */
  readonly file: string
  readonly title: string
  readonly how: string
}

function rowsOf(text: string): readonly Row[] {
  return text.split('\n').flatMap((line) => {
    const cells = line.split('|').map((cell) => cell.trim().replaceAll('`', ''))
    if (cells.length === 7 && /^I?\d+$/.test(cells[1] ?? '')) return [toRow(cells.slice(1))]
    return cells.length === 5 && line.startsWith('| `') ? [toRow(['', '', ...cells.slice(1)])] : []
  })
}

function toRow([number = '', kind = '', file = '', title = '', how = '']: readonly string[]): Row {
  return { number, kind, file, title, how }
}

/** What the tests of a file are called, with the placeholders of `test.each`. */
function titlesIn(path: string): readonly string[] {
  const titles: string[] = []
  const visit = (node: ts.Node): void => {
    const [first] = ts.isCallExpression(node) ? node.arguments : []
    if (ts.isCallExpression(node) && first !== undefined && isTest(node.expression)) titles.push(text(first))
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ESNext))
  return titles
}

/** `test` itself, one of its kin (`test.concurrent`), or what `test.each(…)` returns. */
function isTest(callee: ts.Expression): boolean {
  if (ts.isIdentifier(callee)) return callee.text === 'test'
  if (ts.isPropertyAccessExpression(callee)) return callee.name.text !== 'each' && isTest(callee.expression)
  if (!ts.isCallExpression(callee) || !ts.isPropertyAccessExpression(callee.expression)) return false
  return callee.expression.name.text === 'each' && isTest(callee.expression.expression)
}

function text(title: ts.Expression): string {
  if (ts.isStringLiteralLike(title)) return title.text
  throw new Error('The title of a test of a fault must be plain text, so that the list can name it')
}

const rows = rowsOf(page)
const listed = rows.filter(({ file }) => file !== '')
const written = readdirSync(faults)
  .filter((file) => file.endsWith('.test.ts'))
  .flatMap((file) => titlesIn(faults + file).map((title) => ({ file: basename(file, '.test.ts'), title })))

test('every test that the list names is there, and every test of a fault is in the list', () => {
  const inList = listed.map(
    ({ file, number, title }) => `${file} > ${number === '' ? '' : `fault ${number}: `}${title}`,
  )
  const inFiles = written.map(({ file, title }) => `${file} > ${title}`)
  expect(inList.length).toBeGreaterThan(100)
  expect(inList.sort()).toEqual(inFiles.sort())
})

test.each(Object.entries(ROWS))('group %s has all of its rows', (group, numbers) => {
  const section = page.split(new RegExp(`^## ${group}\\. `, 'm'))[1]?.split(/^## /m)[0] ?? ''
  const present = new Set(rowsOf(section).map(({ number }) => Number(number)))
  expect([...present]).toEqual(numbers)
})

test('every row has a kind, and a test that was seen red or the reason why there is none', () => {
  const first = rows.filter(({ number }, index) => number !== '' && rows[index - 1]?.number !== number)
  expect(first.filter(({ kind }) => kind === '')).toEqual([])
  expect(rows.filter(({ how }) => how === '')).toEqual([])
  const without = rows.filter(({ file }) => file === '')
  expect(without.filter(({ title }) => title !== '_none_')).toEqual([])
  const withTest = new Set(listed.map(({ number }) => number))
  expect(without.filter(({ number }) => withTest.has(number))).toEqual([])
})

test('no title is used twice', () => {
  const titles = written.map(({ title }) => title)
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([])
})

test('nothing outside of these files calls itself the test of a fault', () => {
  const others = readdirSync(`${faults}..`, { recursive: true, encoding: 'utf8' }).filter(
    (file) => /\.(test|suite)\.ts$/.test(file) && !/^(faults|docs)\//.test(file),
  )
  const claims = others.filter((file) =>
    /['"`]fault I?\d+: /.test(readFileSync(`${faults}../${file}`, 'utf8')),
  )
  expect(others.length).toBeGreaterThan(10)
  expect(claims).toEqual([])
})
