import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { Link } from '../support/link.js'
import { startProxy, type Proxy } from '../support/proxy.js'
import { startRedis, type RedisServer } from '../support/server.js'

let server: RedisServer
let proxy: Proxy
let links: Link[]

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.send('FLUSHALL')
  proxy = await startProxy({ port: server.port })
  links = []
})
afterEach(() => {
  for (const link of links) link.close()
  proxy.close()
})

async function open(port = proxy.port): Promise<Link> {
  const link = await Link.open(port)
  links.push(link)
  return link
}

/** Follows a promise without waiting for it. */
function watch(promise: Promise<unknown>): { state: string } {
  const seen = { state: 'pending' }
  promise.then(
    (value) => (seen.state = `resolved ${String(value)}`),
    (error: unknown) => (seen.state = `rejected ${String(error)}`),
  )
  return seen
}

const get = (key: string): Promise<unknown> => server.send('GET', key)

describe('a proxy', () => {
  it('passes commands and replies, and counts them', async () => {
    const link = await open()
    const replies = await Promise.all([
      link.send('SET', 'a', '1'),
      link.send('GET', 'a'),
      link.send('GET', 'b'),
    ])
    expect(replies).toEqual(['OK', '1', null])
    expect(proxy.count()).toBe(3)
    expect(proxy.count('get')).toBe(2)
    expect(proxy.count(/^GET b$/)).toBe(1)
    expect(proxy.requests[0]?.words).toEqual(['SET', 'a', '1'])
  })

  it('passes large values and many connections', async () => {
    const big = 'x'.repeat(300_000)
    const several = await Promise.all([open(), open(), open()])
    await Promise.all(several.map((link, i) => link.send('SET', `big${i}`, big)))
    expect(await several[0].send('GET', 'big2')).toBe(big)
    expect(proxy.connections).toBe(3)
  })

  it('swallows everything as a black hole, with the sockets open', async () => {
    const link = await open()
    await link.send('PING')
    proxy.blackHole()
    const lost = watch(link.send('SET', 'a', '1'))
    const newcomer = watch((await open()).send('PING'))
    await eventually(() => proxy.count() === 3, 'both requests arrived')
    expect(await get('a')).toBeNull()
    expect(proxy.connections).toBe(2)
    await proxy.pass()
    expect(await (await open()).send('PING')).toBe('PONG')
    expect([lost.state, newcomer.state]).toEqual(['pending', 'pending'])
    proxy.cutAll()
    await eventually(() => lost.state.startsWith('rejected'), 'the old link ends when it is cut')
  })

  it('delays requests, and what comes behind them', async () => {
    const link = await open()
    proxy.delayRequests(100, 'SET')
    const begun = performance.now()
    await Promise.all([link.send('SET', 'a', '1'), link.send('SET', 'b', '1'), link.send('PING')])
    expect(performance.now() - begun).toBeGreaterThanOrEqual(99)
  })

  it('delays replies after the server has executed the request', async () => {
    const link = await open()
    proxy.delayReplies(100)
    const begun = performance.now()
    const reply = watch(link.send('SET', 'a', '1'))
    await eventually(async () => (await get('a')) === '1', 'executed')
    await eventually(() => reply.state === 'resolved OK', 'answered')
    expect(performance.now() - begun).toBeGreaterThanOrEqual(99)
  })

  it('holds requests and those behind them, but not other connections', async () => {
    const [one, other] = [await open(), await open()]
    const gate = proxy.holdRequests(/^SET a/)
    const first = watch(one.send('SET', 'a', 'one'))
    const behind = watch(one.send('PING'))
    expect((await gate.caught())?.words).toEqual(['SET', 'a', 'one'])
    expect(await other.send('SET', 'b', 'other')).toBe('OK')
    expect([first.state, behind.state]).toEqual(['pending', 'pending'])
    gate.release()
    await eventually(() => behind.state === 'resolved PONG', 'let go')
    expect(await get('a')).toBe('one')
    expect(await other.send('SET', 'a', 'later')).toBe('OK')
  })

  it('lets go one at a time, or loses what it holds', async () => {
    const link = await open()
    const gate = proxy.holdRequests('INCR')
    const replies = [1, 2, 3].map(() => watch(link.send('INCR', 'n')))
    await gate.caught()
    gate.releaseNext()
    await gate.caught(2)
    await eventually(() => replies[0]?.state === 'resolved 1', 'the first is answered')
    expect(gate.held).toHaveLength(1)
    gate.drop()
    await eventually(() => replies[1]?.state === 'resolved 2', 'the third gives the second answer')
    expect(await get('n')).toBe('2')
  })

  it('delivers a held request after its client has gone', async () => {
    const link = await open()
    const gate = proxy.holdRequests('SET')
    const sent = watch(link.send('SET', 'a', 'late'))
    await gate.caught()
    proxy.cutClients()
    await eventually(() => sent.state.startsWith('rejected'), 'the client is told')
    await server.send('SET', 'a', 'newer')
    gate.release()
    await eventually(async () => (await get('a')) === 'late', 'the late request arrives')
  })

  it('holds replies by the request that they answer', async () => {
    const link = await open()
    const gate = proxy.holdReplies('INCR')
    const before = watch(link.send('GET', 'n'))
    const held = watch(link.send('INCR', 'n'))
    await gate.caught()
    expect([before.state, held.state]).toEqual(['resolved null', 'pending'])
    expect(await get('n')).toBe('1')
    gate.release()
    await eventually(() => held.state === 'resolved 1', 'answered')
  })

  it('holds published messages, which answer nothing', async () => {
    const link = await open()
    await link.send('SUBSCRIBE', 'news')
    const gate = proxy.holdReplies((reply) => reply.request === undefined)
    await server.send('PUBLISH', 'news', 'hello')
    const message = await gate.caught()
    expect(message?.value).toEqual(['message', 'news', 'hello'])
    const behind = watch(link.send('PING'))
    await eventually(() => proxy.count('PING') === 1, 'the next request arrived')
    expect(behind.state).toBe('pending')
  })

  it('cuts both sides instead of the reply, after the server has executed', async () => {
    const link = await open()
    proxy.dropReply('INCR')
    await expect(link.send('INCR', 'n')).rejects.toThrow('closed')
    expect(await get('n')).toBe('1')
    expect(await (await open()).send('INCR', 'n')).toBe(2)
  })

  it('cuts both sides before the server gets the request', async () => {
    const link = await open()
    proxy.dropRequest('INCR')
    await expect(link.send('INCR', 'n')).rejects.toThrow('closed')
    expect(await get('n')).toBeNull()
  })

  it('refuses new connections and keeps the open ones', async () => {
    const link = await open()
    await link.send('PING')
    proxy.refuse()
    await expect(Link.open(proxy.port)).rejects.toThrow('ECONNREFUSED')
    expect(await link.send('PING')).toBe('PONG')
    await proxy.accept()
    expect(await (await open()).send('PING')).toBe('PONG')
  })

  it('sends a late copy over a fresh connection, in the same database', async () => {
    const link = await open()
    await link.send('SELECT', 3)
    await link.send('INCR', 'n')
    const request = proxy.requests.find(({ name }) => name === 'INCR')
    if (request === undefined) throw new Error('the request was not seen')
    expect(await proxy.sendAgain(request)).toBe(2)
    expect(await link.send('GET', 'n')).toBe('2')
  })

  it('passes the end of either side on', async () => {
    const link = await open()
    await link.send('PING')
    await server.send('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await eventually(() => proxy.connections === 0, 'the client side was closed')
    await expect(link.send('PING')).rejects.toThrow('closed')
  })
})
