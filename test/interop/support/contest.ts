/** Node's half of a contest with Java: the same looks inside as `interop/`'s Contest, by raw commands. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Raw } from '../../support/raw.js'
import type { CanaryKind, JavaThread } from './java-peer.js'
import { EFFORT, type Scene } from './stage.js'

/** One stay inside. */
export interface Stay {
  readonly token?: number | undefined
  release(): Promise<unknown>
}

/** Who takes part, and how. */
export interface Contestants {
  /** What Java's threads enter, each in a loop. */
  readonly java: readonly {
    readonly reference: string
    readonly kind: CanaryKind
    /** Of another Java process than that of all tests. */
    readonly thread?: JavaThread
  }[]
  /** The same for Node's callers. */
  readonly node: readonly { readonly enter: () => Promise<Stay>; readonly kind: CanaryKind }[]
  readonly leaseMs?: number | undefined
  /** To the server where Java looks; that of the test by default. */
  readonly link?: Raw
}

const THREADS = 3
const CALLERS = 3
const TIMES = 6 * EFFORT
const PAUSE_MS = 4

/** Java's threads and Node's callers enter the same object; expects that nobody met anybody that must not be there. */
export async function expectPeace(scene: Scene, contestants: Contestants): Promise<void> {
  const { java, node, leaseMs, link = scene.link } = contestants
  const canary = `${scene.name}:canary`
  const plan = { canary, threads: THREADS, times: TIMES, pauseMs: PAUSE_MS, leaseMs }
  const fromJava = java.map(({ reference, kind, thread }, i) =>
    (thread ?? scene.thread(`contest-${i}`)).contend(reference, { ...plan, kind }),
  )
  const fromNode = node.flatMap(({ enter, kind }) =>
    Array.from({ length: CALLERS }, () => contend(link, { enter, kind, canary })),
  )
  const wrong = (await Promise.all([...fromJava, ...fromNode])).flat()
  expect(wrong).toEqual([])
  await expectSum(link, canary, {
    java: java.filter(({ kind }) => countsOne(kind)).length * THREADS,
    node: node.filter(({ kind }) => countsOne(kind)).length * CALLERS,
  })
}

/** Fencing tokens in the order of entry. */
export async function tokensOf(scene: Scene): Promise<readonly number[]> {
  const tokens = await scene.link.command('LRANGE', `${scene.name}:canary:tokens`, 0, -1)
  return Array.isArray(tokens) ? tokens.map(Number) : []
}

function countsOne(kind: CanaryKind): boolean {
  return kind === 'alone' || kind === 'fenced'
}

/** Every update by one that was alone is still in the sum. */
async function expectSum(
  link: Raw,
  canary: string,
  alone: { readonly java: number; readonly node: number },
): Promise<void> {
  const expected = (alone.java + alone.node) * TIMES
  if (expected > 0) expect(Number(await link.command('GET', `${canary}:sum`))).toBe(expected)
}

interface Caller {
  readonly enter: () => Promise<Stay>
  readonly kind: CanaryKind
  readonly canary: string
}

async function contend(link: Raw, { enter, kind, canary }: Caller): Promise<string[]> {
  const wrong: string[] = []
  for (let i = 0; i < TIMES; i++) {
    const stay = await enter()
    try {
      if (stay.token !== undefined) await link.command('RPUSH', `${canary}:tokens`, stay.token)
      wrong.push(...(await inside(link, canary, kind)))
    } finally {
      await stay.release()
    }
  }
  return wrong
}

async function inside(link: Raw, canary: string, kind: CanaryKind): Promise<string[]> {
  const part = kind === 'shared' ? 'readers' : 'inside'
  const limit = typeof kind === 'number' ? kind : 1
  const wrong: string[] = []
  const count = Number(await link.command('INCR', `${canary}:${part}`))
  if (kind !== 'shared' && count > limit) wrong.push(`${count} were inside`)
  const others = kind === 'shared' ? 'inside' : 'readers'
  if (Number(await link.command('GET', `${canary}:${others}`)) > 0) wrong.push('a reader and a writer met')
  if (countsOne(kind)) await addOne(link, `${canary}:sum`)
  else await pause()
  await link.command('DECR', `${canary}:${part}`)
  return wrong
}

/** Not atomic on purpose. */
async function addOne(link: Raw, key: string): Promise<void> {
  const sum = Number(await link.command('GET', key))
  await pause()
  await link.command('SET', key, sum + 1)
}

async function pause(): Promise<void> {
  await sleep(Math.random() * PAUSE_MS)
}
