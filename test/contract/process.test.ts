/** What keeps a process alive, and what does not: seen from outside. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startRedis, type RedisServer } from '../support/server.js'

const program = fileURLToPath(new URL('process.program.ts', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Runs a part of the program until it ends by itself. */
async function run(part: string, url = ''): Promise<Ended> {
  const flags = ['--import', 'tsx', '--unhandled-rejections=strict', '--no-warnings']
  const child = spawn(process.execPath, [...flags, program, part, url], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe.concurrent('a process', () => {
  test('does not stay for a lease that is renewed', async ({ expect: here }) => {
    here(await run('hold')).toEqual({ code: 0, output: 'held\n' })
  })

  test('stays for a call that waits, and then ends', async ({ expect: here }) => {
    here(await run('wait')).toEqual({ code: 0, output: 'held\nHOLDFAST_WAIT_TIMEOUT\n' })
  })

  test('stays for close until its drain is over', async ({ expect: here }) => {
    here(await run('close')).toEqual({ code: 0, output: 'held\nclosed\n' })
  })

  test('does not stay for the subscriber and the timers of a Holdfast whose client was closed', async ({
    expect: here,
  }) => {
    here(await run('subscriber', server.url)).toEqual({ code: 0, output: 'waited\nheld\n' })
  })

  test('does not end before the work under a lock of connect() is done', async ({ expect: here }) => {
    here(await run('connect', server.url)).toEqual({ code: 0, output: 'worked\nclosed\n' })
  })
})

test('a lease of a process that has ended is freed by the server', async () => {
  await run('leave', server.url)
  expect(await server.send('EXISTS', 'left')).toBe(1)
  expect(await server.send('PTTL', 'left')).toBeGreaterThan(0)
})
