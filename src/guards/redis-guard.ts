import { systemClock } from '../clock.js'
import { createPort } from '../engine/redis/clients/detect.js'
import { PortError, type ClientPort, type Passage } from '../engine/redis/clients/port.js'
import { guardPass, type GuardPassReply } from '../engine/redis/scripts.js'
import { StaleTokenError, UnavailableError, WrongTypeError } from '../errors.js'
import { describe, duration, refuseUnknown } from '../option-checks.js'
import { checkResource, checkToken } from './token-floor.js'

/** Settings of a `RedisGuard`. */
export interface RedisGuardOptions {
  /** Bounds every command, in milliseconds. 1…2^53−1. @defaultValue 3 000 */
  readonly commandTimeout?: number | undefined
}

/** One value that only the newest holder of a lock can read and write. */
export interface GuardedValue {
  /** The name, as it was given. */
  readonly key: string
  /** Reads the value, and shuts out every lower token from then on; null: there is none. @throws StaleTokenError, UnavailableError, WrongTypeError */
  read(token: number): Promise<string | null>
  /** Writes the value. @throws StaleTokenError, UnavailableError (with outcome `unknown` it may have been written), WrongTypeError */
  write(token: number, value: string): Promise<void>
  /** Removes the value; the floor stays. @throws as `write` */
  remove(token: number): Promise<void>
}

type Step = 'read' | 'write' | 'remove'

const KEYS: ReadonlySet<string> = new Set<keyof RedisGuardOptions>(['commandTimeout'])

/**
 * Values in Redis or Valkey that refuse a stale holder: each is a hash with the value and the highest token seen, and
 * one script per access compares and raises it, on reads too. It need not be the server that the lock is on.
 */
export class RedisGuard implements AsyncDisposable {
  readonly #port: ClientPort
  readonly #timeoutMs: number

  /** On a client of yours: ioredis 5 or 6, node-redis 5 or 6. No I/O; the client stays yours. @throws TypeError or RangeError */
  constructor(client: object, options: RedisGuardOptions = {}) {
    refuseUnknown(options, KEYS, 'RedisGuard options')
    this.#timeoutMs =
      duration(options.commandTimeout, 'commandTimeout', { min: 1, max: Number.MAX_SAFE_INTEGER }) ?? 3_000
    this.#port = createPort(client)
  }

  /** The guarded value under this key, which must not be the name of a lock as well. Cheap. @throws TypeError or RangeError for a bad name */
  value(key: string): GuardedValue {
    checkResource(key)
    return {
      key,
      read: async (token) => (await this.#pass(key, token, { step: 'read' })).values[0] ?? null,
      write: async (token, value) => {
        await this.#pass(key, token, { step: 'write', value: checkValue(value) })
      },
      remove: async (token) => {
        await this.#pass(key, token, { step: 'remove' })
      },
    }
  }

  /** Closes the connection that it opened itself, if there is one. Never rejects. */
  async close(): Promise<void> {
    await this.#port.close()
  }

  /** `close()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #pass(
    key: string,
    token: number,
    { step, value = '' }: { readonly step: Step; readonly value?: string },
  ): Promise<Extract<GuardPassReply, { readonly outcome: 'passed' }>> {
    const guarded = this.#port.keyPrefix + key
    const reply = await this.#run({ guarded, token: checkToken(token), step, value })
    switch (reply.outcome) {
      case 'passed':
        return reply
      case 'stale':
        throw new StaleTokenError(key, token, Number(reply.floor))
      case 'foreign':
        throw new WrongTypeError(key, guarded, 'a guarded value')
    }
  }

  async #run(args: Parameters<typeof guardPass.encode>[0]): Promise<GuardPassReply> {
    const passage: Passage = { abandoned: false, sends: 0, firstSentAtMs: 0, lastSentAtMs: 0, once: false }
    let stop = (): void => undefined
    const late = new Promise<never>((_, reject) => {
      const timer = systemClock.setTimer(
        () => {
          passage.abandoned = true
          reject(
            new UnavailableError('The guard got no answer in time', undefined, { outcome: sent(passage) }),
          )
        },
        this.#timeoutMs,
        true,
      )
      stop = () => {
        timer.cancel()
      }
    })
    try {
      return await Promise.race([this.#execute(args, passage, late), late])
    } catch (error) {
      return failed(error)
    } finally {
      stop()
    }
  }

  async #execute(
    args: Parameters<typeof guardPass.encode>[0],
    passage: Passage,
    late: Promise<never>,
  ): Promise<GuardPassReply> {
    while (this.#port.readiness === 'waiting') await this.#ready(late)
    const { readiness } = this.#port
    if (readiness !== 'ready')
      throw new UnavailableError(`The client of the guard cannot take commands: ${readiness}`, undefined, {
        outcome: 'not-applied',
      })
    const { keys, args: values } = guardPass.encode(args)
    return guardPass.decode(await this.#port.run({ script: guardPass.script, keys, args: values }, passage))
  }

  /** Nothing is left in the client's offline queue. */
  async #ready(late: Promise<never>): Promise<void> {
    let withdraw = (): void => undefined
    const ready = new Promise<void>((resolve) => {
      withdraw = this.#port.onceReady(resolve)
    })
    try {
      await Promise.race([ready, late])
    } finally {
      withdraw()
    }
  }
}

function sent({ sends }: Passage): 'unknown' | 'not-applied' {
  return sends > 0 ? 'unknown' : 'not-applied'
}

/** @throws UnavailableError, unless the key has another type */
function failed(error: unknown): GuardPassReply {
  if (!(error instanceof PortError)) throw error
  if (error.kind === 'wrong-type') return { outcome: 'foreign' }
  const { message, outcome, cause = error } = error
  throw new UnavailableError(`The guard: ${message}`, undefined, { outcome, cause })
}

function checkValue(value: unknown): string {
  if (typeof value === 'string' && value.isWellFormed()) return value
  throw new TypeError(`The value must be a valid string, but is ${describe(value)}`)
}
