import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { Link } from '../support/link.js'
import { startRedis, type RedisServer } from '../support/server.js'
import { isAlive, rowsOf, runDemo, startDemo, type Ended, type Row } from './run-demo.js'

const SHORT = ['--work-ms', '1500', '--watchdog-ms', '2400', '--increments', '100']

function indexOf(rows: readonly Row[], who: string, what: string): number {
  return rows.findIndex((row) => row.who === who && row.what === what && !row.sent)
}

function expectTurns(stdout: string): void {
  const rows = rowsOf(stdout)
  const [first, second] = rows.filter(({ what }) => what === 'has it').map(({ who }) => who)
  expect([first, second].sort()).toEqual(['A', 'B'])
  const order = [
    indexOf(rows, first ?? '', 'has it'),
    indexOf(rows, first ?? '', 'renewed'),
    indexOf(rows, first ?? '', 'done'),
    indexOf(rows, second ?? '', 'has it'),
    indexOf(rows, second ?? '', 'renewed'),
    indexOf(rows, second ?? '', 'done'),
  ]
  expect(order).not.toContain(-1)
  expect(order).toEqual([...order].sort((one, other) => one - other))
  expect(stdout).toContain(`✓ ${second ?? ''} had the lock `)
}

function expectCounts(stdout: string, expected: number): void {
  const got = [...stdout.matchAll(/expected (\d+), got (\d+): (.*)$/gm)].map((found) => found.slice(1))
  expect(got).toHaveLength(2)
  const [without = [], locked = []] = got
  expect(Number(without[0])).toBe(expected)
  expect(Number(without[1])).toBeLessThan(expected)
  expect(without[2]).toBe(`${expected - Number(without[1])} updates lost`)
  expect(locked).toEqual([String(expected), String(expected), 'none lost'])
}

describe('the demo on a server of its own', { timeout: 60_000 }, () => {
  let run: Ended
  let rows: readonly Row[]
  beforeAll(async () => {
    run = await runDemo(SHORT, { NODE_ENV: 'production' })
    rows = rowsOf(run.stdout)
  }, 60_000)

  it('shows two processes taking turns, and a counter with and without the lock', () => {
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expectTurns(run.stdout)
    expectCounts(run.stdout, 400)
  })

  it('shows what they send, the hash, and its time to live', () => {
    const sent = rows.filter((row) => row.sent).map(({ who, what }) => `${who} ${what}`)
    for (const what of ['acquire', 'renew', 'release'])
      expect(sent).toEqual(expect.arrayContaining([`A ${what}`, `B ${what}`]))
    expect(sent.filter((line) => line.endsWith(' subscribe'))).toHaveLength(1)
    const granted = rows.filter(({ what }) => what === 'has it')
    expect(granted).toHaveLength(2)
    for (const { rest } of granted) expect(rest).toMatch(/\{\w{4}…\d{4}: 1\} +\d+ ms$/)
    const last = rows.filter(({ what }) => what === 'released').at(-1)
    expect(last?.rest).toMatch(/ gone$/)
  })

  it('ends its server and its workers', async () => {
    const port = Number(/on port (\d+), database 13/.exec(run.stdout)?.[1])
    await expect(Link.open(port)).rejects.toThrow('ECONNREFUSED')
    const ready = rows.filter(({ what }) => what === 'ready')
    expect(ready).toHaveLength(2)
    for (const { rest } of ready) expect(isAlive(Number(/process (\d+)/.exec(rest)?.[1]))).toBe(false)
  })

  it('prints no control characters into a pipe', () => {
    expect(run.stdout).not.toContain('\u001B')
    expect(run.stdout).not.toContain('\r')
  })
})

