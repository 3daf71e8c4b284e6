/** The server that the demo runs on: a private one, or the user's. */
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { startRedis } from '../test/support/server.js'
import type { DemoArguments } from './arguments.js'

export interface Stage extends AsyncDisposable {
  readonly url: string
  /** Put before the name of every key, so that nobody's data is touched. */
  readonly keyPrefix: string
  /** Whether MONITOR may be used. */
  readonly monitored: boolean
  readonly title: string
  /** For looking at what is there, and for tidying up. */
  readonly redis: Redis
  /** Never rejects: where the server is gone, there is nothing to remove. */
  remove(...names: readonly string[]): Promise<void>
}

/** There is no server to run on. The message is one line. */
export class NoServerError extends Error {}

const PRIVATE_DATABASE = 13
const CONNECT_WITHIN_MS = 5_000

export async function openStage({ url, monitor }: DemoArguments): Promise<Stage> {
  return url === undefined ? privateStage() : usersStage(url, monitor)
}

/** A connection that gives up rather than wait for a server that is gone. */
export async function connect(url: string, name: string): Promise<Redis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectionName: `holdfast-demo-${name}`,
    connectTimeout: CONNECT_WITHIN_MS,
    retryStrategy: () => null,
  })
  let trouble: unknown
  redis.on('error', (error) => {
    trouble = error
  })
  try {
    await redis.connect()
    await redis.ping()
  } catch (error) {
    // One that never had a link would keep the process waiting for its end.
    if (redis.status !== 'end') redis.disconnect()
    throw trouble ?? error
  }
  return redis
}

async function privateStage(): Promise<Stage> {
  const server = await startRedis().catch((error: unknown) => {
    throw new NoServerError(oneLine(error))
  })
  const url = `${server.url}/${PRIVATE_DATABASE}`
  const redis = await connect(url, 'looker')
  return {
    url,
    redis,
    remove: remover(redis, ''),
    keyPrefix: '',
    monitored: true,
    title: `a private ${await versionOf(redis)} on port ${server.port}, database ${PRIVATE_DATABASE}`,
    async [Symbol.asyncDispose]() {
      redis.disconnect()
      await server.stop()
    },
  }
}

async function usersStage(url: string, monitored: boolean): Promise<Stage> {
  const redis = await connect(url, 'looker').catch((error: unknown) => {
    throw new NoServerError(`cannot reach ${withoutPassword(url)}: ${oneLine(error)}`)
  })
  const keyPrefix = `holdfast-demo:${randomBytes(3).toString('hex')}:`
  return {
    url,
    redis,
    remove: remover(redis, keyPrefix),
    keyPrefix,
    monitored,
    title: `your ${await versionOf(redis)} at ${withoutPassword(url)}, keys ${keyPrefix}*`,
    [Symbol.asyncDispose]() {
      redis.disconnect()
      return Promise.resolve()
    },
  }
}

function remover(redis: Redis, keyPrefix: string): Stage['remove'] {
  return async (...names) => {
    await redis.del(names.map((name) => keyPrefix + name)).catch(() => undefined)
  }
}

async function versionOf(redis: Redis): Promise<string> {
  // Not everybody may ask.
  const info = await redis.info('server').catch(() => '')
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1]
  if (valkey !== undefined) return `Valkey ${valkey}`
  return `Redis ${/redis_version:(\S+)/.exec(info)?.[1] ?? 'server'}`
}

function withoutPassword(url: string): string {
  const parts = new URL(url)
  if (parts.password !== '') parts.password = '***'
  return parts.href
}

function oneLine(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error)
  return (message.split('\n')[0] ?? '').replace(/:$/, '')
}
