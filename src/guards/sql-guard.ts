import { StaleTokenError } from '../errors.js'
import { describe, refuseUnknown } from '../option-checks.js'
import { checkResource, checkToken } from './token-floor.js'

/** Runs one statement with the values of its placeholders `$1`, `$2` …, e.g. `(text, values) => client.query(text, values)`. */
export type SqlQuery = (text: string, values: unknown[]) => PromiseLike<SqlResult>

/** What a statement gives. */
export interface SqlResult {
  /** The rows as objects, by the names of their columns. */
  readonly rows: readonly unknown[]
}

/** Settings of a `SqlGuard`. */
export interface SqlGuardOptions {
  /** The table of the floors: a name, perhaps with a schema before it. @defaultValue `'holdfast_fence'` */
  readonly table?: string | undefined
}

const KEYS: ReadonlySet<string> = new Set<keyof SqlGuardOptions>(['table'])
const NAME = /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/

/**
 * Two statements by which tables in PostgreSQL refuse a stale holder: `seal` before a holder reads for the first time,
 * `check` in each transaction that writes. The floors lie in a table of their own, a row for each resource.
 */
export class SqlGuard {
  /** The statement that makes the table. Run it once, or put it among your migrations. */
  readonly schema: string
  readonly #seal: string
  readonly #check: string

  /** No I/O. @throws TypeError or RangeError for a bad table name */
  constructor(options: SqlGuardOptions = {}) {
    refuseUnknown(options, KEYS, 'SqlGuard options')
    const table = tableName(options.table)
    this.schema = `CREATE TABLE IF NOT EXISTS ${table} (resource text PRIMARY KEY, token bigint NOT NULL)`
    this.#seal =
      `INSERT INTO ${table} AS fence (resource, token) VALUES ($1, $2) ` +
      'ON CONFLICT (resource) DO UPDATE SET token = GREATEST(fence.token, EXCLUDED.token) RETURNING token'
    this.#check = `SELECT token FROM ${table} WHERE resource = $1 FOR UPDATE`
  }

  /**
   * Shuts out every lower token, before the holder reads for the first time. By itself, or as the first statement of
   * the transaction that reads: it waits for a writer that has checked and not yet committed, so that the read sees it.
   * @throws StaleTokenError; what the query rejects with
   */
  async seal(query: SqlQuery, resource: string, token: number): Promise<void> {
    const values = [checkResource(resource), checkToken(token)]
    refuseBelow(floorIn(await query(this.#seal, values)) ?? 0, resource, token)
  }

  /**
   * Checks in a transaction that writes, before it writes, and keeps newer holders from sealing until it ends. Outside
   * of a transaction it proves nothing. A token that was never sealed is sealed here.
   * @throws StaleTokenError (roll back); what the query rejects with
   */
  async check(query: SqlQuery, resource: string, token: number): Promise<void> {
    checkToken(token)
    const floor = floorIn(await query(this.#check, [checkResource(resource)])) ?? 0
    refuseBelow(floor, resource, token)
    if (floor < token) await this.seal(query, resource, token)
  }
}

function refuseBelow(floor: number, resource: string, token: number): void {
  if (token < floor) throw new StaleTokenError(resource, token, floor)
}

/** The token in the first row; drivers give big integers as text. Undefined: there is no row. */
function floorIn({ rows }: SqlResult): number | undefined {
  const [row] = rows
  if (row === undefined) return undefined
  const value: unknown = typeof row === 'object' && row !== null ? Reflect.get(row, 'token') : undefined
  const floor = typeof value === 'string' || typeof value === 'bigint' ? Number(value) : value
  if (typeof floor === 'number' && Number.isSafeInteger(floor)) return floor
  throw new TypeError(
    `The query must give rows with a column token, a whole number, but gave ${describe(value)}`,
  )
}

function tableName(table: unknown = 'holdfast_fence'): string {
  if (typeof table !== 'string') throw new TypeError(`table must be a string, but is ${describe(table)}`)
  if (NAME.test(table)) return table
  throw new RangeError(`table must be a plain name in lower case, but is ${JSON.stringify(table)}`)
}
