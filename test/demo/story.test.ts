import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startRedis, type RedisServer } from '../support/server.js'
import { runDemo } from './run-demo.js'

interface Scene {
  readonly text: string
  readonly verdict: string
}

/** The scenes of the story: by hand and with Holdfast in turn. */
function scenesOf(stdout: string): readonly Scene[] {
  const parts = stdout.split(/^ {2}(?:by hand|with Holdfast)$/m).slice(1)
  return parts.map((text) => ({ text, verdict: /^ {2}[✓✗] .*$/m.exec(text)?.[0].trim() ?? '' }))
}

describe('the story', { timeout: 60_000 }, () => {
  let server: RedisServer
  let stdout: string
  let code: number | null
  beforeEach(async () => {
    server = await startRedis()
    ;({ code, stdout } = await runDemo(['story', '--url', server.url]))
  })
  afterEach(() => server.stop())

  it('fails in every step by hand, is mended in every step by Holdfast, and leaves no key', async () => {
    const scenes = scenesOf(stdout)
    expect(code).toBe(0)
    expect(scenes.map(({ verdict }) => verdict)).toEqual([
      expect.stringMatching(/^✗ B and C were inside together for \d+ ms$/),
      '✓ no two were ever inside together',
      expect.stringMatching(/^✗ B and C were inside together for \d+ ms$/),
      '✓ no two were ever inside together',
      expect.stringMatching(
        /^✗ inner\(\) waited [\d.]+ ms, until the time of outer\(\)'s own lock had run out$/,
      ),
      expect.stringMatching(/^✓ inner\(\) waited [\d.]+ ms for the lock, which outer\(\) held throughout$/),
      expect.stringMatching(/^✗ A and B were inside together for \d+ ms$/),
      '✓ no two were ever inside together',
    ])
    expect(scenes[0]?.text).toMatch(/A {2}DEL \S+ +1, and that was B's lock/)
    expect(scenes[1]?.text).toMatch(/A {2}lease\.release\(\) +'(expired|stolen)'/)
    expect(scenes[2]?.text).toMatch(/A {2}GET \S+ +A\n/)
    expect(scenes[5]?.text).toMatch(/in inner\(\) +\{\S+: 2\}/)
    expect(scenes[7]?.text).toMatch(/A {2}the watchdog renews the lock +\d+ ms were left/)
    expect(await server.send('INFO', 'keyspace')).toBe('# Keyspace\r\n')
  })
})
