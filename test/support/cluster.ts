/** A cluster of three primaries, each with replicas, made by commands alone. */
import { eventually } from './eventually.js'
import { freePort } from './ports.js'
import type { Value } from './resp.js'
import { startRedis, type RedisServer } from './server.js'

const PRIMARIES = 3
const RANGES = [
  [0, 5_460],
  [5_461, 10_922],
  [10_923, 16_383],
] as const
/** After this time without an answer a primary counts as dead. */
const NODE_TIMEOUT_MS = 1_500

/** Starts it, with so many replicas for each primary; resolves when every node says that all is well. */
export async function startCluster(replicas = 1): Promise<TestCluster> {
  const nodes: RedisServer[] = []
  try {
    for (let count = 0; count < PRIMARIES * (1 + replicas); count++) nodes.push(await startNode())
    await join(nodes)
    return new TestCluster(nodes)
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()))
    throw error
  }
}

async function startNode(): Promise<RedisServer> {
  return startRedis({
    args: [
      ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
      // The usual bus port, 10 000 above the port, does not exist for every port.
      ...['--cluster-port', String(await freePort())],
      ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
    ],
  })
}

async function join(nodes: readonly RedisServer[]): Promise<void> {
  const [first, ...others] = nodes
  if (first === undefined) throw new Error('a cluster needs nodes')
  for (const [place, [from, to]] of RANGES.entries())
    await nodes[place]?.send('CLUSTER', 'ADDSLOTSRANGE', from, to)
  for (const node of others) {
    const bus = /@(\d+)/.exec(String(await node.send('CLUSTER', 'NODES')))?.[1] ?? ''
    await first.send('CLUSTER', 'MEET', '127.0.0.1', node.port, bus)
  }
  const everywhere = (text: string) => async (): Promise<boolean> => {
    const infos = await Promise.all(nodes.map((node) => node.send('CLUSTER', 'INFO')))
    return infos.every((info) => String(info).includes(text))
  }
  await eventually(everywhere(`cluster_known_nodes:${String(nodes.length)}`), 'nodes that know each other')
  for (const [place, node] of nodes.entries())
    if (place >= PRIMARIES) await replicate(node, nodes[place % PRIMARIES])
  await eventually(everywhere('cluster_state:ok'), 'a cluster in good order')
  const inStep = async (node: RedisServer): Promise<boolean> =>
    String(await node.send('INFO', 'replication')).includes('master_link_status:up')
  for (const node of nodes.slice(PRIMARIES)) await eventually(() => inStep(node), 'a replica in step')
}

async function replicate(node: RedisServer, primary: RedisServer | undefined): Promise<void> {
  const id = String(await primary?.send('CLUSTER', 'MYID'))
  // The node may not have heard of the primary's slots yet.
  const tried = () =>
    node.send('CLUSTER', 'REPLICATE', id).then(
      () => true,
      () => false,
    )
  await eventually(tried, 'a replica')
}

/** The nodes: the first three were made primaries. */
export class TestCluster implements AsyncDisposable {
  readonly nodes: readonly RedisServer[]

  /** Use {@link startCluster}. */
  constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes
  }

  get port(): number {
    return this.nodes[0]?.port ?? 0
  }

  /** The primary that has a slot, as the nodes that are up see it. */
  async primaryOf(slot: number): Promise<RedisServer> {
    const witness = this.nodes.find(({ running }) => running)
    const rows = (await witness?.send('CLUSTER', 'SLOTS')) as readonly (readonly Value[])[]
    const row = rows.find(([from, to]) => Number(from) <= slot && slot <= Number(to))
    const port = (row?.[2] as readonly Value[] | undefined)?.[1]
    const primary = this.nodes.find((node) => node.port === Number(port))
    if (primary === undefined) throw new Error(`nobody has slot ${String(slot)}`)
    return primary
  }

  /** Begins to move a slot to another primary: new keys of it are made there. */
  async migrate(slot: number): Promise<Migration> {
    const from = await this.primaryOf(slot)
    const to = this.nodes.slice(0, PRIMARIES).find((node) => node !== from && node.running)
    if (to === undefined) throw new Error('there is nobody to move the slot to')
    await to.send('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(await from.send('CLUSTER', 'MYID')))
    await from.send('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(await to.send('CLUSTER', 'MYID')))
    return new Migration(this.nodes.slice(0, PRIMARIES), { slot, from, to })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()))
  }
}

interface Move {
  readonly slot: number
  readonly from: RedisServer
  readonly to: RedisServer
}

/** A slot on its way. */
export class Migration {
  readonly #primaries: readonly RedisServer[]
  readonly #move: Move

  constructor(primaries: readonly RedisServer[], move: Move) {
    this.#primaries = primaries
    this.#move = move
  }

  /** The keys that are there go over. */
  async moveKeys(): Promise<void> {
    const { slot, from, to } = this.#move
    for (;;) {
      const keys = (await from.send('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as readonly string[]
      if (keys.length === 0) return
      await from.send('MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...keys)
    }
  }

  /** The slot belongs to the other one. */
  async end(): Promise<void> {
    await this.moveKeys()
    const { slot, from, to } = this.#move
    const id = String(await to.send('CLUSTER', 'MYID'))
    for (const node of [to, from, ...this.#primaries]) await node.send('CLUSTER', 'SETSLOT', slot, 'NODE', id)
  }
}
