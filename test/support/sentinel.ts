/** A primary with two replicas, and three Sentinels that watch over them. */
import { eventually } from './eventually.js'
import { startRedis, type RedisServer } from './server.js'

/** The name by which clients ask for the primary. */
export const PRIMARY_NAME = 'orders'
/** After this time without an answer the primary counts as dead. */
const DOWN_AFTER_MS = 1_000

/** Starts them, and resolves when every Sentinel knows of the others and of both replicas. */
export async function startWatched(): Promise<Watched> {
  const primary = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] })
  const follow = ['--replicaof', `127.0.0.1 ${String(primary.port)}`, '--repl-diskless-sync-delay', '0']
  const data = [primary, await startRedis({ args: follow }), await startRedis({ args: follow })]
  await eventually(
    async () => String(await primary.send('INFO', 'replication')).match(/state=online/g)?.length === 2,
    'two replicas in step',
  )
  const config = [
    `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${String(primary.port)} 2`,
    `sentinel down-after-milliseconds ${PRIMARY_NAME} ${String(DOWN_AFTER_MS)}`,
    `sentinel failover-timeout ${PRIMARY_NAME} 6000`,
    `sentinel parallel-syncs ${PRIMARY_NAME} 2`,
  ]
  const sentinels = await Promise.all([1, 2, 3].map(() => startRedis({ sentinel: config })))
  const agreed = async (sentinel: RedisServer): Promise<boolean> => {
    const words = (await sentinel.send('SENTINEL', 'MASTER', PRIMARY_NAME)) as readonly string[]
    const fact = (name: string) => words[words.indexOf(name) + 1]
    return fact('num-slaves') === '2' && fact('num-other-sentinels') === '2'
  }
  for (const sentinel of sentinels) await eventually(() => agreed(sentinel), 'Sentinels that know each other')
  return new Watched(data, sentinels)
}

/** The servers. */
export class Watched implements AsyncDisposable {
  /** The first one was the primary at the beginning. */
  readonly data: readonly RedisServer[]
  readonly sentinels: readonly RedisServer[]

  /** Use {@link startWatched}. */
  constructor(data: readonly RedisServer[], sentinels: readonly RedisServer[]) {
    this.data = data
    this.sentinels = sentinels
  }

  /** The primary as the Sentinels see it. */
  async primary(): Promise<RedisServer> {
    const [sentinel] = this.sentinels
    const words = (await sentinel?.send(
      'SENTINEL',
      'GET-MASTER-ADDR-BY-NAME',
      PRIMARY_NAME,
    )) as readonly string[]
    const primary = this.data.find(({ port }) => String(port) === words[1])
    if (primary === undefined) throw new Error('the Sentinels know of no primary')
    return primary
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.sentinels, ...this.data].map((server) => server.stop()))
  }
}
