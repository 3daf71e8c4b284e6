/** A server for golden tests, and names as the tests spell them. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from 'vitest'
import { Holdfast, type HoldfastEvents, type HoldfastOptions } from '../../src/index.js'
import { IOREDIS_6, open } from '../clients/variants.js'
import { Recorder, type Step } from '../peer/snapshot.js'
import { raw, type Raw } from '../support/raw.js'
import { startRedis, type RedisServer } from '../support/server.js'

export const A = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:57'
export const B = '1c6e9b0a-0d7c-4f55-8a56-0f6c1f1f2f3f:4503599627370497'
export const C = '1c6e9b0a-0d7c-4f55-8a56-0f6c1f1f2f3f:8'

/** What is there in each test of a file. */
export interface GoldenStage {
  readonly server: RedisServer
  readonly raw: Raw
  readonly recorder: Recorder
}

/** Declares a server for the file, emptied before each test. Its parts are there once a test runs. */
export function goldenStage(): GoldenStage {
  let parts: GoldenStage | undefined
  const there = (): GoldenStage => {
    if (parts === undefined) throw new Error('outside of a test')
    return parts
  }
  beforeAll(async () => {
    const server = await startRedis()
    const link = await raw(server.port)
    parts = { server, raw: link, recorder: await Recorder.on(link) }
  })
  beforeEach(() => there().recorder.clear())
  afterAll(async () => {
    await parts?.raw[Symbol.asyncDispose]()
    await parts?.server.stop()
  })
  return {
    get server() {
      return there().server
    },
    get raw() {
      return there().raw
    },
    get recorder() {
      return there().recorder
    },
  }
}

/** A Holdfast on the server of the file, closed when the test is finished. */
export async function goldenHoldfast(
  { server }: GoldenStage,
  options: HoldfastOptions = {},
): Promise<Holdfast> {
  const client = await open(IOREDIS_6, server.port)
  const holdfast = new Holdfast(client.raw as object, options)
  onTestFinished(async () => {
    await holdfast.close({ drain: 0 })
    client.destroy()
  })
  return holdfast
}

/** Collects the events about a lock until the test is finished. */
export function hear<N extends keyof HoldfastEvents>(event: N, lock: string): HoldfastEvents[N][] {
  const heard: HoldfastEvents[N][] = []
  const listener = (message: unknown) => {
    const about = message as HoldfastEvents[N]
    if (about.lock === lock) heard.push(about)
  }
  subscribe(event, listener)
  onTestFinished(() => {
    unsubscribe(event, listener)
  })
  return heard
}

/** The keys that Java programs know. Those of our own carry a TTL, and our name. */
export function shared(keys: Step<unknown>['keys']): Step<unknown>['keys'] {
  const own = Object.entries(keys).filter(([key]) => key.startsWith('holdfast_request:'))
  for (const [key, { ttl }] of own) expect(ttl, `${key} stays for ever`).not.toBe('none')
  return Object.fromEntries(Object.entries(keys).filter(([key]) => !key.startsWith('holdfast_request:')))
}
