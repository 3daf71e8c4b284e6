// `npm test`: every kind of test in turn, what was left out, and the sum as the last line.
// With `--interop`: the tests with Redisson itself, in all versions and at length.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensurePostgres } from './postgres.mjs'
import { ensureRedissonPeer, PeerMissing, REDISSON_VERSIONS } from './redisson-peer.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const counts = { passed: 0, failed: 0, skipped: 0 }
/** What this run could not show, each with its reason; counted as skipped. */
const missing = []
const INTEROP_FILES = ['redisson-4', 'redisson-3', 'redisson-3-18'].map(
  (name) => `test/interop/${name}.test.ts`,
)

function node(args) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
  return new Promise((done) => child.once('exit', (code) => done(code ?? 1)))
}

/** A step that passes or fails as a whole. */
async function step(title, args) {
  console.log(`\n== ${title}`)
  const passed = (await node(args)) === 0
  counts[passed ? 'passed' : 'failed'] += 1
  if (!passed) console.log(`FAILED: ${title}`)
  return passed
}

async function vitest(title, args) {
  console.log(`\n== ${title}`)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  const report = join(folder, 'report.json')
  const cli = join(createRequire(import.meta.url).resolve('vitest/package.json'), '..', 'vitest.mjs')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const code = await node([cli, 'run', ...reporters, ...args])
  count(existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : undefined, code)
  rmSync(folder, { recursive: true, force: true })
}

function count(report, code) {
  const before = counts.failed
  counts.passed += report?.numPassedTests ?? 0
  counts.failed += report?.numFailedTests ?? 0
  counts.skipped += (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0)
  // A file that could not be loaded has no tests to fail.
  const files = report?.testResults ?? []
  counts.failed += files.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  ).length
  // An error outside of every test, or no report at all.
  if (code !== 0 && counts.failed === before) counts.failed += 1
}

/** The tests with Redisson itself, where it can be had. */
async function interop(versions) {
  const files = versions.map((version) => INTEROP_FILES[REDISSON_VERSIONS.indexOf(version)])
  try {
    for (const version of versions) ensureRedissonPeer(version)
  } catch (error) {
    console.log(`\n== Redisson ${versions.join(', ')}: ${error.message}`)
    if (error instanceof PeerMissing) missing.push(`Java's Redisson itself (${error.message})`)
    else counts.failed += 1
    return
  }
  await vitest(`Redisson ${versions.join(', ')}`, ['--project', 'interop', ...files])
}

/** The guard for SQL, where a PostgreSQL can be had. */
async function postgres() {
  try {
    process.env.HOLDFAST_POSTGRES = await ensurePostgres()
  } catch (error) {
    console.log(`\n== PostgreSQL: ${error.message}`)
    missing.push(`the guard for SQL on a real PostgreSQL (${error.message})`)
    return
  }
  await vitest('PostgreSQL', ['--project', 'postgres'])
}

/** What no run like this one can show. */
function leftOut() {
  const server = spawnSync(process.env.HOLDFAST_REDIS_SERVER, ['--version'], { encoding: 'utf8' })
  const version = /v=(\S+)/.exec(server.stdout)?.[1] ?? 'of unknown version'
  const parts = [
    `other server versions (this run used redis-server ${version})`,
    `other Node versions (this run used ${process.version})`,
  ]
  if (!missing.some((part) => part.includes('Redisson')))
    parts.push(`other Redisson versions (this run used ${REDISSON_VERSIONS[0]}; all: npm run test:interop)`)
  return [...missing, ...parts]
}

async function everything() {
  // Tests of the package and plain JavaScript examples need the build; the other tests run on the sources.
  const built = await step('build', ['tools/build.mjs', '--if-stale'])
  await vitest('tests', ['--project', 'holdfast'])
  if (built) await vitest('package', ['--project', 'package'])
  await postgres()
  await interop(REDISSON_VERSIONS.slice(0, 1))
  await step('examples', ['--import', 'tsx', 'tools/examples.mjs'])
  if (existsSync(join(root, 'test/safety/run.ts'))) {
    await step('safety run, short form', ['--import', 'tsx', 'test/safety/run.ts', '--short'])
  }
}

const args = process.argv.slice(2)
if (args.length === 0) {
  await everything()
  const parts = leftOut()
  counts.skipped += parts.length
  console.log(`\n${parts.map((part) => `left out: ${part}`).join('\n')}`)
} else if (args[0] === '--interop') {
  process.env.HOLDFAST_INTEROP = 'full'
  await interop(REDISSON_VERSIONS)
  counts.skipped += missing.length
  // Nothing of what was asked for.
  if (missing.length > 0) process.exitCode = 1
  console.log(`\n${missing.map((part) => `left out: ${part}\n`).join('')}left out: all other tests`)
} else {
  await vitest('tests', args)
  console.log('\nleft out: everything that the arguments did not select')
}
const sum = `${counts.passed} passed, ${counts.failed} failed`
console.log(counts.skipped === 0 ? sum : `${sum}, ${counts.skipped} skipped`)
if (counts.failed > 0) process.exitCode = 1
