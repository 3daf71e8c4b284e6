// `npm run check`: everything a machine can say about the code without running it. One line a check.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureDependencies } from './dependencies.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(import.meta.url)

/** The path of a development tool's program, without npm's wrappers. */
function bin(name, program = name) {
  const folder = packageFolder(name)
  const { bin: programs } = require(join(folder, 'package.json'))
  return join(folder, typeof programs === 'string' ? programs : programs[program])
}

function packageFolder(name) {
  const folder = require.resolve.paths(name).map((path) => join(path, name))
  const found = folder.find((path) => existsSync(join(path, 'package.json')))
  if (found === undefined) throw new Error(`${name} is not installed`)
  return found
}

const checks = {
  types: () => [bin('typescript', 'tsc'), '-p', 'tsconfig.json', '--noEmit'],
  lint: () => [bin('eslint'), '--max-warnings', '0'],
  format: () => [bin('prettier'), '--check', '--log-level', 'warn', '.'],
  generated: () => ['tools/build-lua.mjs', '--check'],
  docs: () => [bin('typedoc'), '--emit', 'none'],
  unused: () => [bin('knip')],
  build: () => ['tools/build.mjs', '--if-stale'],
  package: () => [bin('publint'), '--strict'],
  'package types': () => [bin('@arethetypeswrong/cli', 'attw'), '--pack', '.'],
}

function run(args) {
  const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' }
  const child = spawn(process.execPath, args, { cwd: root, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  return new Promise((done) => child.once('close', (code) => done({ ok: code === 0, output })))
}

async function check(name) {
  const begun = performance.now()
  const { ok, output } = await run(checks[name]())
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
  console.log(`${ok ? 'ok    ' : 'FAILED'}  ${name} (${seconds} s)`)
  if (!ok) console.log(output.trimEnd().replace(/^/gm, '        '))
  return ok
}

const wanted = process.argv.slice(2)
const names = Object.keys(checks).filter((name) => wanted.length === 0 || wanted.includes(name))
const failed = []
if (!ensureDependencies()) process.exit(1)
for (const name of names) {
  if (!(await check(name))) failed.push(name)
}
if (failed.length > 0) console.log(`\nnpm run check failed: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
