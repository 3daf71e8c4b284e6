import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { complaintsAbout, type Compilation } from './compiler.js'
import { Packed } from './consumer.js'

let packed: Packed

beforeAll(() => {
  packed = new Packed()
}, 180_000)
afterAll(() => {
  packed[Symbol.dispose]()
})

const use = `
  export async function work(signal: AbortSignal): Promise<number | undefined> {
    const lock: Lock = holdfast.lock('job', { reentrant: true })
    const mutex: Mutex = holdfast.mutex('other')
    const value: string = await lock.using({ waitTime: 5_000, signal }, async (lease: Lease) => lease.owner)
    await using lease = await mutex.acquire({ leaseTime: 30_000 })
    const fenced: FencedLock = holdfast.fencedLock('fenced')
    const token: number = await fenced.using((lease: FencedLease) => lease.token)
    const spin: SpinLock = holdfast.spinLock('spin', { backoff: exponentialBackoff({ max: 20 }) })
    const counting: CountingLock[] = [fenced, spin, lock]
    const maybe: Lease | null = await lock.tryAcquire()
    return maybe === null ? value.length + token + counting.length : lease.remaining
  }
`
const ours = `import { exponentialBackoff, Holdfast } from 'holdfast'
  import type { CountingLock, FencedLease, FencedLock, Lease, Lock, Mutex, SpinLock } from 'holdfast'`

interface Client {
  readonly title: string
  readonly packages: Readonly<Record<string, string>>
  readonly text: string
}

const ioredis = `import { Cluster, Redis } from 'ioredis'
  ${ours}
  export const holdfast = new Holdfast(new Redis({ lazyConnect: true }))
  export const clustered = new Holdfast(new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true }))
  ${use}`
const nodeRedis = `import { createClient, createCluster } from 'redis'
  ${ours}
  export const holdfast: Holdfast = new Holdfast(createClient({ url: 'redis://127.0.0.1:1' }))
  export const clustered: Holdfast = new Holdfast(createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] }))
  ${use}`

const withoutClient = `${ours}
  declare const client: object
  export const holdfast: Holdfast = new Holdfast(client, { keyPrefix: undefined })
  ${use}`

const clients: readonly Client[] = [
  { title: 'ioredis 5', packages: { ioredis: 'ioredis5' }, text: ioredis },
  { title: 'ioredis 6', packages: { ioredis: 'ioredis' }, text: ioredis },
  { title: 'node-redis 5', packages: { redis: 'redis5' }, text: nodeRedis },
  { title: 'node-redis 6', packages: { redis: 'redis' }, text: nodeRedis },
  { title: 'no client library', packages: {}, text: withoutClient },
]

interface Setting extends Compilation {
  readonly files: readonly string[]
}

const compilations: readonly Setting[] = [
  { module: 'node16', moduleResolution: 'node16', files: ['consumer.mts', 'consumer.cts'] },
  { module: 'nodenext', moduleResolution: 'nodenext', files: ['consumer.mts', 'consumer.cts'] },
  { module: 'esnext', moduleResolution: 'bundler', files: ['consumer.mts'] },
  { module: 'commonjs', moduleResolution: 'bundler', files: ['consumer.cts'] },
]

describe.each(clients)('the declarations, with only $title installed', ({ title, packages, text }) => {
  it.each(compilations)('compile for $module with resolution $moduleResolution', ({ files, ...options }) => {
    const project = packed.project(`${title} ${options.module}`, packages)
    for (const file of files) project.write(file, text)
    expect(complaintsAbout(project.folder, files, options)).toEqual([])
  })
})

describe('the declarations', () => {
  const options = { module: 'nodenext', moduleResolution: 'nodenext' }

  it('satisfy the compiler as users start it', () => {
    const project = packed.project('by tsc')
    project.write('consumer.mts', withoutClient)
    expect(project.tsc('consumer.mts', options)).toBe('')
  })

  it('refuse what is not an option', () => {
    const project = packed.project('wrong')
    project.write(
      'wrong.mts',
      `${ours}\nexport const holdfast = new Holdfast({}, { lockWatchdogTimout: 1 })\n`,
    )
    expect(complaintsAbout(project.folder, ['wrong.mts'], options)).toEqual([
      expect.stringContaining('lockWatchdogTimout'),
    ])
  })

  it('are read and checked: a fault in them is found', () => {
    const project = packed.project('fault')
    project.write('node_modules/holdfast/dist/esm/index.d.ts', 'export declare const Holdfast: Missing\n')
    project.write('fault.mts', "export { Holdfast } from 'holdfast'\n")
    expect(complaintsAbout(project.folder, ['fault.mts'], options)).toEqual([
      expect.stringContaining('Missing'),
    ])
  })
})
