/** Texts of other servers and of clients; those of a real server are met in the suites. */
import { describe, expect, it } from 'vitest'
import { replyCode, toPortError } from '../../src/engine/redis/clients/errors.js'
import { normalise, normaliseTyped } from '../../src/engine/redis/clients/replies.js'

const IN_REDIS_6 =
  'ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:1: '

describe('sorting an error', () => {
  const sort = (message: string, unbroken = true, cluster = false) =>
    toPortError({ error: new Error(message), unbroken, cluster })

  it.each([
    [
      `${IN_REDIS_6}WRONGTYPE Operation against a key holding the wrong kind of value`,
      'wrong-type',
      'unknown',
    ],
    [`${IN_REDIS_6}OOM command not allowed when used memory > 'maxmemory'.`, 'unavailable', 'not-applied'],
    [`${IN_REDIS_6}-READONLY You can't write against a read only replica.`, 'unavailable', 'not-applied'],
    [
      `${IN_REDIS_6}-NOPERM The user executing the script can't run this command or subcommand`,
      'refused',
      'unknown',
    ],
    ['NOAUTH Authentication required.', 'unavailable', 'not-applied'],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'unavailable', 'not-applied'],
    ['CLUSTERDOWN Hash slot not served', 'unavailable', 'not-applied'],
    ['TRYAGAIN Multiple keys request during rehashing of slot', 'unavailable', 'not-applied'],
    ['ERR max number of clients reached', 'unavailable', 'not-applied'],
    ["ERR unknown command 'EVALSHA', with args beginning with: ", 'refused', 'not-applied'],
    ["CROSSSLOT Keys in request don't hash to the same slot", 'refused', 'not-applied'],
    ['MOVED 15495 127.0.0.1:7002', 'refused', 'not-applied'],
    ['Connection is closed.', 'connection', 'unknown'],
    ['read ECONNRESET', 'connection', 'unknown'],
    ['write EPIPE', 'connection', 'unknown'],
    ['', 'connection', 'unknown'],
    ['The client is closed', 'closed', 'not-applied'],
    ['The client is offline', 'connection', 'not-applied'],
    ['The queue is full', 'connection', 'not-applied'],
    ["Stream isn't writeable and enableOfflineQueue options is false", 'connection', 'not-applied'],
    ['Connection in subscriber mode, only subscriber commands may be used', 'refused', 'not-applied'],
  ])('%s', (message, kind, outcome) => {
    const error = sort(message)
    expect(error).toMatchObject({ kind, outcome, cause: { message } })
    expect(error.message).not.toBe('')
  })

  it('has no proof in a reply behind a link that broke', () => {
    expect(sort('READONLY You', false).outcome).toBe('unknown')
    expect(sort('MOVED 1 a:1', false, true)).toMatchObject({ kind: 'unavailable', outcome: 'unknown' })
  })

  it("leaves out of the message where in which script it was; the cause has the server's own words", () => {
    const oom = "OOM command not allowed when used memory > 'maxmemory'."
    for (const text of [
      `${IN_REDIS_6}${oom}`,
      `${oom} script: 7bdcbe82a54c7929378e6c7c4be72fd3a6a352b0, on @user_script:28.`,
    ])
      expect(sort(text)).toMatchObject({ message: oom, cause: { message: text } })
  })

  it('says what to do about it', () => {
    expect(sort('MOVED 1 a:1').message).toMatch(/cluster client/)
    const text =
      "ERR Can't execute 'evalsha': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed"
    expect(sort(text).message).toMatch(/subscriber mode/)
  })

  it('tells replies from what clients say', () => {
    expect(replyCode(new Error('NOSCRIPT No matching script.'))).toBe('NOSCRIPT')
    expect(replyCode(new Error('Command timed out'))).toBeUndefined()
    expect(replyCode('no error at all')).toBeUndefined()
    expect(replyCode(undefined)).toBeUndefined()
  })
})

describe('one form of replies', () => {
  it('takes whatever clients make of them', () => {
    const map = new Map<string, unknown>([
      ['a', 1n],
      ['b', [true, false]],
    ])
    expect(normalise(map)).toEqual(['a', 1, 'b', [1, 0]])
    expect(normalise({ a: Buffer.from('ü'), b: undefined })).toEqual(['a', 'ü', 'b', null])
    expect(normalise(new Set(['m', new String('n')]))).toEqual(['m', 'n'])
    expect(normalise([1, '2', null, [Buffer.from('3'), 4n]])).toEqual([1, '2', null, ['3', 4]])
    expect(() => normalise([new Error('ERR in a list')])).toThrow('ERR in a list')
    expect(() => normalise([Symbol('odd')])).toThrow(TypeError)
  })

  it('tells integers from texts where both come without a number', () => {
    expect(normaliseTyped(['1', Buffer.from('1'), null, ['-2', Buffer.from('')]])).toEqual([
      1,
      '1',
      null,
      [-2, ''],
    ])
  })
})
