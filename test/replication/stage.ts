/** A primary with two replicas, and a Holdfast on it over each client. */
import { Holdfast, type HoldfastOptions } from 'holdfast'
import { open, type OpenClient, type Variant } from '../clients/variants.js'
import { eventually } from '../support/eventually.js'
import { startRedis, type RedisServer } from '../support/server.js'

/** The servers. The replicas follow the primary without delay. */
export interface Replicated extends AsyncDisposable {
  readonly primary: RedisServer
  readonly replicas: readonly [RedisServer, RedisServer]
}

/** Starts them and resolves when both replicas are in step. */
export async function startReplicated(): Promise<Replicated> {
  const primary = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] })
  const follow = ['--replicaof', `127.0.0.1 ${String(primary.port)}`]
  const replicas = [await startRedis({ args: follow }), await startRedis({ args: follow })] as const
  await inStep(primary)
  const stop = async (): Promise<void> => {
    await Promise.all([...replicas, primary].map((server) => server.stop()))
  }
  return { primary, replicas, [Symbol.asyncDispose]: stop }
}

/** Resolves when both replicas confirm what was written last. */
export async function inStep(primary: RedisServer): Promise<void> {
  await eventually(async () => {
    const info = String(await primary.send('INFO', 'replication'))
    return info.match(/state=online/g)?.length === 2
  }, 'two replicas in step')
}

/** A Holdfast with its client. */
export interface Actor extends AsyncDisposable {
  readonly holdfast: Holdfast
  readonly client: OpenClient
}

/** Connects. */
export async function actor(
  variant: Variant,
  { primary }: Replicated,
  options?: HoldfastOptions,
): Promise<Actor> {
  const client = await open(variant, primary.port)
  const holdfast = new Holdfast(client.raw as object, options)
  const dispose = async (): Promise<void> => {
    await holdfast.close({ drain: 0 })
    client.destroy()
  }
  return { holdfast, client, [Symbol.asyncDispose]: dispose }
}

/** How often the primary has run a command. */
export async function countOf(server: RedisServer, command: string): Promise<number> {
  const stats = String(await server.send('INFO', 'commandstats'))
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0)
}
