import { expect, test } from 'vitest'
import { SqlGuard, type SqlQuery } from '../../src/index.js'

const answering =
  (...rows: unknown[]): SqlQuery =>
  () =>
    Promise.resolve({ rows })

test.for(['5', 5, 5n])('a floor may come as %o, as drivers have it', async (token) => {
  const guard = new SqlGuard()
  await guard.check(answering({ token }), 'x', 5)
  await guard.seal(answering({ token }), 'x', 5)
  await expect(guard.check(answering({ token }), 'x', 4)).rejects.toMatchObject({ token: 4, floor: 5 })
})

test.for([
  [{ Token: 5 }],
  [{ token: 'five' }],
  [{ token: null }],
  [null],
  ['5'],
  [{ token: '9007199254740993' }],
])('an answer without a token is a TypeError: %j', async (rows) => {
  await expect(new SqlGuard().check(answering(...rows), 'x', 5)).rejects.toThrow(TypeError)
})

test('what the query rejects with is passed on', async () => {
  const failing = () => Promise.reject(new Error('no such table'))
  await expect(new SqlGuard().seal(failing, 'x', 1)).rejects.toThrow('no such table')
  await expect(new SqlGuard().check(failing, 'x', 1)).rejects.toThrow('no such table')
})

test('bad arguments are refused before any query', async () => {
  const never = () => {
    throw new Error('asked')
  }
  const guard = new SqlGuard()
  for (const token of [0, 1.5, 2 ** 53, '1'])
    for (const method of ['seal', 'check'] as const)
      await expect(guard[method](never, 'x', token as number)).rejects.toThrow(/A token must be/)
  await expect(guard.seal(never, '', 1)).rejects.toThrow(RangeError)
  for (const table of ['', 'a b', 'a;b', 'a.b.c', 'A', '"a"', '1a'])
    expect(() => new SqlGuard({ table })).toThrow(RangeError)
  expect(() => new SqlGuard({ table: 5 as never })).toThrow(TypeError)
  expect(() => new SqlGuard({ tabel: 'a' } as never)).toThrow(/Unknown key/)
})