describe('the demo on the user’s server', { timeout: 60_000 }, () => {
  let server: RedisServer
  beforeEach(async () => {
    server = await startRedis()
    // Names that the demo uses without its prefix.
    await server.send('MSET', 'redis_lock', 'precious', 'counter', '5')
  })
  afterEach(() => server.stop())

  async function expectTidy(): Promise<void> {
    expect(await server.send('INFO', 'keyspace')).toMatch(/^# Keyspace\s+db0:keys=2,\S+\s*$/)
    expect(await server.send('MGET', 'redis_lock', 'counter')).toEqual(['precious', '5'])
  }

  it('runs on the address in REDIS_URL, and removes its own keys and no others', async () => {
    const { code, stdout } = await runDemo(SHORT, { REDIS_URL: `${server.url}/3` })
    expect(code).toBe(0)
    expectTurns(stdout)
    expectCounts(stdout, 400)
    await expectTidy()
  })

  it('leaves MONITOR alone unless it is asked for', async () => {
    const plain = await runDemo(SHORT, { REDIS_URL: server.url })
    expect(await server.send('INFO', 'commandstats')).not.toContain('cmdstat_monitor')
    expect(rowsOf(plain.stdout).filter(({ sent }) => sent)).toEqual([])
    const asked = await runDemo([...SHORT, '--url', server.url, '--monitor'])
    expect(rowsOf(asked.stdout).filter(({ sent }) => sent)).not.toEqual([])
    expectTurns(asked.stdout)
  })

  it('ends with code 1 when an update is lost although the lock was held', async () => {
    const args = ['--url', server.url, '--work-ms', '10', '--increments', '100', '--pause-ms', '2']
    const demo = startDemo(args)
    const [, prefix = ''] = await demo.printed(/keys (holdfast-demo:\w+:)\*/)
    const thief = (async () => {
      while (demo.process.exitCode === null) {
        const locked = await server.send('EXISTS', `${prefix}counter_lock`)
        if (locked === 1) await server.send('DECR', `${prefix}counter`)
        await sleep(1)
      }
    })()
    const { code, stdout } = await demo.ended
    await thief
    await server.send('DEL', `${prefix}counter`)
    expect(stdout).toMatch(/✗ expected 400, got -?\d+: \d+ updates lost\n*$/m)
    expect(code).toBe(1)
  })

  it.each([
    ['SIGINT', 130, /\d+ {2}[AB] {4}has it/],
    ['SIGTERM', 143, /updates lost/],
  ] as const)('tidies up after %s', async (signal, exitCode, moment) => {
    const demo = startDemo(['--url', server.url, '--work-ms', '1000', '--increments', '600'])
    await demo.printed(/B {4}ready +process \d+/)
    await demo.printed(moment)
    demo.process.kill(signal)
    const { code, stdout, stderr } = await demo.ended
    expect(stderr).toBe('')
    expect(code).toBe(exitCode)
    for (const [, pid] of stdout.matchAll(/process (\d+)/g)) expect(isAlive(Number(pid))).toBe(false)
    await expectTidy()
  })

  it('ends in one line when the server goes away', async () => {
    const demo = startDemo(['--url', server.url])
    await demo.printed(/ {4}has it/)
    await server.kill()
    const { code, stderr } = await demo.ended
    expect(stderr).toMatch(/^demo: broke off: .+\n$/)
    expect(code).toBe(1)
  })

  it('stops when nobody reads any more', async () => {
    const demo = startDemo(['--url', server.url])
    await demo.printed(/ {4}has it/)
    demo.process.stdout?.destroy()
    await demo.ended
    expect(demo.process.exitCode).toBe(141)
    await eventually(async () => {
      return !String(await server.send('CLIENT', 'LIST')).includes('holdfast-demo')
    }, 'the demo has left the server')
    await expectTidy()
  })
})

describe('the demo without a server', { timeout: 60_000 }, () => {
  it('runs in memory when asked to, and says that it is one process', async () => {
    const { code, stdout } = await runDemo([...SHORT, '--memory'], { HOLDFAST_REDIS_SERVER: '/nowhere' })
    expect(code).toBe(0)
    expect(stdout).toContain('in this one process')
    expectTurns(stdout)
    expectCounts(stdout, 400)
  })

  it.each([
    [['--url', 'redis://:secret@127.0.0.1:1'], 'demo: cannot reach redis://:***@127.0.0.1:1'],
    [['story', '--url', 'redis://127.0.0.1:1'], 'demo: cannot reach redis://127.0.0.1:1'],
    [[], 'demo: redis-server on port'],
  ])('ends with code 69 and one line (%j)', async (args, line) => {
    const { code, stdout, stderr } = await runDemo(args, { HOLDFAST_REDIS_SERVER: '/nowhere' })
    expect(code).toBe(69)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^[^\n]+\n$/)
    expect(stderr).toContain(line)
  })
})
