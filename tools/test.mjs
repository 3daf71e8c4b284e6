// `npm test`: every kind of test in turn, what was left out, and the sum as the last line.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const counts = { passed: 0, failed: 0, skipped: 0 }

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

/** What this run cannot show, each with its reason; counted as skipped. */
function leftOut() {
  const server = spawnSync(process.env.HOLDFAST_REDIS_SERVER, ['--version'], { encoding: 'utf8' })
  const version = /v=(\S+)/.exec(server.stdout)?.[1] ?? 'of unknown version'
  const parts = [
    `other server versions (this run used redis-server ${version})`,
    `other Node versions (this run used ${process.version})`,
  ]
  if (!existsSync(join(root, 'test/interop/java'))) {
    parts.push("locks shared with Java's Redisson itself (not part of this version)")
  }
  return parts
}

async function everything() {
  // Tests of the package and plain JavaScript examples need the build; the other tests run on the sources.
  const built = await step('build', ['tools/build.mjs', '--if-stale'])
  await vitest('tests', ['--project', 'holdfast'])
  if (built) await vitest('package', ['--project', 'package'])
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
} else {
  await vitest('tests', args)
  console.log('\nleft out: everything that the arguments did not select')
}
const sum = `${counts.passed} passed, ${counts.failed} failed`
console.log(counts.skipped === 0 ? sum : `${sum}, ${counts.skipped} skipped`)
process.exitCode = counts.failed === 0 ? 0 : 1
