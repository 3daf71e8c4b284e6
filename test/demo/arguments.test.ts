import { describe, expect, it } from 'vitest'
import { readArguments, UsageError } from '../../demo/arguments.js'
import { runDemo } from './run-demo.js'

describe('the arguments of the demo', () => {
  it('have defaults', () => {
    expect(readArguments([], {})).toEqual({
      what: 'demo',
      url: undefined,
      memory: false,
      monitor: false,
      workMs: 3_000,
      watchdogMs: 6_000,
      processes: 4,
      increments: 250,
      pauseMs: 1,
    })
  })

  it('win over the environment', () => {
    const env = { REDIS_URL: 'redis://one' }
    expect(readArguments([], env).url).toBe('redis://one')
    expect(readArguments(['--url', 'rediss://other'], env).url).toBe('rediss://other')
    expect(readArguments(['--memory'], env)).toMatchObject({ memory: true, url: undefined })
    expect(readArguments(['story'], { REDIS_URL: '' })).toMatchObject({ what: 'story', url: undefined })
  })

  it.each([
    [['--bogus'], "Unknown option '--bogus'"],
    [['tale'], "unknown argument 'tale'"],
    [['story', 'again'], "unknown argument 'again'"],
    [['--url', 'http://there'], '--url must be an address like redis://localhost:6379'],
    [['--url'], "Option '--url <value>' argument missing"],
    [['--memory', '--url', 'redis://there'], '--memory and --url exclude each other'],
    [['--memory', 'story'], 'the story needs a server: leave --memory out'],
    [['--processes', '1'], "--processes must be a whole number from 2 to 26, but is '1'"],
    [['--increments', '1e3'], "--increments must be a whole number from 1 to 100000, but is '1e3'"],
  ])('are refused in one line: %j', (args, message) => {
    expect(() => readArguments(args, {})).toThrow(new UsageError(message))
  })

  it('end the demo with code 64 when they are wrong, and with 0 when help is asked for', async () => {
    const wrong = await runDemo(['--bogus'])
    expect(wrong).toEqual({ code: 64, stdout: '', stderr: "demo: Unknown option '--bogus' (try --help)\n" })
    const help = await runDemo(['--help'])
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toMatch(/^usage: npm run demo/)
  })
})
