/** docs/redisson.md is true: its programs run, and its tables have every method of Redisson's. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { ensureRedissonPeer, REDISSON_VERSIONS } from '../../tools/redisson-peer.mjs'
import type { Scene, Stage } from './support/stage.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/redisson.md'), 'utf8')

/** Each interface, and the sections that have its methods. */
const SECTIONS = {
  RLock: ['RLock'],
  RFencedLock: ['RLock', 'RFencedLock'],
  RReadWriteLock: ['RReadWriteLock'],
  RSemaphore: ['RSemaphore'],
  RPermitExpirableSemaphore: ['RPermitExpirableSemaphore'],
  RCountDownLatch: ['RCountDownLatch'],
} as const

/** Declares the tests of the page. */
export function docsSuite(stage: Stage): void {
  describe('docs/redisson.md', () => {
    stage.test('both programs add what they should', async (scene) => {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'))
      scene.atEnd(() => {
        rmSync(folder, { recursive: true, force: true })
      })
      // The page has one name and one number: each version has a server of its own, and this one test uses them.
      const url = `redis://127.0.0.1:${stage.parts.server.port}`
      const outputs = await Promise.all([runJava(stage, folder, url), runNode(folder, url)])
      expect(outputs).toEqual([
        { code: 0, output: expect.any(String) as string },
        { code: 0, output: '' },
      ])
      expect(await scene.link.command('GET', 'stock:42')).toBe('200')
    })

    for (const [type, titles] of Object.entries(SECTIONS))
      stage.test(`the table has all methods of ${type}`, async (scene) => {
        expect(await missing(scene, type, titles)).toEqual([])
      })

    stage.test('all factories of locks and synchronizers are there, or said not to be', async (scene) => {
      const factories = (await scene.thread().methods('RedissonClient')).filter((name) =>
        /(Lock|Semaphore|Latch|Limiter|IdGenerator)$/.test(name),
      )
      expect(factories).toContain('getLock')
      expect(factories.filter((name) => !new RegExp(`\\b${name}\\b`).test(page))).toEqual([])
    })

    stage.test('names the versions', () => {
      for (const version of REDISSON_VERSIONS) expect(page).toContain(version)
      return Promise.resolve()
    })
  })
}

/** Methods that these sections do not mention. */
async function missing(scene: Scene, type: string, titles: readonly string[]): Promise<readonly string[]> {
  const text = titles.map(section).join()
  const lacks = (name: string): boolean => !new RegExp(`\\b${name}\\b`).test(text)
  const names = await scene.thread().methods(type).catch(absent)
  return names.filter(lacks)
}

/** An interface that this version does not have. */
function absent(error: unknown): readonly string[] {
  if (String(error).includes('ClassNotFound')) return []
  throw error
}

function section(title: string): string {
  const text = page.split('\n## ').find((part) => part.startsWith(`\`${title}\`\n`))
  if (text === undefined) throw new Error(`docs/redisson.md has no section ${title}`)
  return text
}

/** The one piece of code in this language. */
function code(language: 'java' | 'ts'): string {
  const pieces = page.split(`\n\`\`\`${language}\n`).slice(1)
  const [piece, ...more] = pieces.map((rest) => rest.slice(0, rest.indexOf('\n```')))
  if (piece === undefined || more.length > 0) throw new Error(`docs/redisson.md: one ${language} program`)
  return piece
}

function runJava({ version }: Stage, folder: string, url: string): Promise<Ending> {
  const { java, args } = ensureRedissonPeer(version)
  const file = join(folder, 'CountStock.java')
  writeFileSync(file, code('java'))
  // The program, in the place of ours.
  return run(java, [...args.slice(0, -1), file], url)
}

function runNode(folder: string, url: string): Promise<Ending> {
  const file = join(folder, 'count-stock.mts')
  writeFileSync(file, code('ts'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return run(process.execPath, ['--import', 'tsx', file], url)
}

interface Ending {
  readonly code: number | null
  readonly output: string
}

function run(command: string, args: readonly string[], url: string): Promise<Ending> {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, REDIS_URL: url } })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (exit) => {
      resolve({ code: exit, output })
    })
  })
}
