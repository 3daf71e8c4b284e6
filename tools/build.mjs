// Builds both module formats with two bare compiler passes. `--if-stale` does nothing when dist is up to date.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = join(root, '.cache', 'built-from')
const INPUTS = ['tsconfig.json', 'tsconfig.esm.json', 'tsconfig.cjs.json', 'tools/build.mjs', 'package.json']

/** A digest of everything that the result depends on. */
function digest() {
  const sources = readdirSync(join(root, 'src'), { recursive: true })
  const files = sources.filter((name) => name.endsWith('.ts')).map((name) => join('src', name))
  const hash = createHash('sha256')
  for (const file of [...files.sort(), ...INPUTS]) hash.update(file).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

function isFresh(wanted) {
  const results = ['dist/esm/index.js', 'dist/cjs/index.js', 'dist/cjs/package.json']
  if (!results.every((file) => existsSync(join(root, file)))) return false
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted
}

function compile(project) {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  const child = spawn(process.execPath, [tsc, '-p', project], { cwd: root, stdio: 'inherit' })
  return new Promise((done) => child.once('exit', (code) => done(code === 0)))
}

async function build(wanted) {
  rmSync(stamp, { force: true })
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  const passes = await Promise.all(['tsconfig.esm.json', 'tsconfig.cjs.json'].map(compile))
  if (passes.includes(false)) return false
  writeFileSync(join(root, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n')
  mkdirSync(join(root, '.cache'), { recursive: true })
  writeFileSync(stamp, wanted)
  return true
}

const wanted = digest()
const skip = process.argv.includes('--if-stale') && isFresh(wanted)
if (!skip && !(await build(wanted))) process.exitCode = 1
