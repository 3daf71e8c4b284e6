import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ensureRedisServer, findRedisServer } from '../../tools/redis-server.mjs'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-tool-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** A program by the name of redis-server in a folder of its own. */
function place(...path: string[]): string {
  const home = join(folder, ...path)
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'redis-server'), '#!/bin/sh\n', { mode: 0o755 })
  return join(home, 'redis-server')
}

describe('the search for a redis-server', () => {
  it('takes the one that is named, before all others', () => {
    const named = place('named')
    place('path')
    expect(findRedisServer({ HOLDFAST_REDIS_SERVER: named, PATH: join(folder, 'path') })).toBe(named)
  })

  it('takes the first one on the path, before the cache', () => {
    const first = place('first')
    place('second')
    place('cache', `redis-server-${process.arch}`)
    const path = [join(folder, 'none'), join(folder, 'first'), join(folder, 'second')].join(':')
    expect(findRedisServer({ PATH: path, HOLDFAST_CACHE: join(folder, 'cache') })).toBe(first)
  })

  it('does not bring another one when the one that is named is missing', async () => {
    const named = join(folder, 'missing')
    await expect(ensureRedisServer({ HOLDFAST_REDIS_SERVER: named })).rejects.toThrow(
      `HOLDFAST_REDIS_SERVER=${named} is not an executable file`,
    )
  })

  it('ends with one line and code 1 when there is nothing to be done', () => {
    const tool = fileURLToPath(new URL('../../tools/redis-server.mjs', import.meta.url))
    const env = { PATH: '', HOLDFAST_REDIS_SERVER: '/nowhere/redis-server' }
    const { status, stdout, stderr } = spawnSync(process.execPath, [tool], { env, encoding: 'utf8' })
    expect({ status, stdout, lines: stderr.trimEnd().split('\n').length }).toEqual({
      status: 1,
      stdout: '',
      lines: 1,
    })
  })
})
