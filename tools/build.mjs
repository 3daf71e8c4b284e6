// Builds both module formats with two bare compiler passes. `--if-stale` does nothing when dist is up to date.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
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

function compile(format, folder) {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  const args = [tsc, '-p', `tsconfig.${format}.json`, '--outDir', join(folder, format)]
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
  return new Promise((done) => child.once('exit', (code) => done(code === 0)))
}

/** Compiles into a folder of its own first, so that two builds at a time do not mix. */
async function build(wanted) {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(root, '.cache', 'build-'))
  try {
    const passes = await Promise.all(['esm', 'cjs'].map((format) => compile(format, folder)))
    if (passes.includes(false)) return false
    writeFileSync(join(folder, 'cjs', 'package.json'), '{ "type": "commonjs" }\n')
    publish(folder)
    writeFileSync(stamp, wanted)
    return true
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function publish(folder) {
  const dist = join(root, 'dist')
  rmSync(stamp, { force: true })
  rmSync(dist, { recursive: true, force: true })
  mkdirSync(dist)
  for (const format of ['esm', 'cjs']) renameSync(join(folder, format), join(dist, format))
}

const wanted = digest()
const skip = process.argv.includes('--if-stale') && isFresh(wanted)
if (!skip && !(await build(wanted))) process.exitCode = 1
