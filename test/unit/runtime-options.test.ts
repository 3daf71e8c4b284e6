/** What is refused before any I/O. */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { Holdfast, type AcquireOptions, type HoldfastOptions } from '../../src/index.js'
import { eventually } from '../support/eventually.js'
import { raw } from '../support/raw.js'
import { startRedis } from '../support/server.js'

it.each([{}, new Map(), Promise.resolve()])(
  'refuses a subscriber that is not a client (%o)',
  (subscriber) => {
    const client = new Redis({ lazyConnect: true })
    expect(() => new Holdfast(client, { subscriber })).toThrow(TypeError)
  },
)

it.each([
  null,
  [],
  { leasetime: 5 },
  { leaseTime: 0 },
  { leaseTime: Infinity },
  { leaseTime: '5' },
  { leaseTime: null },
  { waitTime: Number.NaN },
  { waitTime: -1 },
  { minHold: Infinity },
  { minHold: 10, leaseTime: 5 },
  { maxHold: 0 },
  { pollInterval: 0 },
  { signal: null },
  { signal: {} },
  { signal: { aborted: false, addEventListener: () => undefined } },
  { within: null },
  { within: {} },
])('refuses acquire options %o', async (options) => {
  const holdfast = await Holdfast.connect('memory:')
  const bad = options as unknown as AcquireOptions
  const attempts = [
    holdfast.lock('x').acquire(bad),
    holdfast.lock('x').tryAcquire(bad),
    holdfast.lock('x').using(bad, () => 1),
    holdfast.lock('x').tryUsing(bad, () => 1),
  ]
  for (const attempt of attempts) {
    const error: unknown = await attempt.catch((reason: unknown) => reason)
    expect(error instanceof TypeError || error instanceof RangeError, String(error)).toBe(true)
  }
  expect(holdfast.stats()).toEqual({ held: 0, waiting: 0, contests: 0, pending: 0, compensating: 0 })
})

it.each([
  null,
  { defaults: null },
  { defaults: { leaseTime: 0 } },
  { defaults: { signal: undefined } },
  { clock: null },
  { clock: {} },
  { clockDrift: 1 },
  { lockWatchdogTimeout: 29 },
  { commandTimeout: Infinity },
  { subscriber: null },
  { subscriber: 'on' },
  { nameMapper: 'x' },
  { keyPrefix: '\ud800' },
])('refuses options %o', async (options) => {
  const bad = options as unknown as HoldfastOptions
  await expect(Holdfast.connect('memory:', bad)).rejects.toSatisfy(
    (error) => error instanceof TypeError || error instanceof RangeError,
  )
})

it('gives up connecting to a server that takes the connection and says nothing', async () => {
  await using silent = await listen()
  const connecting = Holdfast.connect(silent.url, { commandTimeout: 100, unavailableAfter: 200 })
  await expect(connecting).rejects.toMatchObject({ code: 'HOLDFAST_UNAVAILABLE', outcome: 'not-applied' })
  await eventually(() => silent.sockets() === 0, 'the connection is closed')
})

it('closes its connection when the subscriber is not a client', async () => {
  await using server = await startRedis()
  await expect(Holdfast.connect(server.url, { subscriber: {} })).rejects.toThrow(TypeError)
  await using look = await raw(server.port)
  await eventually(async () => {
    const clients = String(await look.command('CLIENT', 'LIST'))
    return clients.trim().split('\n').length === 1
  }, 'only the look is connected')
})

interface Listening extends AsyncDisposable {
  readonly url: string
  sockets(): number
}

async function listen(): Promise<Listening> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    socket.resume()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = (): Promise<void> =>
    new Promise((resolve) =>
      server.close(() => {
        resolve()
      }),
    )
  return {
    url: `redis://127.0.0.1:${String(port)}`,
    sockets: () => sockets.size,
    [Symbol.asyncDispose]: close,
  }
}

it('takes undefined for omitted, everywhere', async () => {
  const holdfast = await Holdfast.connect('memory:', {
    keyPrefix: undefined,
    nameMapper: undefined,
    lockWatchdogTimeout: undefined,
    commandTimeout: undefined,
    unavailableAfter: undefined,
    maxHold: undefined,
    clockDrift: undefined,
    subscriber: undefined,
    defaults: undefined,
    clock: undefined,
  })
  const lease = await holdfast.lock('x', { reentrant: undefined }).acquire({
    waitTime: undefined,
    leaseTime: undefined,
    signal: undefined,
    within: undefined,
    minHold: undefined,
    maxHold: undefined,
    pollInterval: undefined,
  })
  expect(await lease.release()).toBe('released')
  await holdfast.close({ drain: undefined })
})
