import type { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SqlGuard, type SqlQuery } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { startPostgres, type PostgresServer } from '../support/postgres.js'

let server: PostgresServer
/** Two programs: the one whose time is over, and the next. */
let a: Client
let b: Client
const guard = new SqlGuard()
const resource = 'account:42'

beforeAll(async () => {
  server = await startPostgres()
  const client = await server.connect()
  await client.query(guard.schema)
  // It may be run at every start.
  await client.query(guard.schema)
  await client.query('CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)')
  await client.end()
})
afterAll(() => server.stop())

beforeEach(async () => {
  a = await server.connect()
  b = await server.connect()
  await a.query('TRUNCATE holdfast_fence, accounts')
  await a.query('INSERT INTO accounts VALUES (42, 100)')
})
afterEach(async () => {
  await Promise.all([a.end(), b.end()])
})

const over =
  (client: Client): SqlQuery =>
  (text, values) =>
    client.query(text, values)

async function balance(client: Client): Promise<number> {
  const { rows } = await client.query<{ balance: number }>('SELECT balance FROM accounts WHERE id = 42')
  return rows[0]?.balance ?? NaN
}

/** What a holder does: seals, and reads. */
async function reads(client: Client, token: number): Promise<number> {
  await guard.seal(over(client), resource, token)
  return balance(client)
}

/** And writes, in one transaction with the check. */
async function writes(client: Client, token: number, value: number): Promise<void> {
  await client.query('BEGIN')
  try {
    await guard.check(over(client), resource, token)
    await client.query('UPDATE accounts SET balance = $1 WHERE id = 42', [value])
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

async function floor(): Promise<unknown> {
  const { rows } = await a.query<{ token: string }>('SELECT token FROM holdfast_fence')
  return rows.map(({ token }) => token)
}

const stale = (token: number, seen: number) => ({
  code: 'HOLDFAST_STALE_TOKEN',
  resource,
  token,
  floor: seen,
})

describe('two statements on a real PostgreSQL', () => {
  test('let the holder read and write, as often as it likes', async () => {
    expect(await reads(a, 1)).toBe(100)
    await writes(a, 1, 90)
    await writes(a, 1, 80)
    expect(await reads(a, 1)).toBe(80)
    expect(await reads(b, 2)).toBe(80)
    expect(await floor()).toEqual(['2'])
  })

  test('refuse a holder as soon as the next one has read', async () => {
    expect(await reads(a, 1)).toBe(100)
    expect(await reads(b, 2)).toBe(100)
    await expect(writes(a, 1, 0)).rejects.toMatchObject(stale(1, 2))
    await expect(reads(a, 1)).rejects.toMatchObject(stale(1, 2))
    await writes(b, 2, 150)
    expect(await balance(a)).toBe(150)
    expect(await floor()).toEqual(['2'])
  })

  test('without the seal, the same order of things loses a write that was acknowledged', async () => {
    // Both only read, and show their token when they write.
    const [seenByA, seenByB] = [await balance(a), await balance(b)]
    await writes(a, 1, seenByA + 10)
    await writes(b, 2, seenByB + 5)
    expect(await balance(a)).toBe(105)
  })

  test('a new holder that seals waits for a writer that has checked, and sees what it wrote', async () => {
    await reads(a, 1)
    await a.query('BEGIN')
    await guard.check(over(a), resource, 1)
    const order: string[] = []
    const reading = reads(b, 2).then((seen) => {
      order.push('read')
      return seen
    })
    await untilWaiting()
    await a.query('UPDATE accounts SET balance = 1 WHERE id = 42')
    order.push('committing')
    await a.query('COMMIT')
    expect(await reading).toBe(1)
    expect(order).toEqual(['committing', 'read'])
    await expect(writes(a, 1, 2)).rejects.toMatchObject(stale(1, 2))
  })

  test('a writer whose check waits for a seal is refused when that has committed', async () => {
    await reads(a, 1)
    await b.query('BEGIN')
    expect(await reads(b, 2)).toBe(100)
    const late = writes(a, 1, 0)
    late.catch(() => undefined)
    await untilWaiting()
    await b.query('COMMIT')
    await expect(late).rejects.toMatchObject(stale(1, 2))
    expect(await balance(b)).toBe(100)
  })

  test('a check without a seal before it seals, and is undone with its transaction', async () => {
    await b.query('BEGIN')
    await guard.check(over(b), resource, 7)
    await b.query('ROLLBACK')
    expect(await floor()).toEqual([])
    await writes(b, 7, 50)
    expect(await floor()).toEqual(['7'])
    await writes(b, 8, 60)
    expect(await floor()).toEqual(['8'])
    await expect(writes(a, 7, 0)).rejects.toMatchObject(stale(7, 8))
  })

  test('keep resources apart, and tell tokens apart up to 2^53−1', async () => {
    const high = Number.MAX_SAFE_INTEGER
    await guard.seal(over(a), 'one', high)
    await guard.seal(over(a), "it's; another", 1)
    await expect(guard.seal(over(b), 'one', high - 1)).rejects.toMatchObject({ floor: high })
    await guard.check(over(b), "it's; another", 1)
  })

  test('work in serializable transactions: the late one fails either way', async () => {
    await reads(a, 1)
    await a.query('BEGIN ISOLATION LEVEL SERIALIZABLE')
    await balance(a)
    await reads(b, 2)
    await expect(guard.check(over(a), resource, 1)).rejects.toThrow()
    await a.query('ROLLBACK')
  })

  test('go by the name of the table', async () => {
    const other = new SqlGuard({ table: 'fences.floors' })
    await a.query('CREATE SCHEMA fences')
    await a.query(other.schema)
    await other.seal(over(a), resource, 3)
    await other.check(over(a), resource, 3)
    await expect(other.seal(over(b), resource, 2)).rejects.toMatchObject(stale(2, 3))
    expect(await floor()).toEqual([])
  })
})

/** Until somebody waits for somebody's row. */
async function untilWaiting(): Promise<void> {
  const look = await server.connect()
  await eventually(async () => {
    const { rows } = await look.query('SELECT 1 FROM pg_stat_activity WHERE wait_event_type = $1', ['Lock'])
    return rows.length > 0
  }, 'somebody waits for a row')
  await look.end()
}
